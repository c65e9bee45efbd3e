"""Going on from a model that is there."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from models.config import ModelConfig
from models.hub import load_model, save_model
from models.initialization import initialise
from models.resize import with_vocabulary
from models.transformer import CausalLM
from tasks.resources import Resources, TrainingResources
from tasks.stage import StageError
from tasks.training.pretrain import PretrainParams, PretrainReport, pretrain


def run(tokens: Path, out: Path, **params: Any) -> PretrainReport:
    settings = {"context": 16, "batch_size": 8, "micro_batch_size": 8, "steps": 4} | params
    resources = Resources(work=out.parent / f"work-{out.name}", training=TrainingResources(threads=1))
    return pretrain(tokens, out, PretrainParams.model_validate(settings), resources)


def digest_of(directory: Path, tokens: Path, out: Path) -> str:
    with pytest.raises(StageError, match="init_from_digest is not set") as error:
        run(tokens, out, init_from=str(directory))
    return str(error.value).split("has the digest ")[1][:64]


def test_training_goes_on_from_the_weights_of_a_directory(tiny_base, tiny_tokens, tmp_path):
    digest = digest_of(tiny_base, tiny_tokens, tmp_path / "x")
    given = {"init_from": str(tiny_base), "init_from_digest": digest}
    schedule = {"optimizer": {"learning_rate": 1e-3}, "steps": 1}
    report = run(tiny_tokens, tmp_path / "base", **given, **schedule)
    before, after = load_model(tiny_base), load_model(tmp_path / "base")
    assert report.parameters == sum(p.numel() for p in before.parameters())
    for old, new in zip(before.parameters(), after.parameters(), strict=True):
        assert 0 < (old - new).abs().max() < 2e-3  # AdamW's first step is the learning rate, and decay


def test_only_the_named_weights_change(tiny_base, tiny_tokens, tmp_path):
    digest = digest_of(tiny_base, tiny_tokens, tmp_path / "x")
    named = ["model.layers.1.*", "model.norm.weight"]
    run(tiny_tokens, tmp_path / "base", init_from=str(tiny_base), init_from_digest=digest, train_only=named)
    before, after = (load_file(path / "model.safetensors") for path in (tiny_base, tmp_path / "base"))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if name.startswith("model.layers.1.") or name == named[1]}


def test_a_name_that_no_weight_has_is_refused(tiny_base, tiny_tokens, tmp_path):
    digest = digest_of(tiny_base, tiny_tokens, tmp_path / "x")
    with pytest.raises(StageError, match=r"no weight is named model\.layers\.7\.\*; the names are model"):
        run(
            tiny_tokens, tmp_path / "base", init_from=str(tiny_base), init_from_digest=digest,
            train_only=["model.layers.7.*"],
        )  # fmt: skip


def test_a_directory_that_changed_is_refused(tiny_base, tiny_tokens, tmp_path):
    shutil.copytree(tiny_base, tmp_path / "copy")
    digest = digest_of(tmp_path / "copy", tiny_tokens, tmp_path / "x")
    assert digest == digest_of(tiny_base, tiny_tokens, tmp_path / "y")
    weights = tmp_path / "copy/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(StageError, match=f"init_from_digest is {digest}, but .*copy has the digest"):
        run(tiny_tokens, tmp_path / "base", init_from=str(tmp_path / "copy"), init_from_digest=digest)


def test_a_model_of_other_tokens_is_refused_with_the_first(tiny_base, tiny_tokens, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(tiny_base, other)
    content = json.loads((other / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    first, second = (token for token, number in vocabulary.items() if number in (300, 301))
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (other / "tokenizer.json").write_text(json.dumps(content))
    digest = digest_of(other, tiny_tokens, tmp_path / "x")
    with pytest.raises(StageError, match=r"2 differ, .*300 in the model and 301 in the tokens"):
        run(tiny_tokens, tmp_path / "base", init_from=str(other), init_from_digest=digest)


def test_a_context_longer_than_the_models_is_refused(tiny_base, tiny_tokens, tmp_path):
    short = tmp_path / "short"
    shutil.copytree(tiny_base, short)
    config = json.loads((short / "config.json").read_text())
    (short / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 8}))
    digest = digest_of(short, tiny_tokens, tmp_path / "x")
    with pytest.raises(StageError, match=r"pretrain\.context is 16, but .*short takes 8 tokens"):
        run(tiny_tokens, tmp_path / "base", init_from=str(short), init_from_digest=digest)


def test_a_directory_without_a_tokenizer_is_refused(tiny_base, tiny_tokens, tmp_path):
    bare = tmp_path / "bare"
    save_model(load_model(tiny_base), bare)
    digest = digest_of(bare, tiny_tokens, tmp_path / "x")
    with pytest.raises(StageError, match=r"bare has no tokenizer\.json"):
        run(tiny_tokens, tmp_path / "base", init_from=str(bare), init_from_digest=digest)


@pytest.mark.parametrize("tied", [True, False])
def test_new_tokens_get_the_mean_row_and_the_old_ones_keep_their_logits(tied):
    config = ModelConfig(
        vocab_size=50, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=12, tie_word_embeddings=tied,
    )  # fmt: skip
    model = CausalLM(config)
    initialise(model, config, seed=0)
    tokens_BT = torch.arange(10)[None]
    before = model(tokens_BT)
    larger = with_vocabulary(model, config.model_copy(update={"vocab_size": 53}))
    after = larger(tokens_BT)
    torch.testing.assert_close(after[..., :50], before)
    torch.testing.assert_close(after[..., 50:], before.mean(-1, keepdim=True).expand(1, 10, 3))
    assert (larger.lm_head.weight is larger.model.embed_tokens.weight) == tied


def test_a_tokenizer_with_more_tokens_gives_the_model_more_rows(tiny_base, tiny_tokens, tmp_path):
    smaller = tmp_path / "smaller"
    shutil.copytree(tiny_base, smaller)
    tokenizer = Tokenizer.from_file(str(smaller / "tokenizer.json"))
    content = json.loads(tokenizer.to_str())
    last = max(content["model"]["vocab"].values())
    content["model"]["vocab"] = {t: n for t, n in content["model"]["vocab"].items() if n != last}
    gone = content["model"]["merges"].pop()
    assert gone
    (smaller / "tokenizer.json").write_text(json.dumps(content))
    model = load_model(tiny_base)
    rows = model.model.embed_tokens.weight[:last].detach()
    config = model.config.model_copy(update={"vocab_size": last})
    cut = CausalLM(config)
    state = model.state_dict() | {"model.embed_tokens.weight": rows, "lm_head.weight": rows}
    cut.load_state_dict(state)
    save_model(cut, smaller)
    digest = digest_of(smaller, tiny_tokens, tmp_path / "x")
    run(tiny_tokens, tmp_path / "base", init_from=str(smaller), init_from_digest=digest, steps=1)
    assert load_model(tmp_path / "base").config.vocab_size == 320
