from typing import Any

import pytest
from pydantic import ValidationError
from transformers import LlamaConfig

from models.config import ModelConfig
from models.estimates import estimate_flops, parameter_count
from models.families import SAME_NAMES, from_huggingface, to_huggingface
from models.transformer import CausalLM

SHARED = set(SAME_NAMES) | {"attention_bias", "mlp_bias", "hidden_act"}
SIZES: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 48,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_attention_heads": 5}, "hidden_size 32 is not a multiple of num_attention_heads 5"),
        ({"num_key_value_heads": 3}, "num_attention_heads 4 is not a multiple of num_key_value_heads 3"),
        ({"hidden_size": 36, "num_attention_heads": 4}, "9 is odd"),
        ({"eos_token_id": 97}, "eos_token_id 97 is outside the vocabulary of 97 tokens"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"vocab_size": "97"}, "vocab_size"),
        ({"dropout": 0.1}, "dropout"),
    ],
)
def test_impossible_sizes_are_refused_by_name(change, message):
    with pytest.raises(ValidationError, match=message):
        ModelConfig(**(SIZES | change))


def test_a_config_cannot_be_changed(config):
    with pytest.raises(ValidationError, match="frozen"):
        config.hidden_size = 64


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("key_value_heads", [1, 2, 4])
def test_parameter_count_is_that_of_the_model(config, tied, key_value_heads):
    config = config.model_copy(update={"tie_word_embeddings": tied, "num_key_value_heads": key_value_heads})
    assert parameter_count(config) == sum(parameter.numel() for parameter in CausalLM(config).parameters())


def test_flops_of_a_model_worked_out_by_hand(config):
    # per layer: q and o 32·32 each, k and v 32·16 each, three matrices of the network 32·56; head 97·32
    matrices = 2 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 56) + 97 * 32
    assert estimate_flops(config, context=10) == 6 * matrices + 12 * 2 * 4 * 8 * 10


def test_huggingface_settings_survive_the_way_there_and_back(config):
    assert from_huggingface(to_huggingface(config, "ForCausalLM")) == config


def test_transformers_reads_our_settings(config):
    theirs = LlamaConfig.from_dict(to_huggingface(config, "ForCausalLM"))
    for name, value in config.model_dump(include=SHARED).items():
        assert getattr(theirs, name) == value, name
    assert theirs.rope_parameters == {"rope_type": "default", "rope_theta": config.rope_theta}
    assert theirs.head_dim == config.head_dim


def test_a_token_that_is_not_set_stays_unset_in_transformers():
    theirs = LlamaConfig.from_dict(to_huggingface(ModelConfig(**SIZES), "ForCausalLM"))
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id) == (None, None, None)


def test_absent_settings_have_the_defaults_of_transformers():
    sparse = {
        name: SIZES[name]
        for name in (
            "vocab_size",
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
        )
    }
    theirs = LlamaConfig(**sparse)
    ours = from_huggingface(sparse | {"model_type": "llama"})
    for name, value in ours.model_dump(include=SHARED).items():
        assert getattr(theirs, name) == value, name
    assert theirs.rope_parameters == {"rope_type": "default", "rope_theta": ours.rope_theta}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_type", "falcon"),
        ("hidden_act", "gelu"),
        ("rope_scaling", {"rope_type": "dynamic", "factor": 2.0}),
        ("rope_parameters", {"rope_type": "longrope", "rope_theta": 10000.0}),
        ("rope_parameters", {"rope_type": "yarn", "factor": 2.0, "mscale": 0.7}),
        ("rope_parameters", {"rope_type": "default", "partial_rotary_factor": 0.5}),
        ("partial_rotary_factor", 0.5),
        ("quantization_config", {"bits": 4}),
        ("eos_token_id", [4, 5]),
    ],
)
def test_a_setting_that_changes_the_arithmetic_is_refused_by_name(config, name, value):
    settings = to_huggingface(config, "ForCausalLM") | {name: value}
    with pytest.raises(
        ValueError, match=rf"{name.replace('rope_scaling', 'rope_parameters')}.* is not supported"
    ):
        from_huggingface(settings)


def test_a_setting_that_does_not_change_the_arithmetic_is_passed_over(config):
    settings = to_huggingface(config, "ForCausalLM")
    settings |= {
        "use_cache": False,
        "pretraining_tp": 2,
        "transformers_version": "4.0.0",
        "dtype": "bfloat16",
    }
    assert from_huggingface(settings) == config


def test_a_missing_size_is_named(config):
    settings = to_huggingface(config, "ForCausalLM")
    del settings["intermediate_size"], settings["vocab_size"]
    with pytest.raises(ValueError, match="missing settings: vocab_size, intermediate_size"):
        from_huggingface(settings)


def test_settings_of_no_stated_model_type_are_refused():
    with pytest.raises(ValueError, match="model_type is missing"):
        from_huggingface(dict(SIZES))
