from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from models.heads import RewardModel, ValueModel
from models.hub import load_model, save_model
from models.transformer import CausalLM
from tasks.parameters import validate
from tasks.resources import Resources, TrainingResources
from tasks.stage import StageError, Tracker
from tasks.training.chat import ChatTokenizer, Message
from tasks.training.optimizer import adamw
from tasks.training.ppo import ppo
from tasks.training.ppo_update import PpoParams, PpoState, gather_experience, minibatch_loss, ppo_update
from tasks.training.rollout import Sampling, respond

SAMPLING = Sampling(max_new_tokens=8, temperature=1.0)


def params(**changes: object) -> PpoParams:
    content = {
        "updates": 3,
        "prompts": 8,
        "epochs": 2,
        "minibatches": 2,
        "max_prompt_tokens": 24,
        "max_new_tokens": 8,
        "precision": "fp32",
        "missing_eos_penalty": 0.0,
        "optimizer": {"learning_rate": 3e-3, "weight_decay": 0.0},
        "held_out_prompts": 4,
        **changes,
    }
    return validate(content, PpoParams, "ppo")


def likes_even_endings(tokens_BT: Tensor, last_B: Tensor) -> Tensor:
    """1 for a text whose last token before its end has an even id, else 0."""
    return (tokens_BT.gather(1, last_B[:, None] - 1)[:, 0] % 2 == 0).float()


@pytest.fixture
def reference(tiny_base: Path) -> CausalLM:
    return load_model(tiny_base).eval().requires_grad_(False)


@pytest.fixture
def prompts(chat: ChatTokenizer) -> list[list[int]]:
    return [chat.prompt([Message(role="user", content=f"say {i}")]) for i in range(16)]


def beginning(tiny_base: Path, p: PpoParams) -> PpoState:
    policy = load_model(tiny_base).eval()
    value = ValueModel.from_trunk(policy.model, 0)
    optimizer = adamw(nn.ModuleDict({"policy": policy, "value": value}), p.optimizer)
    return PpoState(policy, value, optimizer, p.kl.coefficient, 0, [])


def learn_one_token(tiny_base: Path, chat: ChatTokenizer, prompts: list[list[int]], coefficient: float):
    p = params(
        kl={"kind": "fixed", "coefficient": coefficient},
        prompts=64,
        epochs=4,
        optimizer={"learning_rate": 1e-3, "weight_decay": 0.0},
    )
    state, reference = beginning(tiny_base, p), load_model(tiny_base).eval()
    one = Sampling(max_new_tokens=1, temperature=1.0)
    return [ppo_update(state, reference, likes_even_endings, chat, prompts, p, one) for _ in range(20)]


def test_a_simple_reward_is_soon_learnt(tiny_base, chat, prompts):
    history = learn_one_token(tiny_base, chat, prompts, coefficient=0.0)
    assert sum(entry["reward"] for entry in history[:3]) / 3 < 0.6
    assert sum(entry["reward"] for entry in history[-3:]) / 3 > 0.7


def test_a_penalty_on_divergence_holds_the_policy_back(tiny_base, chat, prompts):
    free, held = (learn_one_token(tiny_base, chat, prompts, coefficient)[-1] for coefficient in (0.0, 5.0))
    assert abs(held["kl_per_token"]) < 0.2 * free["kl_per_token"]


def test_before_the_first_step_the_ratio_is_1_and_the_divergence_0(tiny_base, reference, chat, prompts):
    p = params()
    state = beginning(tiny_base, p)
    responses = respond(
        state.policy, likes_even_endings, chat, prompts[:8], SAMPLING, torch.Generator().manual_seed(0)
    )
    experience, measured = gather_experience(state, reference, responses, p, SAMPLING)
    _, parts = minibatch_loss(state.policy, state.value, experience, p, SAMPLING)
    assert measured["kl_per_token"] == 0.0
    assert parts["clip_share"] == 0.0
    # Advantages are whitened: with every ratio at 1 the surrogate is their mean, which is 0.
    assert parts["policy_loss"] == pytest.approx(0.0, abs=1e-6)


