"""Every family's models, made by transformers and by us, compute the same from each other's directories."""

import json
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from transformers import AutoConfig, AutoModelForCausalLM

from models.config import ModelConfig, RopeScaling
from models.families import from_huggingface, to_huggingface
from models.hub import load_model, save_model

SIZES: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "bos_token_id": 3,
    "eos_token_id": 4,
    "pad_token_id": 0,
}
THEIRS: dict[str, dict[str, Any]] = {
    "llama": {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    "mistral": {"sliding_window": 7, "head_dim": 16},
    "mixtral": {"num_local_experts": 5, "num_experts_per_tok": 2, "sliding_window": 9},
    "qwen2": {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1},
    "qwen3": {"head_dim": 16, "tie_word_embeddings": True},
    "qwen3_moe": {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 20, "head_dim": 8},
}
MIXED = ("full_attention", "sliding_attention")
ROPES: list[dict[str, Any]] = [
    {"rope_type": "linear", "factor": 4.0},
    {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    },
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "attention_factor": 1.5},
]


@pytest.fixture
def tokens_BT() -> torch.Tensor:
    return torch.randint(0, 97, (3, 40), generator=torch.Generator().manual_seed(0))


def made_by_transformers(model_type: str, **settings: Any):
    """A model with weights and biases that are all different."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **(SIZES | {"initializer_range": 0.2} | settings))
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or name.endswith("bias"):
                parameter.uniform_(0.5, 1.5)
            elif "experts" in name or "gate.weight" in name:
                parameter.normal_(0, 0.2)
    return model


@pytest.mark.parametrize("model_type", THEIRS)
def test_a_model_of_transformers_computes_the_same_here_and_after_going_back(model_type, tokens_BT, tmp_path):
    theirs = made_by_transformers(model_type, **THEIRS[model_type])
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load_model(tmp_path / "theirs").eval()
    expected = theirs(tokens_BT).logits
    torch.testing.assert_close(ours(tokens_BT), expected, atol=1e-5, rtol=1e-5)
    save_model(ours, tmp_path / "ours")
    back = AutoModelForCausalLM.from_pretrained(tmp_path / "ours", attn_implementation="eager").eval()
    assert type(back) is type(theirs)
    torch.testing.assert_close(back(tokens_BT).logits, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("rope", ROPES)
def test_scaled_positions_are_those_of_transformers(rope, tokens_BT, tmp_path):
    theirs = made_by_transformers("llama", rope_parameters=rope | {"rope_theta": 500.0})
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load_model(tmp_path / "theirs").eval()
    torch.testing.assert_close(ours(tokens_BT), theirs(tokens_BT).logits, atol=1e-5, rtol=1e-5)
    save_model(ours, tmp_path / "ours")
    back = AutoModelForCausalLM.from_pretrained(tmp_path / "ours").eval()
    torch.testing.assert_close(back(tokens_BT).logits, ours(tokens_BT), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("model_type", THEIRS)
def test_an_absent_setting_means_what_it_means_to_transformers(model_type):
    sparse = {name: SIZES[name] for name in list(SIZES)[:5]}
    theirs = AutoConfig.for_model(model_type, **sparse)
    given = sparse | ({"num_key_value_heads": 2} if theirs.num_key_value_heads > 4 else {})
    ours = from_huggingface(given | {"model_type": model_type})
    names = {"num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings"}
    names |= {"bos_token_id", "eos_token_id", "num_experts_per_tok", "num_local_experts", "norm_topk_prob"}
    for name in names - ({"num_key_value_heads"} if given != sparse else set()):
        if hasattr(theirs, name):
            assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.rope_theta == theirs.rope_parameters["rope_theta"]
    assert ours.sliding_window == getattr(theirs, "sliding_window", None)


@pytest.mark.parametrize(
    "choice",
    [
        {"norm": "layer"},
        {"gated": False, "hidden_act": "gelu", "mlp_bias": True},
        {"is_causal": False},
        {"sliding_window": 8, "layer_types": MIXED},
        {"num_local_experts": 4, "num_shared_experts": 1},
        {"num_local_experts": 4, "router_balance": "bias"},
        {"rope_scaling": RopeScaling(rope_type="linear", factor=2.0), "norm": "layer"},
    ],
)
def test_what_no_family_computes_is_kept_in_a_format_of_our_own(choice, make, tokens_BT, tmp_path):
    ours = make(ModelConfig(**SIZES, **choice))
    save_model(ours, tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "gristmill"
    loaded = load_model(tmp_path)
    assert loaded.config == ours.config
    torch.testing.assert_close(loaded(tokens_BT), ours(tokens_BT))


@pytest.mark.parametrize(
    ("choice", "model_type"),
    [
        ({}, "llama"),
        ({"attention_bias": True}, "llama"),
        ({"sliding_window": 8}, "mistral"),
        ({"num_local_experts": 4}, "mixtral"),
        ({"qkv_bias": True}, "qwen2"),
        ({"qkv_bias": True, "sliding_window": 8, "layer_types": MIXED}, "qwen2"),
        ({"qk_norm": True}, "qwen3"),
        ({"qk_norm": True, "num_local_experts": 4, "norm_topk_prob": False}, "qwen3_moe"),
    ],
)  # fmt: skip
def test_the_family_is_the_first_that_computes_the_same(choice, model_type):
    config = ModelConfig(**SIZES, **choice)
    settings = to_huggingface(config, "ForCausalLM")
    assert settings["model_type"] == model_type
    back = from_huggingface(json.loads(json.dumps(settings)))
    same = {"layer_types", "moe_intermediate_size", "router_aux_loss_coef"}
    assert back.model_dump(exclude=same) == config.model_dump(exclude=same)
    assert back.attentions == config.attentions


def test_an_expert_that_is_missing_is_named(tokens_BT, tmp_path):
    from safetensors.torch import load_file, save_file

    made_by_transformers("mixtral", **THEIRS["mixtral"]).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["model.layers.1.block_sparse_moe.experts.3.w2.weight"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    missing = r"missing keys: model\.layers\.1\.block_sparse_moe\.experts\.3\.w2\.weight"
    with pytest.raises(ValueError, match=missing):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layer_types": ("sliding_attention",)}, "sliding_window is not given"),
        ({"layer_types": ("full_attention",) * 4}, "layer_types names 4 layers; num_hidden_layers is 3"),
        ({"sliding_window": 4, "is_causal": False}, "is_causal is false"),
        ({"num_local_experts": 2, "num_experts_per_tok": 3}, "num_experts_per_tok 3 is more than"),
        ({"num_shared_experts": 1}, "num_shared_experts needs num_local_experts"),
        ({"num_local_experts": 2, "gated": False}, "experts are gated"),
        ({"attention_bias": True, "qkv_bias": True}, "attention_bias covers qkv_bias"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "needs original_max_position_embeddings"),
    ],
)
def test_choices_that_do_not_fit_together_are_refused_by_name(change, message):
    with pytest.raises(ValidationError, match=message):
        ModelConfig.model_validate(SIZES | change)
