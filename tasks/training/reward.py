"""The reward model: learns from preference pairs to score an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor, nn

from models.heads import RewardModel
from tasks.resources import Resources
from tasks.stage import Input, Output, StageError, StageReport, Tracker, run_as_stage, stage
from tasks.training.allocator import keep_freed_memory
from tasks.training.chat import ChatTokenizer
from tasks.training.checkpoints import discard_when_published
from tasks.training.fingerprint import fingerprint
from tasks.training.instructions import Split
from tasks.training.json_lines import RowCounts, Rows, read_rows
from tasks.training.model_directory import open_model, write_model
from tasks.training.order import batch_at, seed_of
from tasks.training.precision import ResolvedPrecision, autocast, choose_device, resolve_precision
from tasks.training.preference_loss import bradley_terry_loss
from tasks.training.preferences import PreferenceRow
from tasks.training.rows_of_tokens import last_positions, pad_right
from tasks.training.trainer import Batch, Examples, Objective, TrainerParams, fit, micro_batches


class RewardParams(TrainerParams):
    """Parameters of `reward`; a batch counts pairs."""

    context: int = Field(256, ge=8, description="longest prompt and answer together, in tokens")
    centring: float = Field(0.01, ge=0, description="weight of the square of a pair's summed rewards")
    max_broken: float = Field(
        0.01, ge=0, le=1, description="share of broken rows above which the stage stops"
    )
    max_too_long: float = Field(
        0.2, ge=0, le=1, description="the same for answers that do not fit the context"
    )


class RewardReport(StageReport):
    """What `reward` did. Accuracies are shares of held-out pairs whose chosen answer scores higher."""

    rows: RowCounts
    train_pairs: int
    held_out_pairs: int
    steps: int
    precision: str
    train_loss: float
    held_out_loss: float
    accuracy: float
    accuracy_by_rule: dict[str, float]
    pairs_by_rule: dict[str, int]
    chosen_mean: float
    rejected_mean: float
    score_deviation: float
    length_correlation: float
    """Between score and length in tokens over all held-out answers (Pearson)."""


@dataclass(frozen=True)
class Pair:
    """Token ids of a prompt with the chosen and with the rejected answer, each up to and with its EOS."""

    chosen: list[int]
    rejected: list[int]
    rule: str


@discard_when_published
@stage
def reward(
    tuned: Input,
    preferences: Input,
    reward: Output,
    params: RewardParams,
    resources: Resources,
    tracker: Tracker,
) -> RewardReport:
    """Train a scalar head and the tuned model's trunk to score the chosen answer of each pair higher.

    Raises:
        StageError: if the model, its tokenizer or the rows are not as they should be.
    """
    keep_freed_memory()
    device = choose_device(resources.training)
    precision = resolve_precision(params.precision, device)
    language_model, chat = open_model(tuned)
    positions = language_model.config.max_position_embeddings
    if params.context > positions:
        raise StageError(f"reward.context is {params.context}, but {tuned} has {positions} positions")
    rows = read_rows(preferences, PreferenceRow, max_broken=params.max_broken)
    split = preference_pairs(rows, chat, params.context)
    train, held_out = split["train"], split["held_out"]
    counts = rows.counts(used=len(train) + len(held_out))
    counts.check_too_long(preferences, params.max_too_long)
    if not train or not held_out:
        raise StageError(
            f"{preferences}: reward needs rows with split `train` and rows with split `held_out`"
        )
    model = RewardModel.from_trunk(language_model.model, seed_of(params.seed, 0))

    def held_out_batches() -> Iterator[Batch]:
        return micro_batches(pair_batch(_by_length(held_out), chat.pad_id), params.micro_batch_size)

    def at_step(step: int) -> Batch:
        chosen = batch_at(step - 1, rows=len(train), batch=params.batch_size, seed=params.seed)
        return pair_batch(_by_length([train[i] for i in chosen]), chat.pad_id)

    resolved = params.model_copy(update={"precision": precision})
    result = fit(
        model,
        preference_objective(params.centring),
        Examples(at_step, held_out_batches),
        params,
        fingerprint("reward", [tuned, preferences], resolved),
        resources,
        tracker,
    )
    write_model(model, reward, tokenizer_from=tuned, history=result.history)
    chosen_N, rejected_N = score_pairs(model, held_out, chat.pad_id, params.micro_batch_size, precision)
    right_N = chosen_N > rejected_N
    by_rule = {
        rule: [i for i, pair in enumerate(held_out) if pair.rule == rule]
        for rule in sorted({pair.rule for pair in held_out})
    }
    scores_M = torch.cat((chosen_N, rejected_N))
    lengths_M = torch.tensor([len(p.chosen) for p in held_out] + [len(p.rejected) for p in held_out]).float()
    return RewardReport(
        rows=counts,
        train_pairs=len(train),
        held_out_pairs=len(held_out),
        steps=result.steps,
        precision=result.precision,
        train_loss=result.train_loss,
        held_out_loss=result.validation["loss"],
        accuracy=float(right_N.float().mean()),
        accuracy_by_rule={rule: float(right_N[index].float().mean()) for rule, index in by_rule.items()},
        pairs_by_rule={rule: len(index) for rule, index in by_rule.items()},
        chosen_mean=float(chosen_N.mean()),
        rejected_mean=float(rejected_N.mean()),
        score_deviation=float(scores_M.std()),
        length_correlation=_correlation(scores_M, lengths_M),
    )


def preference_pairs(rows: Rows[PreferenceRow], chat: ChatTokenizer, context: int) -> dict[Split, list[Pair]]:
    """The pairs of each split in the order of the rows, but for those whose longer answer does not fit."""
    split: dict[Split, list[Pair]] = {"train": [], "held_out": []}
    for row in rows.good:
        sides = chat.pair(row.prompt, row.chosen, row.rejected, context)
        if sides is not None:
            split[row.split].append(Pair(sides[0].tokens, sides[1].tokens, row.rule))
    return split


def pair_batch(pairs: Sequence[Pair], pad_id: int) -> Batch:
    """tokens_B2T, the chosen and the rejected side of each pair, and last_B2, where their EOS stands."""
    sides = [side for pair in pairs for side in (pair.chosen, pair.rejected)]
    return {
        "tokens": pad_right(sides, pad_id).unflatten(0, (-1, 2)),
        "last": last_positions(sides).unflatten(0, (-1, 2)),
    }


def pair_scores(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """chosen_B and rejected_B, each read at its EOS."""
    # A micro-batch is cut from a batch and may be narrower than it.
    width = int(batch["last"].max()) + 1
    scores_B2 = model(batch["tokens"][..., :width].flatten(0, 1), batch["last"].flatten()).unflatten(
        0, (-1, 2)
    )
    return scores_B2[:, 0], scores_B2[:, 1]


def preference_objective(centring: float) -> Objective:
    """The Bradley-Terry loss, and the number of pairs ranked rightly."""

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        return bradley_terry_loss(*pair_scores(model, batch), centring=centring)

    def measures(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        chosen_B, rejected_B = pair_scores(model, batch)
        return {"accuracy": (chosen_B > rejected_B).sum()}

    return Objective(loss=loss, targets=lambda batch: len(batch["tokens"]), measures=measures, unit="pairs")


@torch.no_grad()
def score_pairs(
    model: RewardModel, pairs: Sequence[Pair], pad_id: int, batch: int, precision: ResolvedPrecision
) -> tuple[Tensor, Tensor]:
    """chosen_N and rejected_N in the order of the pairs."""
    scored = []
    for first in range(0, len(pairs), batch):
        with autocast(precision, model.score.weight.device):
            scored.append(pair_scores(model, pair_batch(pairs[first : first + batch], pad_id)))
    chosen, rejected = zip(*scored, strict=True)
    return torch.cat(chosen), torch.cat(rejected)


def _by_length(pairs: list[Pair]) -> list[Pair]:
    return sorted(pairs, key=lambda pair: max(len(pair.chosen), len(pair.rejected)))


def _correlation(x_N: Tensor, y_N: Tensor) -> float:
    """Pearson's; 0 where one of them does not vary."""
    value = float(torch.corrcoef(torch.stack((x_N, y_N)))[0, 1])
    return value if value == value else 0.0


if __name__ == "__main__":
    run_as_stage(reward)
