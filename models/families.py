"""`config.json` of the families of Hugging Face whose arithmetic a `ModelConfig` can be.

A configuration is written as the first family that computes the same. One that none computes
(LayerNorm, plain feed-forward networks, attention both ways, shared experts) is written as ``gristmill``:
only we read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from models.config import ModelConfig, RopeScaling

OURS = "gristmill"
SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
SAME_NAMES = (
    *SIZES,
    "num_key_value_heads",
    "max_position_embeddings",
    "head_dim",
    "rms_norm_eps",
    "tie_word_embeddings",
    "initializer_range",
    "attention_dropout",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
)
"""Settings that all families have, under our names."""


@dataclass(frozen=True)
class Family:
    """A family's `config.json`.

    Attributes:
        model_type: its name in `config.json`; the architectures' names begin with ``prefix``.
        prefix: of the names of its classes in transformers.
        defaults: what an absent setting means, where it is not what all families mean by it.
        own: our fields that its settings have, by name of the setting.
        always: fields of ours that are so in all of its models.
        fits: whether it computes what a configuration says, ``always`` apart.
    """

    model_type: str
    prefix: str
    fits: Callable[[ModelConfig], bool]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)
    always: Mapping[str, Any] = field(default_factory=dict)


def family_of(config: ModelConfig) -> Family | None:
    """The first family that computes what ``config`` says; None if none does."""
    plain = (
        config.norm == "rms"
        and config.gated
        and config.hidden_act == "silu"
        and config.is_causal
        and config.residual_dropout == config.embedding_dropout == 0
        and config.num_shared_experts == 0
        and not (config.num_local_experts and config.router_balance == "bias")
        and config.expert_capacity_factor is None
    )
    return next((family for family in FAMILIES.values() if plain and family.fits(config)), None)


def from_huggingface(settings: Mapping[str, Any]) -> ModelConfig:
    """Read the content of a `config.json`.

    An absent setting means what it means to the family's configuration in transformers. Settings that do not
    change the arithmetic are passed over.

    Raises:
        ValueError: for a family that is not known, a size that is missing, or a setting that would change the
            arithmetic and is not supported: naming it.
    """
    model_type = settings.get("model_type")
    if model_type == OURS:
        return ModelConfig.model_validate(
            {k: v for k, v in settings.items() if k in ModelConfig.model_fields}
        )
    family = FAMILIES.get(str(model_type))
    if family is None:
        known = ", ".join([*FAMILIES, OURS])
        raise ValueError(
            f"model_type {'is missing' if model_type is None else repr(model_type) + ' is not supported'}; "
            f"supported are {known}"
        )
    _refuse_unsupported(family, settings)
    if absent := [name for name in SIZES if name not in settings]:
        raise ValueError(f"missing settings: {', '.join(absent)}")
    read = dict(_DEFAULTS) | {"num_key_value_heads": settings["num_attention_heads"]} | dict(family.defaults)
    read |= {name: settings[name] for name in SAME_NAMES if name in settings}
    if read["num_key_value_heads"] is None:
        read["num_key_value_heads"] = settings["num_attention_heads"]
    read |= {ours: settings[theirs] for theirs, ours in family.own.items() if theirs in settings}
    read |= family.always
    read |= _rope(settings, read.get("rope_theta", 10000.0))
    read |= _windows(family, settings)
    return ModelConfig.model_validate({k: v for k, v in read.items() if k in ModelConfig.model_fields})


def to_huggingface(config: ModelConfig, task: str, dtype: str = "float32") -> dict[str, Any]:
    """The `config.json` from which transformers builds the class of a family for ``task``.

    Args:
        task: the end of the class's name: ``ForCausalLM``, ``ForSequenceClassification``.
        dtype: the element type of the weights beside it, in torch's spelling.
    """
    family = family_of(config)
    if family is None:
        settings = config.model_dump() | {"model_type": OURS, "architectures": [f"Gristmill{task}"]}
    else:
        settings = {name: getattr(config, name) for name in SAME_NAMES}
        settings |= {theirs: getattr(config, ours) for theirs, ours in family.own.items()}
        settings |= {
            "model_type": family.model_type,
            "architectures": [family.prefix + task],
            "hidden_act": config.hidden_act,
            "rope_theta": config.rope_theta,
            "rope_scaling": _written_scaling(config.rope_scaling),
            "use_cache": True,
        } | _written_windows(family, config)
        if config.num_local_experts is not None:
            inner = "intermediate_size" if family.model_type == "mixtral" else "moe_intermediate_size"
            settings[inner] = config.expert_size
    if task == "ForSequenceClassification":
        # One label makes it a regression, which is what a reward is.
        settings |= {"id2label": {"0": "reward"}, "label2id": {"reward": 0}}
    return settings | {"dtype": dtype}


_DEFAULTS: dict[str, Any] = {
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "bos_token_id": None,
    "eos_token_id": None,
}
_LONG = {"max_position_embeddings": 32768}
_LLAMA_TOKENS = {"bos_token_id": 1, "eos_token_id": 2}
_MISTRAL = _LLAMA_TOKENS | {"num_key_value_heads": 8, "max_position_embeddings": 131072}
_EXPERTS = {"num_experts_per_tok": "num_experts_per_tok", "router_aux_loss_coef": "router_aux_loss_coef"}


def _slides(config: ModelConfig) -> bool:
    return "sliding_attention" in config.attentions


def _uniform(config: ModelConfig) -> bool:
    return len(set(config.attentions)) == 1


def _dense(config: ModelConfig) -> bool:
    return config.num_local_experts is None


FAMILIES: dict[str, Family] = {
    family.model_type: family
    for family in (
        Family(
            "llama", "Llama",
            lambda c: _dense(c) and not c.qk_norm and not c.qkv_bias and not _slides(c),
            defaults=_LLAMA_TOKENS,
            own={"attention_bias": "attention_bias", "mlp_bias": "mlp_bias"},
        ),
        Family(
            "mistral", "Mistral",
            lambda c: _dense(c) and _uniform(c) and not c.mlp_bias
            and not (c.qk_norm or c.qkv_bias or c.attention_bias),
            defaults=_MISTRAL,
        ),
        Family(
            "mixtral", "Mixtral",
            lambda c: not _dense(c) and _uniform(c) and c.norm_topk_prob
            and not (c.qk_norm or c.qkv_bias or c.attention_bias),
            defaults=_MISTRAL
            | {"rms_norm_eps": 1e-5, "rope_theta": 1e6, "num_local_experts": 8}
            | {"router_aux_loss_coef": 0.001},
            own=_EXPERTS | {"num_local_experts": "num_local_experts"},
        ),
        Family(
            "qwen2", "Qwen2",
            lambda c: _dense(c) and c.qkv_bias and not c.qk_norm and not c.mlp_bias,
            defaults=_LONG | {"num_key_value_heads": 32}, always={"qkv_bias": True},
        ),
        Family(
            "qwen3", "Qwen3",
            lambda c: _dense(c) and c.qk_norm and not c.qkv_bias and not c.mlp_bias,
            defaults=_LONG | {"num_key_value_heads": 32, "head_dim": 128},
            own={"attention_bias": "attention_bias"}, always={"qk_norm": True},
        ),
        Family(
            "qwen3_moe", "Qwen3Moe",
            lambda c: not _dense(c) and c.qk_norm and not c.qkv_bias and not _slides(c),
            defaults=_LONG
            | {"num_key_value_heads": 4, "num_local_experts": 128, "num_experts_per_tok": 8}
            | {"moe_intermediate_size": 768, "norm_topk_prob": False, "router_aux_loss_coef": 0.001},
            own=_EXPERTS
            | {"num_experts": "num_local_experts", "num_local_experts": "num_local_experts"}
            | {"moe_intermediate_size": "moe_intermediate_size"}
            | {"norm_topk_prob": "norm_topk_prob", "attention_bias": "attention_bias"},
            always={"qk_norm": True},
        ),
    )
}  # fmt: skip

# What transformers would compute differently, and the one value that we compute.
_ONLY: dict[str, Any] = {
    "hidden_act": "silu",
    "partial_rotary_factor": 1,
    "quantization_config": None,
    "router_jitter_noise": 0,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}


def _refuse_unsupported(family: Family, settings: Mapping[str, Any]) -> None:
    for name, only in _ONLY.items():
        if name in settings and settings[name] != only:
            raise ValueError(f"{name} = {settings[name]!r} is not supported; only {only!r} is")
    for name in ("attention_bias", "mlp_bias"):
        if settings.get(name) and name not in family.own:
            raise ValueError(f"{name} = {settings[name]!r} is not supported for {family.model_type}")
    if isinstance(eos := settings.get("eos_token_id"), list):
        raise ValueError(f"eos_token_id = {eos} is not supported; name the one token that ends a text")


def _rope(settings: Mapping[str, Any], theta: float) -> dict[str, Any]:
    """`rope_theta` and `rope_scaling`, from the names of transformers 4 or 5."""
    given = dict(settings.get("rope_parameters") or {}) or dict(settings.get("rope_scaling") or {})
    theta = given.pop("rope_theta", settings.get("rope_theta") or theta)
    kind = given.pop("rope_type", given.pop("type", "default"))
    given.pop("type", None)
    if given.pop("partial_rotary_factor", 1) != 1:
        raise ValueError("rope_parameters.partial_rotary_factor is not supported; only 1 is")
    if kind == "default":
        return {"rope_theta": theta}
    if unknown := [name for name in given if name not in RopeScaling.model_fields]:
        raise ValueError(f"rope_parameters.{unknown[0]} = {given[unknown[0]]!r} is not supported")
    if kind not in ("linear", "llama3", "yarn"):
        raise ValueError(
            f"rope_parameters.rope_type = {kind!r} is not supported; linear, llama3 and yarn are"
        )
    if kind == "yarn":
        given.setdefault("original_max_position_embeddings", settings.get("max_position_embeddings"))
    return {"rope_theta": theta, "rope_scaling": RopeScaling(rope_type=kind, **given)}


def _written_scaling(scaling: RopeScaling | None) -> dict[str, Any] | None:
    if scaling is None:
        return None
    used = {
        "linear": {"factor"},
        "llama3": {"factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"},
        "yarn": {"factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "attention_factor"},
    }[scaling.rope_type]
    return {"rope_type": scaling.rope_type} | scaling.model_dump(include=used, exclude_none=True)


def _windows(family: Family, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`sliding_window` and `layer_types`, which every family says in its own way."""
    if family.model_type == "llama":
        return {}
    if family.model_type in ("mistral", "mixtral"):
        default = 4096 if family.model_type == "mistral" else None
        return {"sliding_window": settings.get("sliding_window", default)}
    if not settings.get("use_sliding_window", False):
        return {}
    if family.model_type == "qwen3_moe":
        raise ValueError("use_sliding_window is not supported for qwen3_moe")
    first, layers = settings.get("max_window_layers", 28), settings["num_hidden_layers"]
    types = settings.get("layer_types") or [
        "sliding_attention" if layer >= first else "full_attention" for layer in range(layers)
    ]
    window = settings.get("sliding_window", 4096) if "sliding_attention" in types else None
    return {"sliding_window": window, "layer_types": tuple(types) if len(set(types)) > 1 else ()}


def _written_windows(family: Family, config: ModelConfig) -> dict[str, Any]:
    if family.model_type in ("mistral", "mixtral"):
        return {"sliding_window": config.sliding_window}
    if family.model_type in ("qwen2", "qwen3"):
        slides = _slides(config)
        first = config.attentions.index("sliding_attention") if slides else config.num_hidden_layers
        return {
            "use_sliding_window": slides,
            "sliding_window": config.sliding_window if slides else None,
            "layer_types": list(config.attentions),
            "max_window_layers": first,
        }
    return {}
