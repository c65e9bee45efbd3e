from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Size = Annotated[int, Field(ge=1)]
TokenId = Annotated[int, Field(ge=0)]


class ModelConfig(BaseModel):
    """The shape of a Llama-layout decoder; the fields bear the names of Hugging Face's `LlamaConfig`.

    Raises `pydantic.ValidationError` for an unknown field, a wrong type, or sizes that do not fit together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    vocab_size: Size
    hidden_size: Size
    intermediate_size: Size
    num_hidden_layers: Size
    num_attention_heads: Size
    num_key_value_heads: Size
    max_position_embeddings: Size
    rms_norm_eps: float = Field(1e-5, gt=0)
    rope_theta: float = Field(10000.0, gt=0)
    tie_word_embeddings: bool = True
    initializer_range: float = Field(0.02, gt=0, le=1)
    bos_token_id: TokenId | None = None
    eos_token_id: TokenId | None = None
    pad_token_id: TokenId | None = None

    @model_validator(mode="after")
    def _sizes_fit_together(self) -> Self:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of "
                f"num_attention_heads {self.num_attention_heads}"
            )
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_attention_heads {self.num_attention_heads} is not a multiple of "
                f"num_key_value_heads {self.num_key_value_heads}"
            )
        if self.head_dim % 2:
            raise ValueError(
                f"the head size hidden_size / num_attention_heads = {self.head_dim} is odd; "
                "rotary positions turn pairs of channels and need an even one"
            )
        for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
            token = getattr(self, name)
            if token is not None and token >= self.vocab_size:
                raise ValueError(f"{name} {token} is outside the vocabulary of {self.vocab_size} tokens")
        return self

    @property
    def head_dim(self) -> int:
        """Channels of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @classmethod
    def from_huggingface(cls, settings: dict[str, Any]) -> Self:
        """Read the content of a `config.json` of `model_type` llama.

        An absent setting means what it means to transformers' `LlamaConfig`. Settings that do not change the
        arithmetic are passed over. Raises `ValueError`, naming the setting, for one that would change it and
        is not supported.
        """
        _refuse_unsupported(settings)
        required = (
            "vocab_size",
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
        )
        if absent := [name for name in required if name not in settings]:
            raise ValueError(f"missing settings: {', '.join(absent)}")
        # Defaults of LlamaConfig where ours differ: a file that leaves a setting out relies on them.
        read: dict[str, Any] = {
            "num_key_value_heads": settings["num_attention_heads"],
            "max_position_embeddings": 2048,
            "rms_norm_eps": 1e-6,
            "tie_word_embeddings": False,
            "bos_token_id": 1,
            "eos_token_id": 2,
        }
        read |= {name: settings[name] for name in cls.model_fields if name in settings}
        if read["num_key_value_heads"] is None:
            read["num_key_value_heads"] = settings["num_attention_heads"]
        rope = settings.get("rope_parameters") or {}
        if "rope_theta" in rope:
            read["rope_theta"] = rope["rope_theta"]
        return cls(**read)

    def to_huggingface(self, architecture: str, dtype: str = "float32") -> dict[str, Any]:
        """The `config.json` from which transformers builds `architecture` with these sizes.

        `dtype` is the element type of the weights beside it, in torch's spelling.
        """
        settings = self.model_dump() | {
            "architectures": [architecture],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "dtype": dtype,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "mlp_bias": False,
            "model_type": "llama",
            "use_cache": True,
        }
        if architecture == "LlamaForSequenceClassification":
            # One label makes it a regression, which is what a reward is.
            settings |= {"id2label": {"0": "reward"}, "label2id": {"reward": 0}}
        return settings

    def parameter_count(self) -> int:
        """Number of distinct parameters of `CausalLM`; a tied weight counts once."""
        head = 0 if self.tie_word_embeddings else self.vocab_size * self.hidden_size
        norms = (2 * self.num_hidden_layers + 1) * self.hidden_size
        return (
            self.vocab_size * self.hidden_size
            + self.num_hidden_layers * self._layer_matrix_parameters
            + norms
            + head
        )

    def flops_per_token(self, context: int) -> int:
        """Floating-point operations of one training token, forward and backward, at `context` tokens.

        6·N + 12·L·H·Q·T (Chowdhery et al. 2022, PaLM, appendix B): N parameters that take part in a matrix
        product (the layers' projections and the output head, tied or not; the embedding look-up and the norms
        cost nothing), L layers, H heads of Q channels, T the context. As there, the causal mask is not
        discounted. A forward pass alone is a third.
        """
        matrix_parameters = (
            self.num_hidden_layers * self._layer_matrix_parameters + self.vocab_size * self.hidden_size
        )
        attention = 12 * self.num_hidden_layers * self.num_attention_heads * self.head_dim * context
        return 6 * matrix_parameters + attention

    @property
    def _layer_matrix_parameters(self) -> int:
        queries_and_output = 2 * self.hidden_size * self.hidden_size
        keys_and_values = 2 * self.hidden_size * self.num_key_value_heads * self.head_dim
        return queries_and_output + keys_and_values + 3 * self.hidden_size * self.intermediate_size


# What transformers' LlamaForCausalLM would compute differently, and the one value that we compute.
_ONLY = {
    "model_type": "llama",
    "hidden_act": "silu",
    "attention_bias": False,
    "attention_dropout": 0,
    "mlp_bias": False,
    "partial_rotary_factor": 1,
    "rope_scaling": None,
    "quantization_config": None,
}


def _refuse_unsupported(settings: dict[str, Any]) -> None:
    if "model_type" not in settings:
        raise ValueError("model_type is missing; only 'llama' is supported")
    for name, only in _ONLY.items():
        if name in settings and settings[name] != only:
            raise ValueError(f"{name} = {settings[name]!r} is not supported; only {only!r} is")
    rope = settings.get("rope_parameters") or {}
    for name, only in {"rope_type": "default", "type": "default", "partial_rotary_factor": 1}.items():
        if rope.get(name, only) != only:
            raise ValueError(f"rope_parameters.{name} = {rope[name]!r} is not supported; only {only!r} is")
    head_dim = settings.get("head_dim")
    hidden_size, heads = settings.get("hidden_size"), settings.get("num_attention_heads")
    if head_dim is not None and hidden_size and heads and head_dim * heads != hidden_size:
        raise ValueError(
            f"head_dim = {head_dim} is not supported; only hidden_size / num_attention_heads = "
            f"{hidden_size / heads:g} is"
        )
    if isinstance(eos := settings.get("eos_token_id"), list):
        raise ValueError(f"eos_token_id = {eos} is not supported; name the one token that ends a text")
