"""Pretraining: a network that predicts the next token of the corpus."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from tasks.parameters import StageParams
from tasks.resources import Resources
from tasks.stage import Input, Output, StageError, StageReport, Tracker, run_as_stage, stage
from tasks.training.allocator import keep_freed_memory
from tasks.training.checkpoints import discard_when_published
from tasks.training.trainer import Batch, Examples, Objective, TrainerParams, fit

if TYPE_CHECKING:
    from torch import Tensor, nn

    from models.config import ModelConfig
    from tasks.corpus.encoding.index import TokenIndex

INDEX = "index.json"
TOKENIZER = "tokenizer.json"


class ModelParams(StageParams):
    """The shape of the network; its vocabulary is that of the tokens."""

    hidden_size: int = Field(default=256, ge=2, description="channels of the residual stream")
    layers: int = Field(default=4, ge=1)
    heads: int = Field(default=4, ge=1, description="heads of the queries; divides hidden_size")
    kv_heads: int = Field(default=2, ge=1, description="heads of the keys and values; divides heads")
    intermediate_size: int = Field(default=704, ge=1, description="channels of the feed-forward network")
    rope_theta: float = Field(default=10000.0, gt=0)
    initializer_range: float = Field(
        default=0.02, gt=0, le=1, description="standard deviation of the first weights"
    )
    tie_embeddings: bool = Field(default=True, description="embedding and output head are one matrix")


class PretrainParams(TrainerParams):
    """The section ``pretrain`` of ``params.yaml``; an example is a packed sequence."""

    model: ModelParams = ModelParams()
    context: int = Field(
        default=2048, ge=1, description="the most tokens the model takes; must be encode.context"
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
    """Train a language model on token files, from new weights or from the newest checkpoint.

    Raises:
        StageError: if a file of tokens is not the one that their index lists, or they do not fit their index,
            the tokenizer or the parameters.
        ParameterError, CheckpointError, TrainingDiverged, OSError: as `trainer.fit`.
    """
    from models.estimates import parameter_count
    from models.initialization import initialise
    from models.transformer import CausalLM
    from tasks.corpus.encoding.index import read_index
    from tasks.training.batches import PackedBatches, validation_batches
    from tasks.training.fingerprint import fingerprint
    from tasks.training.model_directory import write_model
    from tasks.training.precision import choose_device, resolve_precision
    from tasks.training.token_files import PackedSequences, TokenStream
    from tasks.training.token_integrity import verify_tokens

    keep_freed_memory()
    tracker = tracker or Tracker()
    index = read_index(tokens)
    verify_tokens(tokens, index)
    config = _model_config(params, index, tokens)
    train, validation = PackedSequences(tokens, index), TokenStream(tokens, index, "validation")
    batches = PackedBatches(train, params.context, params.batch_size, params.seed)
    precision = resolve_precision(params.precision, choose_device(resources.training))
    params = params.model_copy(update={"precision": precision})
    tracker.tag(precision=precision, snapshot=index.snapshot)
    model = CausalLM(config)
    initialise(model, config, params.seed)

    def in_order() -> Iterable[Batch]:
        return validation_batches(validation, params.context, params.micro_batch_size)

    result = fit(
        model,
        Objective(loss=_loss, targets=_targets),
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


def _loss(model: nn.Module, batch: Batch) -> Tensor:
    from tasks.training.losses import token_cross_entropy

    return token_cross_entropy(model(batch["tokens"]), batch["targets"], batch["mask"])


def _targets(batch: Batch) -> int:
    return int(batch["mask"].sum())


def _model_config(params: PretrainParams, index: TokenIndex, tokens: Path) -> ModelConfig:
    from pydantic import ValidationError

    from models.config import ModelConfig

    _check_tokenizer(tokens, index.vocab_size)
    try:
        return ModelConfig.model_validate(
            {
                "vocab_size": index.vocab_size,
                "hidden_size": params.model.hidden_size,
                "intermediate_size": params.model.intermediate_size,
                "num_hidden_layers": params.model.layers,
                "num_attention_heads": params.model.heads,
                "num_key_value_heads": params.model.kv_heads,
                "max_position_embeddings": params.context,
                "rope_theta": params.model.rope_theta,
                "initializer_range": params.model.initializer_range,
                "tie_word_embeddings": params.model.tie_embeddings,
                "bos_token_id": index.special_tokens.bos,
                "eos_token_id": index.special_tokens.eos,
                "pad_token_id": index.special_tokens.pad,
            }
        )
    except ValidationError as error:
        faults = "; ".join(str(item["msg"]).removeprefix("Value error, ") for item in error.errors())
        raise StageError(f"pretrain.model and {tokens / INDEX} do not fit: {faults}") from None


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
