"""The shape of a new network, as ``params.yaml`` says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError

from tasks.parameters import StageParams

if TYPE_CHECKING:
    from models.config import ModelConfig


class ExpertParams(StageParams):
    """A mixture of experts in place of every feed-forward network."""

    number: int = Field(default=0, ge=0, description="experts of a layer; 0: none, a dense network")
    per_token: int = Field(default=2, ge=1, description="experts that a token goes to")
    size: int | None = Field(default=None, ge=1, description="channels of an expert; null: intermediate_size")
    shared: int = Field(default=0, ge=0, description="experts that every token goes through")
    balance: Literal["loss", "bias", "none"] = Field(
        default="loss", description="what keeps them equally busy"
    )
    balance_coefficient: float = Field(default=0.01, ge=0, description="of the balance loss")
    bias_rate: float = Field(default=1e-3, ge=0, description="by how much a step moves a bias")
    z_coefficient: float = Field(default=0.0, ge=0, description="of the router's z-loss")
    noise: float = Field(
        default=0.0, ge=0, description="standard deviation on the router's logits in training"
    )
    capacity_factor: float | None = Field(
        default=None, gt=0, description="room of an expert, in equal shares; null: any"
    )


class ModelParams(StageParams):
    """The shape of the network; its vocabulary is that of the tokens."""

    hidden_size: int = Field(default=256, ge=2, description="channels of the residual stream")
    layers: int = Field(default=4, ge=1)
    heads: int = Field(default=4, ge=1, description="heads of the queries; divides hidden_size")
    kv_heads: int = Field(default=2, ge=1, description="heads of the keys and values; divides heads")
    intermediate_size: int = Field(default=704, ge=1, description="channels of the feed-forward network")
    norm: Literal["rms", "layer"] = "rms"
    qk_norm: bool = Field(default=False, description="normalise queries and keys in each head")
    activation: Literal["silu", "gelu", "relu"] = "silu"
    gated: bool = Field(default=True, description="a gated linear unit; else two matrices")
    biases: bool = Field(default=False, description="of all projections")
    rope_theta: float = Field(default=10000.0, gt=0)
    sliding_window: int | None = Field(
        default=None, ge=1, description="tokens that a token sees; null: all before it"
    )
    layer_pattern: str = Field(
        default="", pattern="^[SF]*$", description="S slides, F sees all; repeated over the layers"
    )
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    residual_dropout: float = Field(default=0.0, ge=0, lt=1, description="of what each half layer adds")
    embedding_dropout: float = Field(default=0.0, ge=0, lt=1)
    experts: ExpertParams = ExpertParams()
    initialization: Literal["normal", "xavier", "kaiming"] = "normal"
    depth_scaled: bool = Field(default=True, description="what writes into the stream starts smaller")
    initializer_range: float = Field(
        default=0.02, gt=0, le=1, description="standard deviation of the first weights"
    )
    tie_embeddings: bool = Field(default=True, description="embedding and output head are one matrix")


def model_config(
    params: ModelParams, *, vocab_size: int, context: int, bos: int | None, eos: int | None, pad: int | None
) -> ModelConfig:
    """The configuration of a new network.

    Raises:
        ValueError: if choices do not fit together, with what does not.
    """
    from models.config import ModelConfig

    experts = params.experts
    given: dict[str, Any] = {
        "vocab_size": vocab_size,
        "hidden_size": params.hidden_size,
        "intermediate_size": params.intermediate_size,
        "num_hidden_layers": params.layers,
        "num_attention_heads": params.heads,
        "num_key_value_heads": params.kv_heads,
        "max_position_embeddings": context,
        "norm": params.norm,
        "qk_norm": params.qk_norm,
        "hidden_act": params.activation,
        "gated": params.gated,
        "mlp_bias": params.biases,
        "attention_bias": params.biases,
        "tie_word_embeddings": params.tie_embeddings,
        "rope_theta": params.rope_theta,
        "sliding_window": params.sliding_window,
        "layer_types": [_ATTENTIONS[letter] for letter in params.layer_pattern],
        "attention_dropout": params.attention_dropout,
        "residual_dropout": params.residual_dropout,
        "embedding_dropout": params.embedding_dropout,
        "num_local_experts": experts.number or None,
        "num_experts_per_tok": experts.per_token,
        "moe_intermediate_size": experts.size,
        "num_shared_experts": experts.shared,
        "router_balance": experts.balance,
        "router_aux_loss_coef": experts.balance_coefficient,
        "router_bias_update_rate": experts.bias_rate,
        "router_z_loss_coef": experts.z_coefficient,
        "router_noise": experts.noise,
        "expert_capacity_factor": experts.capacity_factor,
        "initialization": params.initialization,
        "depth_scaled": params.depth_scaled,
        "initializer_range": params.initializer_range,
        "bos_token_id": bos,
        "eos_token_id": eos,
        "pad_token_id": pad,
    }
    try:
        return ModelConfig.model_validate(given)
    except ValidationError as error:
        raise ValueError(
            "; ".join(str(item["msg"]).removeprefix("Value error, ") for item in error.errors())
        ) from None


_ATTENTIONS = {"S": "sliding_attention", "F": "full_attention"}
