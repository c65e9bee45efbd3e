import math
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tasks.parameters import ParameterError
from tasks.resources import Resources, TrainingResources
from tasks.stage import StageError
from tasks.training.checkpoints import CheckpointError
from tasks.training.fingerprint import Fingerprint
from tasks.training.objective import Batch, Examples, Objective, evaluate
from tasks.training.optimizer import OptimizerParams, adamw
from tasks.training.schedule import ScheduleParams, learning_rate_ratio
from tasks.training.trainer import FitResult, TrainerParams, TrainingDiverged, fit

RUN = Fingerprint("tiny", data="a", code="b", parameters="c")


class Network(nn.Module):
    """Two layers with dropout, which makes the generator's state matter."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(3, 8)
        self.norm = nn.LayerNorm(8)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.dropout(torch.relu(self.norm(self.first(x)))))


def network(dropout: float = 0.0) -> Network:
    torch.manual_seed(1)
    return Network(dropout)


def batch_at(step: int) -> Batch:
    """Six rows of which those with a mask are targets: not the same number in each micro-batch."""
    generator = torch.Generator().manual_seed(step)
    mask = torch.tensor([True, True, True, True, step % 2 == 0, False])
    return {"x": torch.randn(6, 3, generator=generator), "mask": mask}


def squared_error(model: nn.Module, batch: Batch) -> Tensor:
    error = model(batch["x"]).squeeze(-1) - batch["x"].sum(1)
    return (error[batch["mask"]] ** 2).sum()


SQUARED_ERROR = Objective(loss=squared_error, targets=lambda batch: int(batch["mask"].sum()))


def train(
    model: nn.Module,
    work: Path,
    *,
    at_step: Callable[[int], Batch] = batch_at,
    objective: Objective = SQUARED_ERROR,
    training: TrainingResources | None = None,
    **params: Any,
) -> FitResult:
    settings = TrainerParams(
        **({"steps": 20, "log_every": 3, "validate_every": 8, "precision": "fp32"} | params)
    )
    resources = Resources(work=work, training=training or TrainingResources(threads=1))
    return fit(model, objective, Examples(at_step, lambda: [batch_at(999)]), settings, RUN, resources)


def test_sigterm_finishes_the_step_saves_it_and_ends_with_its_status(tmp_path):
    def at_step(asked: int) -> Batch:
        if asked == 7:
            os.kill(os.getpid(), signal.SIGTERM)
        return batch_at(asked)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as stopped:
        train(network(0.3), tmp_path / "a", at_step=at_step, checkpoint_every=5)
    assert stopped.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == before
    names = sorted(path.name for path in (tmp_path / "a").rglob("step-*"))
    assert names == ["step-00000005", "step-00000007"]
    resumed, undisturbed = network(0.3), network(0.3)
    asked: list[int] = []

    def noted(step: int) -> Batch:
        asked.append(step)
        return batch_at(step)

    found = train(resumed, tmp_path / "a", at_step=noted, checkpoint_every=5)
    assert asked[0] == 8
    assert found == train(undisturbed, tmp_path / "b", checkpoint_every=5)
    assert all(map(torch.equal, resumed.parameters(), undisturbed.parameters()))


class Interrupted(Exception):
    pass


def interrupted_at(step: int) -> Callable[[int], Batch]:
    def at_step(asked: int) -> Batch:
        if asked == step:
            raise Interrupted
        return batch_at(asked)

    return at_step


def equal(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_the_split_into_micro_batches_with_unequal_targets_changes_nothing(tmp_path):
    whole, split = network(), network()
    first = train(whole, tmp_path / "whole", micro_batch_size=6)
    second = train(split, tmp_path / "split", micro_batch_size=4)
    for a, b in zip(whole.parameters(), split.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert [entry["step"] for entry in first.history] == [entry["step"] for entry in second.history]
    assert first.train_loss == pytest.approx(second.train_loss, rel=1e-5)
    assert first.targets_seen == second.targets_seen == 10 * 4 + 10 * 5


def test_the_steps_are_those_of_plain_pytorch(tmp_path):
    model, expected = network(), network()
    train(model, tmp_path, steps=5, micro_batch_size=2, schedule=ScheduleParams(warmup_steps=3))
    params = OptimizerParams()
    optimizer = adamw(expected, params)
    for step in range(1, 6):
        ratio = learning_rate_ratio(ScheduleParams(warmup_steps=3), step, 5)
        for group in optimizer.param_groups:
            group["lr"] = params.learning_rate * ratio
        batch = batch_at(step)
        loss = squared_error(expected, batch) / batch["mask"].sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(expected.parameters(), params.clip_norm)
        optimizer.step()
    for a, b in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_training_lowers_the_loss(tmp_path):
    result = train(network(), tmp_path, steps=150, optimizer=OptimizerParams(learning_rate=3e-2))
    assert result.train_loss < result.history[0]["loss"] / 10


@pytest.mark.parametrize("stop", [4, 10, 20])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_interrupted_run_ends_like_an_undisturbed_one(tmp_path, stop, precision):
    undisturbed, resumed = network(0.3), network(0.3)
    settings = {"checkpoint_every": 3, "micro_batch_size": 4, "precision": precision}
    expected = train(undisturbed, tmp_path / "a", **settings)
    with pytest.raises(Interrupted):
        train(resumed, tmp_path / "b", at_step=interrupted_at(stop), **settings)
    resumed = network(0.3)
    asked = []

    def recorded(step: int) -> Batch:
        asked.append(step)
        return batch_at(step)

    result = train(resumed, tmp_path / "b", at_step=recorded, **settings)
    # Steps after the newest checkpoint are replayed, those before it are not.
    assert asked == list(range((stop - 1) // 3 * 3 + 1, 21))
    assert equal(undisturbed, resumed)
    assert result == expected


def test_a_resume_says_where_it_begins_and_what_it_replays(tmp_path, caplog):
    caplog.set_level("INFO", "gristmill")
    with pytest.raises(Interrupted):
        train(network(), tmp_path, at_step=interrupted_at(16), checkpoint_every=10, log_every=1)
    train(network(), tmp_path, checkpoint_every=10, log_every=1)
    assert "step 10 of 20, 45 tokens seen; steps 11 to 15 are replayed" in caplog.text


def test_a_finished_run_that_is_asked_again_trains_no_step(tmp_path):
    first, second = network(), network()
    expected = train(first, tmp_path)
    result = train(second, tmp_path, at_step=interrupted_at(1))
    assert equal(first, second)
    assert result == expected


def test_the_generators_go_on_where_they_were(tmp_path):
    drawn: list[tuple[float, float, float]] = []

    def drawing(model: nn.Module, batch: Batch) -> Tensor:
        if model.training:
            drawn.append((random.random(), np.random.random(), torch.rand(()).item()))
        return squared_error(model, batch)

    objective = Objective(loss=drawing, targets=SQUARED_ERROR.targets)
    train(network(), tmp_path / "a", steps=8, checkpoint_every=4, objective=objective)
    undisturbed, drawn = drawn, []
    with pytest.raises(Interrupted):
        train(
            network(),
            tmp_path / "b",
            steps=8,
            checkpoint_every=4,
            objective=objective,
            at_step=interrupted_at(5),
        )
    assert drawn == undisturbed[:4]
    random.seed(99)
    drawn.clear()
    train(network(), tmp_path / "b", steps=8, checkpoint_every=4, objective=objective)
    assert drawn == undisturbed[4:]


def test_the_learning_rate_after_a_resume_is_that_of_the_step(tmp_path):
    settings = {
        "log_every": 1,
        "checkpoint_every": 7,
        "schedule": ScheduleParams(warmup_steps=5, min_ratio=0.0),
        "optimizer": OptimizerParams(learning_rate=0.5),
    }
    with pytest.raises(Interrupted):
        train(network(), tmp_path, at_step=interrupted_at(10), **settings)
    history = train(network(), tmp_path, **settings).history
    rates = [entry["learning_rate"] for entry in history if "learning_rate" in entry]
    expected = [0.5 * step / 5 for step in range(1, 6)]
    expected += [0.25 * (1 + math.cos(math.pi * (step - 5) / 15)) for step in range(6, 21)]
    assert rates == pytest.approx(expected)


def poisoned(name: str) -> Callable[[nn.Module, Batch], Tensor]:
    """The loss, with one NaN in the gradient of one parameter at the third step."""

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        value = squared_error(model, batch)
        if model.training and torch.equal(batch["x"], batch_at(3)["x"]) and value.requires_grad:
            parameter = dict(model.named_parameters())[name]
            value = value + (parameter.flatten()[0] - parameter.detach().flatten()[0]).clamp(min=0).sqrt() * 0
        return value

    return loss


@pytest.mark.parametrize("name", ["first.weight", "norm.weight", "last.bias"])
def test_a_nan_gradient_leaves_the_weights_and_names_the_layer(tmp_path, name):
    model, expected = network(), network()
    objective = Objective(loss=poisoned(name), targets=SQUARED_ERROR.targets)
    with pytest.raises(TrainingDiverged, match=rf"step 3: .* first bad layer: {name} \(its gradient\)"):
        train(model, tmp_path / "a", objective=objective, schedule=ScheduleParams(kind="constant"))
    train(expected, tmp_path / "b", steps=2, schedule=ScheduleParams(kind="constant"))
    assert equal(model, expected)


def test_an_infinite_output_names_the_layer_where_it_arose(tmp_path):
    def at_step(step: int) -> Batch:
        batch = batch_at(step)
        return batch if step < 3 else {**batch, "x": batch["x"] * math.inf}

    with pytest.raises(
        TrainingDiverged, match=r"step 3: the loss is nan .* first bad layer: first \(its output\)"
    ):
        train(network(), tmp_path, at_step=at_step)


def test_a_weight_that_is_no_number_is_named(tmp_path):
    model = network()
    with torch.no_grad():
        model.norm.bias[2] = math.nan
    with pytest.raises(TrainingDiverged, match=r"step 1: .* norm.bias \(the weight itself\)"):
        train(model, tmp_path)


def test_validation_is_a_mean_over_targets_not_over_batches():
    model = nn.Linear(1, 1)
    objective = Objective(
        loss=lambda _, batch: batch["x"].sum(),
        targets=lambda batch: len(batch["x"]),
        measures=lambda _, batch: {"ones": (batch["x"] == 1).sum()},
    )
    batches = [{"x": torch.tensor([1.0, 1.0, 1.0])}, {"x": torch.tensor([5.0])}]
    assert evaluate(model, objective, batches, "fp32", torch.device("cpu")) == {"loss": 2.0, "ones": 0.75}


def test_validation_is_without_dropout_and_leaves_the_mode(tmp_path):
    model = network(0.9).train()
    measured = [
        evaluate(model, SQUARED_ERROR, [batch_at(2)], "fp32", torch.device("cpu"))["loss"] for _ in range(2)
    ]
    assert measured[0] == measured[1]
    assert model.training


def test_the_history_has_the_steps_that_were_asked_for_and_always_the_last(tmp_path):
    history = train(network(), tmp_path, log_every=6, validate_every=8).history
    assert [entry["step"] for entry in history if "loss" in entry] == [6, 12, 18, 20]
    assert [entry["step"] for entry in history if "validation_loss" in entry] == [8, 16, 20]


def test_a_logged_loss_is_the_mean_over_the_targets_since_the_last_entry(tmp_path):
    each = [entry for entry in train(network(), tmp_path / "a", log_every=1).history if "loss" in entry]
    pairs = [entry for entry in train(network(), tmp_path / "b", log_every=2).history if "loss" in entry]
    # An odd step has four targets, an even one five.
    expected = [(4 * each[i]["loss"] + 5 * each[i + 1]["loss"]) / 9 for i in range(0, 20, 2)]
    assert [entry["loss"] for entry in pairs] == pytest.approx(expected)


def test_weight_decay_spares_norms_and_biases():
    groups = adamw(network(), OptimizerParams(weight_decay=0.3)).param_groups
    decays = {tuple(p.shape): group["weight_decay"] for group in groups for p in group["params"]}
    assert decays == {(8, 3): 0.3, (1, 8): 0.3, (8,): 0.0, (1,): 0.0}


def test_a_step_without_targets_is_an_error_that_names_it(tmp_path):
    def at_step(step: int) -> Batch:
        batch = batch_at(step)
        return batch if step < 2 else {**batch, "mask": torch.zeros(6, dtype=torch.bool)}

    with pytest.raises(StageError, match="the batch of step 2 holds no tokens to learn from"):
        train(network(), tmp_path, at_step=at_step)


def test_a_second_trainer_on_the_same_run_is_refused(tmp_path):
    def at_step(step: int) -> Batch:
        train(network(), tmp_path)
        return batch_at(step)

    with pytest.raises(CheckpointError, match="in use by another training process"):
        train(network(), tmp_path, at_step=at_step)


def test_more_devices_than_one_are_refused_by_the_key(tmp_path):
    with pytest.raises(ParameterError, match=r"training\.devices is 2"):
        train(network(), tmp_path, training=TrainingResources(devices=2))


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_that_is_not_there_is_refused_by_the_key(tmp_path):
    with pytest.raises(ParameterError, match=r"training\.accelerator is gpu"):
        train(network(), tmp_path, training=TrainingResources(accelerator="gpu"))


def test_nothing_of_lightning_is_on_the_screen(tmp_path, capfd):
    train(network(), tmp_path)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "ightning" not in captured.err
