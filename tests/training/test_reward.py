from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from transformers import LlamaForSequenceClassification

from models.heads import RewardModel
from models.hub import load_model, load_reward_model, save_model
from tasks.parameters import validate
from tasks.resources import Resources, TrainingResources
from tasks.stage import Tracker
from tasks.training.chat import ChatTokenizer
from tasks.training.preference_loss import bradley_terry_loss
from tasks.training.reward import Pair, RewardParams, pair_batch, pair_scores, reward, score_pairs

PAIRS = [
    ("What is the capital?", "Stockholm is the capital of Sweden.", "Stock"),
    ("Hallo", "Hi", "x x x x x x"),
    ("How are you?", "I am fine.", "am I."),
]


def pairs(chat: ChatTokenizer) -> list[Pair]:
    made = []
    for prompt, chosen, rejected in PAIRS:
        sides = chat.pair(prompt, chosen, rejected, 64)
        assert sides is not None
        made.append(Pair(sides[0].tokens, sides[1].tokens, "cut"))
    return made


@pytest.fixture
def reward_directory(tiny_base: Path, tmp_path: Path) -> Path:
    save_model(RewardModel.from_trunk(load_model(tiny_base).model, 1), tmp_path / "scorer")
    return tmp_path / "scorer"


def test_a_score_is_that_of_transformers_at_the_answers_end(reward_directory: Path, chat: ChatTokenizer):
    model = load_reward_model(reward_directory)
    reference = LlamaForSequenceClassification.from_pretrained(reward_directory, dtype=torch.float32)
    scores = torch.stack(pair_scores(model, pair_batch(pairs(chat), chat.pad_id)), 1).detach()
    for row, pair in zip(scores, pairs(chat), strict=True):
        for score, side in zip(row, (pair.chosen, pair.rejected), strict=True):
            assert side[-1] == chat.eos_id
            expected = reference(input_ids=torch.tensor([side])).logits[0, 0]
            assert float(score) == pytest.approx(float(expected.detach()), abs=1e-5)


def test_the_gradient_is_that_of_transformers_scores(reward_directory: Path, chat: ChatTokenizer):
    model = load_reward_model(reward_directory)
    loss = bradley_terry_loss(*pair_scores(model, pair_batch(pairs(chat), chat.pad_id)), centring=0.0)
    loss.backward()
    reference = LlamaForSequenceClassification.from_pretrained(reward_directory, dtype=torch.float32)
    expected = torch.zeros(())
    for pair in pairs(chat):
        chosen, rejected = (
            reference(input_ids=torch.tensor([side])).logits[0, 0] for side in (pair.chosen, pair.rejected)
        )
        expected = expected - torch.log(torch.sigmoid(chosen - rejected))
    expected.backward()
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), abs=1e-5)
    torch.testing.assert_close(model.score.weight.grad, reference.score.weight.grad, atol=1e-5, rtol=1e-4)


def test_equal_scores_lose_ln_2_and_are_drawn_to_0():
    scores = torch.tensor([3.0, 3.0])
    assert float(bradley_terry_loss(scores, scores, centring=0.0)) == pytest.approx(2 * math.log(2))
    loss = bradley_terry_loss(scores[:1], scores[1:], centring=0.1)
    assert float(loss) == pytest.approx(math.log(2) + 0.1 * 36)


def test_what_else_is_in_the_batch_does_not_change_a_score(reward_directory: Path, chat: ChatTokenizer):
    model = load_reward_model(reward_directory)
    together = score_pairs(model, pairs(chat), chat.pad_id, 3, "fp32")
    alone = score_pairs(model, pairs(chat), chat.pad_id, 1, "fp32")
    torch.testing.assert_close(torch.stack(together), torch.stack(alone), atol=1e-5, rtol=1e-4)


def run(base: Path, tmp_path: Path, name: str):
    rows = [
        {
            "prompt": f"say {i}",
            "chosen": f"{i} yes {i}.",
            "rejected": f"{i} no {i}.",
            "rule": rule,
            "split": split,
        }
        for i in range(12)
        for rule, split in [("even" if i % 2 == 0 else "odd", "held_out" if i < 4 else "train")]
    ]
    rows.append({"prompt": "long", "chosen": "x" * 500, "rejected": "y", "rule": "odd", "split": "train"})
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    content = {
        "steps": 30,
        "batch_size": 8,
        "micro_batch_size": 4,
        "context": 64,
        "precision": "fp32",
        "optimizer": {"learning_rate": 1e-2},
    }
    params = validate(content, RewardParams, "reward")
    resources = Resources(work=tmp_path / f"work-{name}", training=TrainingResources(devices=1, threads=1))
    return reward(base, path, tmp_path / name, params, resources, Tracker())


def test_it_learns_which_answer_is_better_and_reports_by_rule(tiny_base: Path, tmp_path: Path):
    report = run(tiny_base, tmp_path, "reward")
    assert report.accuracy == 1.0
    assert report.accuracy_by_rule == {"even": 1.0, "odd": 1.0}
    assert report.pairs_by_rule == {"even": 2, "odd": 2}
    assert report.chosen_mean > report.rejected_mean
    assert (report.rows.read, report.rows.used, report.rows.too_long) == (13, 12, 1)
    assert LlamaForSequenceClassification.from_pretrained(tmp_path / "reward").config.num_labels == 1


def test_the_same_seed_gives_the_same_bytes(tiny_base: Path, tmp_path: Path):
    assert run(tiny_base, tmp_path, "one") == run(tiny_base, tmp_path, "two")
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two
