"""Pretraining: a network that predicts the next token of the corpus."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from tasks.resources import Resources
from tasks.stage import Input, Output, StageError, StageReport, Tracker, run_as_stage, stage
from tasks.training.allocator import keep_freed_memory
from tasks.training.checkpoints import discard_when_published
from tasks.training.model_params import ModelParams, model_config
from tasks.training.trainer import Batch, Examples, Objective, TrainerParams, fit

if TYPE_CHECKING:
    from torch import Tensor, nn

    from models.config import ModelConfig
    from models.transformer import CausalLM
    from tasks.corpus.encoding.index import TokenIndex

INDEX = "index.json"
TOKENIZER = "tokenizer.json"


class PretrainParams(TrainerParams):
    """The section ``pretrain`` of ``params.yaml``; an example is a packed sequence."""

    model: ModelParams = ModelParams()
    init_from: str | None = Field(
        default=None, description="a model directory to go on from, whose shape it takes; null: new weights"
    )
    init_from_digest: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="of that directory; the stage's error says it",
    )
    train_only: list[str] = Field(
        default=[], description="names of weights, with *, that are trained; empty: all"
    )
    context: int = Field(
        default=2048, ge=1, description="the most tokens the model takes; must be encode.context"
    )
    label_smoothing: float = Field(
        default=0.0, ge=0, lt=1, description="probability spread over the vocabulary, in training only"
    )
    mask_documents: bool = Field(
        default=False, description="keep attention within the piece of a document, where a row holds several"
    )


class PretrainReport(StageReport):
    """What pretraining came to."""

    steps: int
    tokens_seen: int
    epochs: float
    parameters: int
    train_loss: float
    validation_loss: float
    validation_perplexity: float
    validation_bits_per_byte: float
    precision: str
    snapshot: str


@discard_when_published
@stage
def pretrain(
    tokens: Input,
    base: Output,
    params: PretrainParams,
    resources: Resources,
    tracker: Tracker | None = None,
) -> PretrainReport:
    """Train a language model on token files, from new or given weights or from the newest checkpoint.

    Raises:
        StageError: if a file of tokens is not the one that their index lists, or they do not fit their index,
            the tokenizer or the parameters.
        ParameterError, CheckpointError, TrainingDiverged, OSError: as `trainer.fit`.
    """
    from models.estimates import parameter_count
    from tasks.corpus.encoding.index import read_index
    from tasks.training.batches import PackedBatches, validation_batches
    from tasks.training.fingerprint import fingerprint
    from tasks.training.model_directory import write_model
    from tasks.training.precision import choose_device, resolve_precision
    from tasks.training.starting_weights import train_only
    from tasks.training.token_files import PackedSequences, TokenStream
    from tasks.training.token_integrity import verify_tokens

    keep_freed_memory()
    tracker = tracker or Tracker()
    index = read_index(tokens)
    verify_tokens(tokens, index)
    _check_tokenizer(tokens, index.vocab_size)
    train, validation = PackedSequences(tokens, index), TokenStream(tokens, index, "validation")
    batches = PackedBatches(train, params.context, params.batch_size, params.seed)
    precision = resolve_precision(params.precision, choose_device(resources.training))
    params = params.model_copy(update={"precision": precision})
    tracker.tag(precision=precision, snapshot=index.snapshot)
    model = _model(params, index, tokens)
    train_only(model, params.train_only)
    config = model.config

    def in_order() -> Iterable[Batch]:
        return validation_batches(validation, params.context, params.micro_batch_size)

    result = fit(
        model,
        _objective(config, params.mask_documents, params.label_smoothing),
        Examples(batches.at_step, in_order),
        params,
        fingerprint("pretrain", [tokens / INDEX, tokens / TOKENIZER], params),
        resources,
        tracker,
    )
    write_model(model, base, tokenizer_from=tokens, history=result.history)
    loss = result.validation["loss"]
    return PretrainReport(
        steps=result.steps,
        tokens_seen=result.targets_seen,
        epochs=result.steps * params.batch_size / len(train),
        parameters=parameter_count(config),
        train_loss=result.train_loss,
        validation_loss=loss,
        validation_perplexity=math.exp(loss),
        validation_bits_per_byte=loss * validation.scored / math.log(2) / validation.bytes,
        precision=result.precision,
        snapshot=index.snapshot,
    )


def _objective(config: ModelConfig, mask_documents: bool, label_smoothing: float = 0.0) -> Objective:
    """Cross entropy of the next token; in training with what balances the experts, where there are some."""
    from models.routing import Routing
    from tasks.training.expert_loads import ExpertLoads
    from tasks.training.losses import token_cross_entropy

    loads = ExpertLoads(config)

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        routing = Routing() if model.training and config.num_local_experts else None
        logits_BTV = model(
            batch["tokens"], segments_BT=batch["segments"] if mask_documents else None, routing=routing
        )
        sum_of_losses = token_cross_entropy(
            logits_BTV, batch["targets"], batch["mask"], label_smoothing if model.training else 0.0
        )
        if routing is None:
            return sum_of_losses
        loads.add(routing)
        return sum_of_losses + routing.loss(config)

    return Objective(loss=loss, targets=_targets, after_update=loads.settle)


def _targets(batch: Batch) -> int:
    return int(batch["mask"].sum())


def _model(params: PretrainParams, index: TokenIndex, tokens: Path) -> CausalLM:
    """The network with its first weights."""
    from models.initialization import initialise
    from models.transformer import CausalLM
    from tasks.training.starting_weights import begin_from

    special = index.special_tokens
    if params.init_from is not None:
        place, digest = Path(params.init_from), params.init_from_digest
        return begin_from(place, digest, tokens, index.vocab_size, params.context, special)
    try:
        config = model_config(
            params.model,
            vocab_size=index.vocab_size,
            context=params.context,
            bos=special.bos,
            eos=special.eos,
            pad=special.pad,
        )
    except ValueError as error:
        raise StageError(f"pretrain.model and {tokens / INDEX} do not fit: {error}") from None
    model = CausalLM(config)
    initialise(model, config, params.seed)
    return model


def _check_tokenizer(directory: Path, vocab_size: int) -> None:
    """Every id that the tokenizer can give needs a row of the embedding."""
    from tasks.training.chat import ChatTokenizer

    try:
        rows = ChatTokenizer(directory).vocab_size
    except FileNotFoundError:
        raise StageError(f"{directory / TOKENIZER} does not exist; the stage encode writes it") from None
    except ValueError as error:
        raise StageError(str(error)) from None
    if rows > vocab_size:
        raise StageError(
            f"{directory / TOKENIZER} gives ids up to {rows - 1}, but the embedding has {vocab_size} rows "
            f"(vocab_size in {directory / INDEX}); the two do not belong together"
        )


if __name__ == "__main__":
    run_as_stage(pretrain)
