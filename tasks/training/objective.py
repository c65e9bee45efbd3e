"""What a training stage brings to the shared loop: its loss and its examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tasks.stage import StageError
from tasks.training.precision import ResolvedPrecision, autocast

Batch = dict[str, Tensor]
"""Named tensors whose first dimension is the row (an example); a micro-batch is some of the rows."""


@dataclass(frozen=True)
class Objective:
    """What training minimises, as pure functions of a micro-batch.

    loss: ``(model, micro_batch)`` to the loss summed over the micro-batch's targets, a scalar with gradient.
    targets: ``(batch)`` to the number of its targets, without a forward pass.
    measures: ``(model, micro_batch)`` to further sums over the targets, such as the number ranked rightly;
        validation reports each divided by the number of targets.
    after_update: ``(model)``, once after each optimizer step, for what the gradient does not move.
    unit: what a target is, in the plural, for the log.
    """

    loss: Callable[[nn.Module, Batch], Tensor]
    targets: Callable[[Batch], int]
    measures: Callable[[nn.Module, Batch], dict[str, Tensor]] | None = None
    after_update: Callable[[nn.Module], None] | None = None
    unit: str = "tokens"


@dataclass(frozen=True)
class Examples:
    """Where batches come from.

    at_step: step (1 … steps) to the whole batch of that optimizer step; a pure function, asked in any order.
    validation: a new pass over the validation examples, in micro-batches; each example exactly once.
    """

    at_step: Callable[[int], Batch]
    validation: Callable[[], Iterable[Batch]]


def evaluate(
    model: nn.Module,
    objective: Objective,
    batches: Iterable[Batch],
    precision: ResolvedPrecision,
    device: torch.device,
) -> dict[str, float]:
    """``loss`` and the objective's measures, as means per target over all batches, whatever their sizes.

    Raises:
        StageError: if the batches hold no target.
    """
    sums: dict[str, float] = {}
    targets = 0
    was_training = model.training
    model.eval()
    with torch.no_grad(), autocast(precision, device):
        for batch in batches:
            batch = _to_device(batch, device)
            targets += objective.targets(batch)
            measured = {"loss": objective.loss(model, batch)}
            if objective.measures is not None:
                measured |= objective.measures(model, batch)
            for name, value in measured.items():
                sums[name] = sums.get(name, 0.0) + float(value)
    model.train(was_training)
    if targets == 0:
        raise StageError(f"the validation examples hold no {objective.unit} to score")
    return {name: value / targets for name, value in sums.items()}


def micro_batches(batch: Batch, size: int) -> Iterator[Batch]:
    """Split a batch along its rows into pieces of ``size``; the last may be smaller."""
    rows = len(next(iter(batch.values())))
    for first in range(0, rows, size):
        yield {name: tensor[first : first + size] for name, tensor in batch.items()}


def _to_device(batch: Batch, device: torch.device) -> Batch:
    return {name: tensor.to(device) for name, tensor in batch.items()}
