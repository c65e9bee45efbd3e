from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from tasks.training.chat import ASSISTANT, BEGIN, END, USER, ChatTokenizer, Message


def dialogue(*texts: str) -> list[Message]:
    return [Message(role="user" if i % 2 == 0 else "assistant", content=text) for i, text in enumerate(texts)]


@pytest.mark.parametrize(
    "texts",
    [
        ("What is the capital?", "Stockholm."),
        (" leading and trailing \n", "  two\n\nlines\n"),
        ("Hallo", "Hi", "Wie geht's?", "Sehr gut. Schön!"),
        ("你是什么语言编写的", "Python"),
    ],
)
def test_a_dialogue_has_the_ids_of_transformers_chat_template(tiny_base: Path, chat, texts):
    reference = AutoTokenizer.from_pretrained(tiny_base)
    messages = dialogue(*texts)
    expected = reference.apply_chat_template([m.model_dump() for m in messages])["input_ids"]
    example = chat.dialogue(messages)
    assert example is not None
    assert example.tokens == expected


def test_a_prompt_has_the_ids_of_transformers_generation_prompt(tiny_base: Path, chat):
    reference = AutoTokenizer.from_pretrained(tiny_base)
    messages = dialogue("Hallo", "Hi", "How are you?")
    expected = reference.apply_chat_template([m.model_dump() for m in messages], add_generation_prompt=True)
    assert chat.prompt(messages) == expected["input_ids"]


def test_answers_and_their_end_are_learnt_and_nothing_else(chat: ChatTokenizer):
    example = chat.dialogue(dialogue("Hallo", "Hi", "How are you?", "Fine."))
    assert example is not None
    learnt = [token for token, answer in zip(example.tokens, example.answer, strict=True) if answer]
    assert learnt == [*chat.encode("Hi"), chat.eos_id, *chat.encode("Fine."), chat.eos_id]


def test_a_dialogue_begins_exactly_once(chat: ChatTokenizer):
    example = chat.dialogue(dialogue("Hallo", "Hi", "How are you?", "Fine."))
    assert example is not None
    assert [i for i, token in enumerate(example.tokens) if token == chat.bos_id] == [0]


def test_special_tokens_written_by_a_user_stay_text(chat: ChatTokenizer):
    text = f"a{END}b{BEGIN}{USER}c{ASSISTANT}"
    example = chat.dialogue(dialogue(text, text))
    assert example is not None
    special = {chat.bos_id, chat.eos_id, chat.pad_id, chat.user_id, chat.assistant_id}
    assert [token for token in example.tokens if token in special] == [
        chat.bos_id,
        chat.user_id,
        chat.assistant_id,
        chat.eos_id,
    ]
    assert chat.decode(chat.encode(text)) == text


def test_a_long_dialogue_loses_old_turns_first(chat: ChatTokenizer):
    whole = chat.dialogue(dialogue("old question", "old answer", "How are you?", "Fine."))
    short = chat.dialogue(dialogue("How are you?", "Fine."))
    assert whole is not None
    assert short is not None
    assert chat.dialogue(dialogue("old question", "old answer", "How are you?", "Fine."), 20) == short
    assert len(short.tokens) <= 20 < len(whole.tokens)


def test_a_long_question_keeps_its_end_and_the_whole_answer(chat: ChatTokenizer):
    example = chat.dialogue(dialogue("xyz " * 50 + "capital?", "Stockholm is."), 24)
    assert example is not None
    assert len(example.tokens) == 24
    assert chat.decode(example.tokens).endswith("capital?Stockholm is.")
    assert example.tokens[:2] == [chat.bos_id, chat.user_id]


def test_an_answer_that_does_not_fit_is_no_example(chat: ChatTokenizer):
    assert chat.dialogue(dialogue("Hallo", "xyz " * 50), 24) is None


def test_both_answers_of_a_pair_survive_and_share_the_cut_prompt(chat: ChatTokenizer):
    pair = chat.pair("xyz " * 50 + "capital?", "Yes.", "Stockholm is the capital.", 24)
    assert pair is not None
    chosen, rejected = pair
    assert len(rejected.tokens) == 24
    prompt = chosen.answer.index(True)
    assert chosen.tokens[:prompt] == rejected.tokens[:prompt]
    assert chosen.tokens[prompt:] == [*chat.encode("Yes."), chat.eos_id]
    assert rejected.tokens[prompt:] == [*chat.encode("Stockholm is the capital."), chat.eos_id]
    assert chat.decode(chosen.tokens[:prompt]).endswith("capital?")


def test_a_pair_whose_longer_answer_does_not_fit_is_no_example(chat: ChatTokenizer):
    assert chat.pair("Hallo", "Yes.", "xyz " * 50, 24) is None


def test_roles_must_alternate(chat: ChatTokenizer):
    with pytest.raises(ValueError, match="alternate"):
        chat.dialogue([Message(role="assistant", content="Hi")])


def test_a_tokenizer_without_the_special_tokens_is_refused(tiny_base: Path, tmp_path: Path):
    text = (tiny_base / "tokenizer.json").read_text("utf-8").replace(ASSISTANT, "<|other|>")
    (tmp_path / "tokenizer.json").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r"tokenizer\.json has no token <\|assistant\|>"):
        ChatTokenizer(tmp_path)
