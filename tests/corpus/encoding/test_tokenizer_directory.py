"""Tokenizers of other families, made here as their makers save them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tasks.corpus.encoding.tokenizer_directory import adopt, check_digest, digest
from tasks.stage import StageError
from tasks.training.chat import ChatTokenizer, Message

TEXTS = [
    "The mill grinds the grain, and the miller's 12 men don't sing.",
    "雪国の水車 grinds 😀 naïve cafés",
    "<s> and <|endoftext|> and [CLS] and <|im_start|> end nothing: </s> [SEP] <0x41> <unk> [UNK] <|user|>",
]
LEARNT = ["the mill grinds the grain and the miller sings don't", "the mill stands by the river, 12 men"] * 5


@functools.cache
def gpt2() -> PreTrainedTokenizerFast:
    """Bytes, one special token for begin and end, no pad."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(LEARNT, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")


@functools.cache
def llama() -> PreTrainedTokenizerFast:
    """Pieces as of SentencePiece, bytes for what is missing, a post-processor that begins every text."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = ["<unk>", "<s>", "</s>"]
    pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special + pieces, show_progress=False)
    tokenizer.train_from_iterator(LEARNT, trainer)
    # Bytes are tokens of the model, which no text matches as a whole.
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = content["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    tokenizer.enable_truncation(8)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


@functools.cache
def bert() -> PreTrainedTokenizerFast:
    """Words in pieces, one token for what is missing, neither begin nor end.

    Learnt once, since the library breaks ties at random.
    """
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(LEARNT, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        pad_token="[PAD]", mask_token="[MASK]", chat_template="{{ messages }}",
    )  # fmt: skip


FAMILIES = {"gpt2": gpt2, "llama": llama, "bert": bert}
MARKS = {
    "gpt2": ("<|begin|>", "<|endoftext|>", "<|pad|>"),
    "llama": ("<s>", "</s>", "<|pad|>"),
    "bert": ("<|begin|>", "<|end|>", "[PAD]"),
}


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[str], Path]:
    def save(family: str) -> Path:
        FAMILIES[family]().save_pretrained(str(tmp_path / family))
        return tmp_path / family

    return save


@pytest.fixture
def adopted(saved: Callable[[str], Path], tmp_path: Path) -> Callable[[str], ChatTokenizer]:
    def make(family: str) -> ChatTokenizer:
        adopt(saved(family), tmp_path / "out", 64)
        return ChatTokenizer(tmp_path / "out")

    return make


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_has_the_tokens_of_the_library_and_none_of_its_post_processor(adopted, family: str) -> None:
    chat, theirs = adopted(family), FAMILIES[family]()
    for text in TEXTS[:2]:
        assert chat.encode(text) == theirs.encode(text, add_special_tokens=False)
    if family != "bert":  # which drops white space
        assert chat.decode(chat.encode(TEXTS[0])) == TEXTS[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_words_of_special_tokens_in_a_text_stay_text(adopted, family: str, tmp_path: Path) -> None:
    chat = adopted(family)
    content = json.loads((tmp_path / "out" / "tokenizer.json").read_text())
    special = {token["id"] for token in content["added_tokens"]} - {chat.unknown_id}
    assert len(special) >= 5 - (family == "bert")
    assert special.isdisjoint(chat.encode(TEXTS[2]))
    if family != "bert":
        assert chat.decode(chat.encode(TEXTS[2])).strip() == TEXTS[2]


@pytest.mark.parametrize("family", FAMILIES)
def test_its_own_begin_end_and_pad_are_kept_and_missing_ones_added(
    adopted, family: str, tmp_path: Path
) -> None:
    chat, before = adopted(family), FAMILIES[family]()
    vocabulary = chat.vocabulary()
    assert [vocabulary[name] for name in MARKS[family]] == [chat.bos_id, chat.eos_id, chat.pad_id]
    assert len({chat.bos_id, chat.eos_id, chat.pad_id, chat.user_id, chat.assistant_id}) == 5
    assert {token: vocabulary[token] for token in before.get_vocab()} == before.get_vocab()
    assert chat.vocab_size == max(vocabulary.values()) + 1 > len(before)
    config = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert tuple(config[key] for key in ("bos_token", "eos_token", "pad_token")) == MARKS[family]


@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_loads_it_with_the_same_ids_and_writes_dialogues_as_they_are_trained(
    adopted, family: str, tmp_path: Path
) -> None:
    chat, theirs = adopted(family), AutoTokenizer.from_pretrained(tmp_path / "out")
    assert theirs.encode(TEXTS[1], add_special_tokens=False) == chat.encode(TEXTS[1])
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id) == (
        chat.bos_id, chat.eos_id, chat.pad_id,
    )  # fmt: skip
    messages = [Message(role="user", content="the mill")]
    shown = theirs.apply_chat_template(
        [message.model_dump() for message in messages], add_generation_prompt=True, return_dict=False
    )
    assert shown == chat.prompt(messages)


def test_a_pad_that_is_the_end_too_gets_one_of_its_own(saved, tmp_path: Path) -> None:
    directory = saved("gpt2")
    config = json.loads((directory / "tokenizer_config.json").read_text())
    config |= {"bos_token": "<|endoftext|>", "pad_token": {"content": "<|endoftext|>"}}
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    adopt(directory, tmp_path / "out", 64)
    chat = ChatTokenizer(tmp_path / "out")
    assert chat.bos_id == chat.eos_id == 0
    assert chat.vocabulary()["<|pad|>"] == chat.pad_id != 0


def test_special_tokens_may_stand_in_special_tokens_map(saved, tmp_path: Path) -> None:
    directory = saved("llama")
    config = json.loads((directory / "tokenizer_config.json").read_text())
    names = {key: config.pop(key) for key in ("bos_token", "eos_token")}
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    (directory / "special_tokens_map.json").write_text(json.dumps(names))
    adopt(directory, tmp_path / "out", 64)
    chat = ChatTokenizer(tmp_path / "out")
    assert (chat.bos_id, chat.eos_id) == (1, 2)


def test_a_unigram_that_reads_special_tokens_as_pieces_is_refused(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=60, unk_token="<unk>", special_tokens=["<s>", "</s>", "<unk>"], show_progress=False
    )
    tokenizer.train_from_iterator(LEARNT, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.save_pretrained(str(tmp_path / "unigram"))
    with pytest.raises(StageError, match="reads '<s>' within a text as the special token '<s>'"):
        adopt(tmp_path / "unigram", tmp_path / "out", 64)


BROKEN = {
    "no JSON": ("tokenizer.json", "{", "tokenizer.json is no file of the library tokenizers"),
    "no tokenizer": ("tokenizer.json", "{}", "tokenizer.json is no file of the library tokenizers"),
    "broken config": ("tokenizer_config.json", "[", "tokenizer_config.json is not JSON"),
    "list for config": ("tokenizer_config.json", "[]", "must hold an object of settings, not a list"),
    "unknown token": (
        "tokenizer_config.json", '{"eos_token": "<end>"}', "eos_token is '<end>', which tokenizer.json",
    ),
    "other ids": (
        "tokenizer_config.json", '{"added_tokens_decoder": {"7": {"content": "<s>"}}}',
        "has '<s>' as token 7, but tokenizer.json has it as 1",
    ),
    "smaller model": (
        "config.json", '{"vocab_size": 40}', "vocab_size is 40, but tokenizer.json gives ids up to",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_a_directory_that_contradicts_itself_names_the_file(saved, fault: str, tmp_path: Path) -> None:
    name, content, message = BROKEN[fault]
    directory = saved("llama")
    (directory / name).write_text(content)
    with pytest.raises(StageError, match=message):
        adopt(directory, tmp_path / "out", 64)


def test_the_digest_changes_with_what_is_read_and_with_nothing_else(saved) -> None:
    directory = saved("gpt2")
    before = digest(directory)
    (directory / "README.md").write_text("about it")
    assert digest(directory) == before
    config = json.loads((directory / "tokenizer_config.json").read_text())
    (directory / "tokenizer_config.json").write_text(json.dumps(config | {"pad_token": "!"}))
    assert digest(directory) != before


@pytest.mark.parametrize("expected", [None, "0" * 64], ids=["none", "another"])
def test_a_digest_that_is_missing_or_another_is_said_with_the_right_one(saved, expected: str | None) -> None:
    directory = saved("gpt2")
    with pytest.raises(StageError, match=f"has the digest {digest(directory)}"):
        check_digest(directory, expected)


def test_no_directory_and_one_without_a_tokenizer_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="nowhere is no directory"):
        digest(tmp_path / "nowhere")
    (tmp_path / "vocab.txt").write_text("a")
    with pytest.raises(StageError, match=r"has no tokenizer.json. .*save_pretrained"):
        digest(tmp_path)
