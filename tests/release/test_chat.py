from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.decoders import ByteLevel

from models.families import from_huggingface
from models.hub import save_model
from models.transformer import CausalLM
from tasks.release.chat import ChatError, Sampling, chat, open_model
from tasks.training.chat import SPECIAL_TOKENS, Message


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model over single bytes: what it says is noise, in characters split over tokens."""
    folder = tmp_path_factory.mktemp("model")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({symbol: number for number, symbol in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    config = from_huggingface(
        {
            "model_type": "llama",
            "vocab_size": tokenizer.get_vocab_size(),
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "max_position_embeddings": 64,
            "bos_token_id": tokenizer.token_to_id("<|begin|>"),
            "eos_token_id": tokenizer.token_to_id("<|end|>"),
            "pad_token_id": tokenizer.token_to_id("<|pad|>"),
        }
    )
    save_model(CausalLM(config), folder)
    return folder


def said(directory: Path, sampling: Sampling, prompt: str) -> str:
    out = io.StringIO()
    chat(open_model(directory), sampling, prompt, out)
    return out.getvalue()


def test_the_same_seed_says_the_same(directory):
    first = said(directory, Sampling(temperature=1.0, top_p=1.0, max_tokens=24, seed=1), "hello")
    assert first.strip()
    assert said(directory, Sampling(temperature=1.0, top_p=1.0, max_tokens=24, seed=1), "hello") == first
    assert said(directory, Sampling(temperature=1.0, top_p=1.0, max_tokens=24, seed=2), "hello") != first


def test_the_pieces_of_a_stream_make_up_the_text(directory):
    model = open_model(directory)
    generator = torch.Generator().manual_seed(3)
    sampling = Sampling(temperature=1.5, top_p=1.0, max_tokens=30)
    pieces = list(model.answer([Message(role="user", content="hello")], sampling, generator))
    assert len(pieces) > 5
    assert all(not piece.endswith("\ufffd") for piece in pieces[:-1])


def test_a_dialogue_longer_than_the_context_goes_on(directory):
    long = [
        Message(role=role, content="x" * 40) for role in ("user", "assistant", "user", "assistant", "user")
    ]
    generator = torch.Generator().manual_seed(0)
    assert list(open_model(directory).answer(long, Sampling(max_tokens=1000), generator))


def test_questions_come_from_the_input_until_it_ends(directory, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("one\n\n/new\ntwo\n/quit\nthree\n"))
    out = io.StringIO()
    chat(open_model(directory), Sampling(temperature=0, max_tokens=1), out=out)
    assert out.getvalue().count("\n") == 2


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"temperature": -1.0}, "--temperature"),
        ({"temperature": float("nan")}, "--temperature"),
        ({"top_p": 0.0}, "--top-p"),
        ({"max_tokens": 0}, "--max-tokens"),
        ({"seed": -1}, "--seed"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong, complaint):
    with pytest.raises(ChatError, match=complaint):
        Sampling(**wrong)


def test_a_directory_without_a_model_is_refused(tmp_path):
    with pytest.raises(ChatError, match="there is no model in"):
        open_model(tmp_path / "none")
    with pytest.raises(ChatError, match=r"tokenizer\.json does not exist"):
        open_model(tmp_path)
