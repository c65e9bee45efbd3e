"""What a network of this package is: every choice of its architecture, and what fits together."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Size = Annotated[int, Field(ge=1)]
TokenId = Annotated[int, Field(ge=0)]
Probability = Annotated[float, Field(ge=0, lt=1)]
Attention = Literal["full_attention", "sliding_attention"]
Activation = Literal["silu", "gelu", "gelu_pytorch_tanh", "relu"]


class RopeScaling(BaseModel):
    """How rotary positions are stretched over more tokens than were seen; the names are transformers'.

    linear: all frequencies divided by ``factor`` (Chen et al. 2023, arXiv:2306.15595). llama3: the low ones
    only, with a blend between (Llama 3.1's release). yarn: a ramp over channels, and attention sharpened by
    ``attention_factor``, 0.1·ln(factor) + 1 where it is None (Peng et al. 2023, arXiv:2309.00071).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rope_type: Literal["linear", "llama3", "yarn"]
    factor: float = Field(ge=1)
    original_max_position_embeddings: Size | None = None
    low_freq_factor: float = Field(default=1.0, gt=0)
    high_freq_factor: float = Field(default=4.0, gt=0)
    beta_fast: float = Field(default=32.0, gt=0)
    beta_slow: float = Field(default=1.0, gt=0)
    attention_factor: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.rope_type != "linear" and self.original_max_position_embeddings is None:
            raise ValueError(f"rope_type {self.rope_type} needs original_max_position_embeddings")
        if self.low_freq_factor >= self.high_freq_factor:
            raise ValueError(
                f"low_freq_factor {self.low_freq_factor} is not below high_freq_factor "
                f"{self.high_freq_factor}"
            )
        return self


class ModelConfig(BaseModel):
    """The architecture of a decoder; the fields bear the names of Hugging Face's configurations.

    The defaults are Llama's. ``layer_types`` names the attention of each layer; a shorter list is repeated,
    so ``[sliding_attention, sliding_attention, full_attention]`` makes every third layer look at all tokens.
    Without it all layers slide where ``sliding_window`` is given. Experts replace the feed-forward network of
    every layer where ``num_local_experts`` is given (see `models.moe`).

    Raises `pydantic.ValidationError` for an unknown field, a wrong type, or choices that do not fit together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    vocab_size: Size
    hidden_size: Size
    intermediate_size: Size
    num_hidden_layers: Size
    num_attention_heads: Size
    num_key_value_heads: Size
    max_position_embeddings: Size
    head_dim: Size = Field(default=0, description="channels of a head; hidden_size / num_attention_heads")

    norm: Literal["rms", "layer"] = "rms"
    rms_norm_eps: float = Field(default=1e-5, gt=0)
    qk_norm: bool = Field(default=False, description="queries and keys normalised in each head")
    hidden_act: Activation = "silu"
    gated: bool = Field(default=True, description="a gated linear unit; else two matrices")
    mlp_bias: bool = False
    attention_bias: bool = Field(default=False, description="biases of queries, keys, values and output")
    qkv_bias: bool = Field(default=False, description="biases of queries, keys and values only")
    tie_word_embeddings: bool = True
    is_causal: bool = Field(default=True, description="False: tokens look both ways, to fill in masked ones")

    rope_theta: float = Field(default=10000.0, gt=0)
    rope_scaling: RopeScaling | None = None
    sliding_window: Size | None = Field(default=None, description="tokens a token sees, itself included")
    layer_types: tuple[Attention, ...] = Field(default=(), description="of each layer, or repeated")

    attention_dropout: Probability = 0.0
    residual_dropout: Probability = Field(default=0.0, description="of what each half layer adds")
    embedding_dropout: Probability = 0.0

    num_local_experts: Size | None = None
    num_experts_per_tok: Size = 2
    moe_intermediate_size: Size | None = Field(default=None, description="None: intermediate_size")
    num_shared_experts: int = Field(default=0, ge=0, description="experts that every token goes through")
    norm_topk_prob: bool = Field(default=True, description="the chosen experts' weights add up to 1")
    router_balance: Literal["loss", "bias", "none"] = "loss"
    router_aux_loss_coef: float = Field(default=0.01, ge=0)
    router_z_loss_coef: float = Field(default=0.0, ge=0)
    router_noise: float = Field(default=0.0, ge=0, description="standard deviation, in training only")
    router_bias_update_rate: float = Field(default=1e-3, ge=0)
    expert_capacity_factor: float | None = Field(default=None, gt=0, description="None: no token is dropped")

    initialization: Literal["normal", "xavier", "kaiming"] = "normal"
    depth_scaled: bool = Field(default=True, description="what writes into the stream starts smaller")
    initializer_range: float = Field(default=0.02, gt=0, le=1)

    bos_token_id: TokenId | None = None
    eos_token_id: TokenId | None = None
    pad_token_id: TokenId | None = None

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, given: Any) -> Any:
        """A head's size, where it follows from the rest; a list as JSON has it."""
        if not isinstance(given, dict):
            return given
        given = dict(given)
        hidden, heads = given.get("hidden_size"), given.get("num_attention_heads")
        if given.get("head_dim") is None and isinstance(hidden, int) and isinstance(heads, int) and heads > 0:
            if hidden % heads:
                raise ValueError(
                    f"hidden_size {hidden} is not a multiple of num_attention_heads {heads}; "
                    "give head_dim, or another number of heads"
                )
            given["head_dim"] = hidden // heads
        if isinstance(given.get("layer_types"), list):
            given["layer_types"] = tuple(given["layer_types"])
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_attention_heads {self.num_attention_heads} is not a multiple of "
                f"num_key_value_heads {self.num_key_value_heads}"
            )
        if self.head_dim % 2:
            raise ValueError(
                f"the head size {self.head_dim} is odd; rotary positions turn pairs of channels and need an "
                "even one"
            )
        if len(self.layer_types) > self.num_hidden_layers:
            raise ValueError(
                f"layer_types names {len(self.layer_types)} layers; num_hidden_layers is "
                f"{self.num_hidden_layers}"
            )
        if "sliding_attention" in self.layer_types and self.sliding_window is None:
            raise ValueError("layer_types names sliding_attention, but sliding_window is not given")
        if self.sliding_window is not None and not self.is_causal:
            raise ValueError("sliding_window is for causal attention; is_causal is false")
        if self.attention_bias and self.qkv_bias:
            raise ValueError("attention_bias covers qkv_bias; give one of them")
        self._check_experts()
        for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
            token = getattr(self, name)
            if token is not None and token >= self.vocab_size:
                raise ValueError(f"{name} {token} is outside the vocabulary of {self.vocab_size} tokens")
        return self

    def _check_experts(self) -> None:
        if self.num_local_experts is None:
            if self.num_shared_experts:
                raise ValueError("num_shared_experts needs num_local_experts")
            return
        if self.num_experts_per_tok > self.num_local_experts:
            raise ValueError(
                f"num_experts_per_tok {self.num_experts_per_tok} is more than num_local_experts "
                f"{self.num_local_experts}"
            )
        if not self.gated or self.mlp_bias or self.hidden_act != "silu":
            raise ValueError("experts are gated, by silu and without biases: gated, hidden_act, mlp_bias")

    @property
    def expert_size(self) -> int:
        """Channels of an expert's inner layer."""
        return self.moe_intermediate_size or self.intermediate_size

    @property
    def attentions(self) -> tuple[Attention, ...]:
        """The attention of every layer."""
        types: tuple[Attention, ...] = self.layer_types
        if not types:
            types = ("full_attention",) if self.sliding_window is None else ("sliding_attention",)
        return tuple(types[layer % len(types)] for layer in range(self.num_hidden_layers))

    def window(self, layer: int) -> int | None:
        """How many tokens a token of a layer sees, itself included; None: all before it."""
        return self.sliding_window if self.attentions[layer] == "sliding_attention" else None
