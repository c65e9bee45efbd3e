from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

from models.hub import load_model
from tasks.parameters import validate
from tasks.resources import Resources, TrainingResources
from tasks.stage import StageError, Tracker
from tasks.training.chat import ChatTokenizer, Message
from tasks.training.sft import SftParams, answer_batch, answer_loss, answer_targets, sft


def examples(chat: ChatTokenizer, *dialogues: tuple[str, ...]):
    made = []
    for texts in dialogues:
        example = chat.dialogue(
            [Message(role="assistant" if i % 2 else "user", content=text) for i, text in enumerate(texts)]
        )
        assert example is not None
        made.append(example)
    return made


def test_the_loss_is_that_of_transformers_with_ignored_labels(tiny_base: Path, chat: ChatTokenizer):
    batch = answer_batch(
        examples(chat, ("Hallo", "Hi", "How are you?", "I am fine."), ("Capital?", "Stockholm.")), chat.pad_id
    )
    reference = LlamaForCausalLM.from_pretrained(tiny_base, dtype=torch.float32)
    labels = batch["tokens"].masked_fill(~batch["answer"], -100)
    padding = torch.arange(labels.shape[1]) >= batch["length"][:, None]
    expected = reference(input_ids=batch["tokens"], attention_mask=(~padding).long(), labels=labels).loss
    mine = answer_loss(load_model(tiny_base), batch) / answer_targets(batch)
    assert float(mine.detach()) == pytest.approx(float(expected.detach()), abs=1e-5)


def test_padding_does_not_change_the_loss_or_its_gradient(tiny_base: Path, chat: ChatTokenizer):
    short, long = examples(
        chat, ("Hallo", "Hi"), ("What is the capital?", "Stockholm is the capital of Sweden.")
    )
    model = load_model(tiny_base)

    def gradient(*batches: list) -> torch.Tensor:
        model.zero_grad()
        for batch in batches:
            answer_loss(model, answer_batch(batch, chat.pad_id)).backward()
        assert model.lm_head.weight.grad is not None
        return model.lm_head.weight.grad.clone()

    torch.testing.assert_close(gradient([short, long]), gradient([short], [long]), atol=1e-5, rtol=1e-4)


def test_labels_are_shifted_once(tiny_base: Path, chat: ChatTokenizer):
    """Overfitted on one answer, the model says that answer after its prompt and then ends."""
    model = load_model(tiny_base).train()
    [example] = examples(chat, ("Hallo", "Hi Stockholm"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        answer_loss(model, answer_batch([example], chat.pad_id)).backward()
        optimizer.step()
    prompt = example.answer.index(True)
    said = model(torch.tensor([example.tokens[:-1]])).argmax(-1)[0, prompt - 1 :]
    assert said.tolist() == [*chat.encode("Hi Stockholm"), chat.eos_id]


@pytest.fixture
def instructions(tmp_path: Path) -> Path:
    directory = tmp_path / "instructions"
    directory.mkdir()
    colours = ["red", "blue", "green", "white", "black", "grey", "pink", "brown"]
    rows = [
        {"instruction": f"say {c}", "output": c, "split": "held_out" if i == 0 else "train"}
        for i, c in enumerate(colours)
    ]
    rows.append({"instruction": "long", "output": "x" * 500, "split": "train"})
    lines = [json.dumps(row).encode() for row in rows] + [b"{"]
    (directory / "a.jsonl.gz").write_bytes(gzip.compress(b"\n".join(lines)))
    return directory


def params(**changes: object) -> SftParams:
    content = {
        "steps": 12,
        "batch_size": 4,
        "micro_batch_size": 2,
        "context": 64,
        "precision": "fp32",
        "optimizer": {"learning_rate": 1e-2},
        "max_broken": 0.2,
        "max_too_long": 0.2,
        "checkpoint_every": 5,
        **changes,
    }
    return validate(content, SftParams, "sft")


def run(base: Path, instructions: Path, tmp_path: Path, name: str = "tuned", **changes: object):
    resources = Resources(work=tmp_path / f"work-{name}", training=TrainingResources(devices=1, threads=1))
    return sft(base, instructions, tmp_path / name, params(**changes), resources, Tracker())


def test_tuning_lowers_the_held_out_answer_loss_and_accounts_for_every_row(
    tiny_base: Path, instructions: Path, tmp_path: Path
):
    report = run(tiny_base, instructions, tmp_path)
    assert report.tuned.loss < report.base.loss
    assert report.rows.model_dump(exclude={"broken_rows"}) == {
        "read": 10,
        "used": 8,
        "broken": 1,
        "too_long": 1,
    }
    assert report.rows.broken_rows[0].startswith("a.jsonl.gz:10: Invalid JSON")
    assert (report.train_examples, report.held_out_examples) == (7, 1)
    history = [json.loads(line) for line in (tmp_path / "tuned" / "history.jsonl").read_text().splitlines()]
    assert history[-1]["validation_loss"] == report.tuned.loss


def test_the_tuned_model_loads_in_transformers_and_keeps_its_tokenizer(
    tiny_base: Path, instructions: Path, tmp_path: Path
):
    run(tiny_base, instructions, tmp_path)
    tuned = tmp_path / "tuned"
    tokens = torch.randint(5, 300, (2, 7))
    expected = LlamaForCausalLM.from_pretrained(tuned, dtype=torch.float32)(input_ids=tokens).logits
    torch.testing.assert_close(load_model(tuned)(tokens), expected, atol=1e-4, rtol=1e-4)
    assert (tuned / "tokenizer.json").read_bytes() == (tiny_base / "tokenizer.json").read_bytes()


def test_the_same_seed_gives_the_same_bytes(tiny_base: Path, instructions: Path, tmp_path: Path):
    reports = [run(tiny_base, instructions, tmp_path, name) for name in ("one", "two")]
    assert reports[0] == reports[1]
    for file in ("model.safetensors", "history.jsonl"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_too_many_long_answers_stop_the_stage(tiny_base: Path, instructions: Path, tmp_path: Path):
    with pytest.raises(StageError, match=r"1 of 10 rows are too long.*max_too_long = 0\.05"):
        run(tiny_base, instructions, tmp_path, max_too_long=0.05)
    assert not (tmp_path / "tuned").exists()


def test_a_context_beyond_the_models_is_refused(tiny_base: Path, instructions: Path, tmp_path: Path):
    with pytest.raises(StageError, match=r"sft\.context is 65.*64 positions"):
        run(tiny_base, instructions, tmp_path, context=65)


def test_a_tokenizer_of_another_model_is_refused(tiny_base: Path, instructions: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    for path in tiny_base.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    settings = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(settings | {"eos_token_id": 7}))
    with pytest.raises(StageError, match="eos_token_id 7"):
        run(other, instructions, tmp_path)
