"""Supervised fine-tuning: the base model learns to answer, from instructions and dialogues."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from pydantic import Field
from torch import Tensor, nn

from models.transformer import CausalLM
from tasks.resources import Resources
from tasks.stage import Input, Output, StageError, StageReport, Tracker, run_as_stage, stage
from tasks.training.allocator import keep_freed_memory
from tasks.training.chat import ChatTokenizer, Example
from tasks.training.checkpoints import discard_when_published
from tasks.training.fingerprint import fingerprint
from tasks.training.instructions import InstructionRow, Split
from tasks.training.json_lines import RowCounts, Rows, read_rows
from tasks.training.losses import token_cross_entropy
from tasks.training.model_directory import open_model, write_model
from tasks.training.order import batch_at
from tasks.training.precision import choose_device, resolve_precision
from tasks.training.rows_of_tokens import last_positions, pad_right
from tasks.training.trainer import Batch, Examples, Objective, TrainerParams, evaluate, fit, micro_batches


class SftParams(TrainerParams):
    """Parameters of `sft`."""

    context: int = Field(256, ge=8, description="longest dialogue in tokens")
    max_broken: float = Field(
        0.01, ge=0, le=1, description="share of broken rows above which the stage stops"
    )
    max_too_long: float = Field(
        0.2, ge=0, le=1, description="the same for answers that do not fit the context"
    )


class AnswerLoss(StageReport):
    """Loss on held-out answers and their ends, weighted by token."""

    loss: float
    perplexity: float
    bits_per_byte: float


class SftReport(StageReport):
    """What `sft` did."""

    rows: RowCounts
    train_examples: int
    held_out_examples: int
    held_out_tokens: int
    steps: int
    tokens_learnt: int
    precision: str
    train_loss: float
    base: AnswerLoss
    tuned: AnswerLoss


@discard_when_published
@stage
def sft(
    base: Input,
    instructions: Input,
    tuned: Output,
    params: SftParams,
    resources: Resources,
    tracker: Tracker,
) -> SftReport:
    """Tune a language model on answers: the prompt is read, the answer and its end are learnt.

    Raises:
        StageError: if the model, its tokenizer or the rows are not as they should be.
    """
    keep_freed_memory()
    device = choose_device(resources.training)
    precision = resolve_precision(params.precision, device)
    model, chat = open_model(base)
    if params.context > model.config.max_position_embeddings:
        raise StageError(
            f"sft.context is {params.context}, but {base} has only "
            f"{model.config.max_position_embeddings} positions"
        )
    rows = read_rows(instructions, InstructionRow, max_broken=params.max_broken)
    split = dialogue_examples(rows, chat, params.context)
    train, held_out = split["train"], split["held_out"]
    counts = rows.counts(used=len(train) + len(held_out))
    counts.check_too_long(instructions, params.max_too_long)
    if not train or not held_out:
        raise StageError(f"{instructions}: sft needs rows with split `train` and rows with split `held_out`")

    def held_out_batches() -> Iterator[Batch]:
        return micro_batches(answer_batch(by_length(held_out), chat.pad_id), params.micro_batch_size)

    def at_step(step: int) -> Batch:
        chosen = batch_at(step - 1, rows=len(train), batch=params.batch_size, seed=params.seed)
        return answer_batch(by_length([train[i] for i in chosen]), chat.pad_id)

    answer_bytes = sum(_answer_bytes(example, chat) for example in held_out)
    tokens = sum(sum(example.answer) for example in held_out)
    before = evaluate(model.to(device), ANSWERS, held_out_batches(), precision, device)["loss"]
    resolved = params.model_copy(update={"precision": precision})
    result = fit(
        model,
        ANSWERS,
        Examples(at_step, held_out_batches),
        params,
        fingerprint("sft", [base, instructions], resolved),
        resources,
        tracker,
    )
    write_model(model, tuned, tokenizer_from=base, history=result.history)
    return SftReport(
        rows=counts,
        train_examples=len(train),
        held_out_examples=len(held_out),
        held_out_tokens=tokens,
        steps=result.steps,
        tokens_learnt=result.targets_seen,
        precision=result.precision,
        train_loss=result.train_loss,
        base=_answer_loss(before, tokens, answer_bytes),
        tuned=_answer_loss(result.validation["loss"], tokens, answer_bytes),
    )


def dialogue_examples(
    rows: Rows[InstructionRow], chat: ChatTokenizer, context: int
) -> dict[Split, list[Example]]:
    """The examples of each split in the order of the rows; rows whose answer does not fit are left out."""
    split: dict[Split, list[Example]] = {"train": [], "held_out": []}
    for row in rows.good:
        example = chat.dialogue(row.dialogue(), context)
        if example is not None:
            split[row.split].append(example)
    return split


def answer_batch(examples: Sequence[Example], pad_id: int) -> Batch:
    """tokens_BT, answer_BT (True on what is learnt) and length_B of examples padded on the right."""
    tokens = [example.tokens for example in examples]
    return {
        "tokens": pad_right(tokens, pad_id),
        "answer": pad_right([example.answer for example in examples], 0).bool(),
        "length": last_positions(tokens) + 1,
    }


def answer_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Cross-entropy summed over answer tokens; only they pass the output head."""
    # A micro-batch is cut from a batch and may be narrower than it.
    width = int(batch["length"].max())
    assert isinstance(model, CausalLM)
    tokens_BT, answer_BT = batch["tokens"][:, :width], batch["answer"][:, 1:width]
    hidden_NC = model.hidden(tokens_BT[:, :-1])[answer_BT]
    targets_1N = tokens_BT[:, 1:][answer_BT][None]
    return token_cross_entropy(model.lm_head(hidden_NC)[None], targets_1N, torch.ones_like(targets_1N).bool())


def answer_targets(batch: Batch) -> int:
    """Number of tokens that are learnt; nothing predicts the first token of a row."""
    return int(batch["answer"][:, 1:].sum())


ANSWERS = Objective(loss=answer_loss, targets=answer_targets)


def by_length(examples: list[Example]) -> list[Example]:
    """Examples of like length beside each other, so that micro-batches hold little padding."""
    return sorted(examples, key=lambda example: len(example.tokens))


def _answer_bytes(example: Example, chat: ChatTokenizer) -> int:
    learnt = [token for token, answer in zip(example.tokens, example.answer, strict=True) if answer]
    return len(chat.decode(learnt).encode("utf-8"))


def _answer_loss(loss: float, tokens: int, answer_bytes: int) -> AnswerLoss:
    return AnswerLoss(
        loss=loss,
        perplexity=math.exp(loss),
        bits_per_byte=loss * tokens / math.log(2) / answer_bytes,
    )


if __name__ == "__main__":
    run_as_stage(sft)