def test_a_loss_that_is_not_finite_stops_and_changes_no_weight(tiny_base, reference, chat, prompts):
    p = params()
    state = beginning(tiny_base, p)
    before = {name: tensor.clone() for name, tensor in state.policy.state_dict().items()}
    with pytest.raises(StageError, match=r"update 1: the loss is nan"):
        ppo_update(state, reference, lambda tokens, last: last * float("nan"), chat, prompts, p, SAMPLING)
    for name, tensor in state.policy.state_dict().items():
        assert torch.equal(tensor, before[name])


@pytest.fixture
def inputs(tiny_base: Path, tmp_path: Path) -> tuple[Path, Path, Path]:
    """The tuned model, a reward model, and instructions."""
    reward = tmp_path / "reward"
    save_model(RewardModel.from_trunk(load_model(tiny_base).model, 1), reward)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (reward / name).write_bytes((tiny_base / name).read_bytes())
    rows = [
        {"instruction": f"say {i}", "output": "x", "split": "held_out" if i % 3 == 0 else "train"}
        for i in range(15)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tiny_base, reward, tmp_path / "rows.jsonl"


class KilledAt(Tracker):
    """Ends the process's work at an update, as a kill would between two checkpoints."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def metrics(self, values: dict[str, float], step: int = 0) -> None:
        if step == self.step:
            raise KeyboardInterrupt


def run(inputs, tmp_path: Path, name: str, tracker: Tracker | None = None, **changes: object):
    resources = Resources(work=tmp_path / f"work-{name}", training=TrainingResources(devices=1, threads=1))
    tuned, reward, rows = inputs
    return ppo(tuned, reward, rows, tmp_path / name, params(**changes), resources, tracker or Tracker())


def test_the_stage_reports_both_models_on_held_out_prompts(inputs, tmp_path: Path):
    report = run(inputs, tmp_path, "aligned")
    assert (report.train_prompts, report.held_out_prompts, report.updates) == (10, 4, 3)
    assert report.comparison.kl_per_token > 0
    assert report.comparison.kl_per_response == pytest.approx(
        report.comparison.kl_per_token * report.comparison.aligned.response_tokens
    )
    history = [json.loads(line) for line in (tmp_path / "aligned" / "history.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in history] == [1, 2, 3]
    assert {
        "reward", "kl_per_token", "entropy", "clip_share", "value_loss", "response_tokens", "eos_rate"
    } <= history[0].keys()  # fmt: skip
    load_model(tmp_path / "aligned")
    assert (tmp_path / "aligned" / "tokenizer.json").read_bytes() == (
        inputs[0] / "tokenizer.json"
    ).read_bytes()


def test_a_killed_run_ends_with_the_bytes_of_an_undisturbed_one(inputs, tmp_path: Path):
    whole = run(inputs, tmp_path, "whole", updates=4, checkpoint_every=2)
    with pytest.raises(KeyboardInterrupt):
        run(inputs, tmp_path, "killed", KilledAt(4), updates=4, checkpoint_every=2)
    assert not (tmp_path / "killed").exists()
    assert list((tmp_path / "work-killed").rglob("step-00000002"))
    resumed = run(inputs, tmp_path, "killed", updates=4, checkpoint_every=2)
    assert resumed == whole
    for file in ("model.safetensors", "history.jsonl"):
        assert (tmp_path / "killed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_a_reward_model_with_another_tokenizer_is_refused(inputs, tmp_path: Path):
    path = inputs[1] / "tokenizer.json"
    content = json.loads(path.read_text())
    vocabulary = content["model"]["vocab"]
    a, b = list(vocabulary)[20:22]
    vocabulary[a], vocabulary[b] = vocabulary[b], vocabulary[a]
    path.write_text(json.dumps(content))
    with pytest.raises(StageError, match="different tokenizers"):
        run(inputs, tmp_path, "aligned")


def test_prompts_and_responses_beyond_the_models_positions_are_refused(inputs, tmp_path: Path):
    with pytest.raises(StageError, match=r"24 .*60 .*64 positions"):
        run(inputs, tmp_path, "aligned", max_new_tokens=60)
