import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig, LlamaForCausalLM

from models.heads import RewardModel
from models.hub import load_model, load_reward_model, save_model


@pytest.fixture
def tokens_BT(config):
    return torch.randint(0, config.vocab_size, (3, 20), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def saved(model, tmp_path):
    save_model(model, tmp_path)
    return tmp_path


def rewrite_weights(directory, change):
    tensors = load_file(directory / "model.safetensors")
    change(tensors)
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def rewrite_config(directory, **settings):
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("key_value_heads", [1, 2, 4])
def test_transformers_loads_a_saved_model_with_equal_logits(
    config, make, tokens_BT, tmp_path, tied, key_value_heads
):
    model = make(
        config.model_copy(update={"tie_word_embeddings": tied, "num_key_value_heads": key_value_heads})
    )
    save_model(model, tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert isinstance(theirs, LlamaForCausalLM)
    torch.testing.assert_close(model(tokens_BT), theirs(tokens_BT).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("shard_size", ["1GB", "10KB"])
def test_a_model_saved_by_transformers_loads_here_with_equal_logits(tokens_BT, tmp_path, tied, shard_size):
    torch.manual_seed(0)
    theirs = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=97,
            hidden_size=32,
            intermediate_size=56,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            initializer_range=0.2,
            tie_word_embeddings=tied,
            rope_parameters={"rope_type": "default", "rope_theta": 777.0},
        )
    )
    theirs.save_pretrained(tmp_path, max_shard_size=shard_size)
    assert (tmp_path / "model.safetensors").exists() == (shard_size == "1GB")
    torch.testing.assert_close(
        load_model(tmp_path)(tokens_BT), theirs(tokens_BT).logits, atol=1e-5, rtol=1e-5
    )


def test_transformers_reads_the_generation_config(saved, config):
    theirs = GenerationConfig.from_pretrained(saved)
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id) == (3, 4, 0)


def test_saving_and_loading_keeps_the_weights_and_the_tie(model, saved):
    loaded = load_model(saved)
    assert loaded.config == model.config
    assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), model.parameters(), strict=True))
    assert loaded.lm_head.weight is loaded.model.embed_tokens.weight
    assert all(parameter.requires_grad for parameter in loaded.parameters())


def test_a_tied_weight_is_saved_once(config, make, tmp_path):
    save_model(make(config), tmp_path / "tied")
    save_model(make(config.model_copy(update={"tie_word_embeddings": False})), tmp_path / "untied")
    assert "lm_head.weight" not in load_file(tmp_path / "tied" / "model.safetensors")
    assert "lm_head.weight" in load_file(tmp_path / "untied" / "model.safetensors")


def test_the_same_weights_give_the_same_bytes(model, saved, tmp_path):
    save_model(load_model(saved), tmp_path / "again")
    for name in ("config.json", "generation_config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (saved / name).read_bytes(), name


def test_loaded_weights_do_not_depend_on_the_file_any_more(model, saved, tokens_BT):
    loaded = load_model(saved)
    (saved / "model.safetensors").write_bytes(b"")
    assert torch.equal(loaded(tokens_BT), model(tokens_BT))


def test_weights_saved_in_bf16_load_in_fp32(model, tokens_BT, tmp_path):
    save_model(model, tmp_path, dtype=torch.bfloat16)
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "bfloat16"
    loaded = load_model(tmp_path)
    for ours, rounded in zip(model.parameters(), loaded.parameters(), strict=True):
        assert rounded.dtype == torch.float32
        assert torch.equal(ours.to(torch.bfloat16).float(), rounded)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    torch.testing.assert_close(loaded(tokens_BT), theirs(tokens_BT).logits, atol=1e-5, rtol=1e-5)


def test_missing_unexpected_and_misshapen_keys_are_all_named(saved):
    def spoil(tensors):
        del tensors["model.norm.weight"]
        tensors["model.layers.2.mlp.up_proj.weight"] = torch.zeros(1)
        tensors["model.layers.0.self_attn.k_proj.weight"] = torch.zeros(8, 32)

    rewrite_weights(saved, spoil)
    with pytest.raises(ValueError, match=r"model\.safetensors") as error:
        load_model(saved)
    assert "missing keys: model.norm.weight;" in str(error.value)
    assert "unexpected keys: model.layers.2.mlp.up_proj.weight;" in str(error.value)
    assert "k_proj.weight (8, 32) instead of (16, 32)" in str(error.value)


def test_a_tied_head_stored_twice_is_accepted_only_if_equal(model, saved, tokens_BT):
    def store_twice(tensors):
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()

    rewrite_weights(saved, store_twice)
    assert torch.equal(load_model(saved)(tokens_BT), model(tokens_BT))
    rewrite_weights(saved, lambda tensors: tensors["lm_head.weight"].add_(1))
    with pytest.raises(ValueError, match=r"lm_head\.weight differs from model\.embed_tokens\.weight"):
        load_model(saved)


def test_an_unsupported_setting_names_file_and_setting(saved):
    rewrite_config(saved, hidden_act="gelu")
    with pytest.raises(ValueError, match=r"config\.json: hidden_act = 'gelu' is not supported"):
        load_model(saved)


def test_each_kind_of_model_refuses_the_other(model, saved, tmp_path):
    with pytest.raises(ValueError, match="expected one that ends in ForSequenceClassification"):
        load_reward_model(saved)
    save_model(RewardModel.from_trunk(model.model, seed=1), tmp_path / "reward")
    with pytest.raises(ValueError, match="expected one that ends in ForCausalLM"):
        load_model(tmp_path / "reward")


def test_a_classifier_of_several_labels_is_no_reward_model(model, tmp_path):
    save_model(RewardModel.from_trunk(model.model, seed=1), tmp_path)
    rewrite_weights(tmp_path, lambda tensors: tensors.update({"score.weight": torch.zeros(2, 32)}))
    with pytest.raises(ValueError, match=r"score\.weight \(2, 32\) instead of \(1, 32\)"):
        load_reward_model(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        load_model(saved)


@pytest.mark.parametrize(
    ("name", "message"),
    [("config.json", "not JSON"), ("model.safetensors", "not a whole safetensors file")],
)
def test_a_truncated_file_is_named(saved, name, message):
    path = saved / name
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=rf"{name}: {message}"):
        load_model(saved)
