import pytest
import torch
from torch.nn import functional as F
from transformers import LlamaForSequenceClassification

from models.heads import RewardModel, ValueModel
from models.hub import load_reward_model, save_model


@pytest.fixture
def rows(config):
    """Texts of 7, 3 and 5 tokens that end in EOS, padded on the right; and where they end."""
    lengths = torch.tensor([7, 3, 5])
    tokens_BT = torch.randint(5, config.vocab_size, (3, 7), generator=torch.Generator().manual_seed(0))
    tokens_BT[torch.arange(3), lengths - 1] = config.eos_token_id
    tokens_BT[torch.arange(7) >= lengths[:, None]] = config.pad_token_id
    return tokens_BT, lengths - 1


def test_reward_equals_transformers(model, rows, tmp_path):
    ours = RewardModel.from_trunk(model.model, seed=3)
    save_model(ours, tmp_path)
    theirs = LlamaForSequenceClassification.from_pretrained(tmp_path)
    tokens_BT, last_B = rows
    expected = theirs(tokens_BT).logits
    assert expected.shape == (3, 1)
    torch.testing.assert_close(ours(tokens_BT, last_B), expected[:, 0], atol=1e-5, rtol=1e-5)


def test_a_reward_model_saved_by_transformers_loads_here(model, rows, tmp_path):
    save_model(RewardModel.from_trunk(model.model, seed=3), tmp_path / "ours")
    theirs = LlamaForSequenceClassification.from_pretrained(tmp_path / "ours")
    theirs.save_pretrained(tmp_path / "theirs")
    tokens_BT, last_B = rows
    ours = load_reward_model(tmp_path / "theirs")
    torch.testing.assert_close(ours(tokens_BT, last_B), theirs(tokens_BT).logits[:, 0], atol=1e-5, rtol=1e-5)


def test_the_reward_is_read_at_eos_whatever_follows(model, rows):
    reward = RewardModel.from_trunk(model.model, seed=3)
    tokens_BT, last_B = rows
    alone = [reward(row[None, : last + 1], last[None]) for row, last in zip(tokens_BT, last_B, strict=True)]
    torch.testing.assert_close(reward(tokens_BT, last_B), torch.cat(alone), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(reward(tokens_BT, last_B - 1), reward(tokens_BT, last_B))


def test_values_start_at_zero_for_every_token(model, rows):
    values_BT = ValueModel.from_trunk(model.model, seed=3)(rows[0])
    assert values_BT.shape == rows[0].shape
    assert (values_BT == 0).all()


def test_values_of_a_left_padded_row_equal_those_of_the_row_alone(model, config):
    value = ValueModel.from_trunk(model.model, seed=3)
    torch.nn.init.normal_(value.value.weight, generator=torch.Generator().manual_seed(0))
    alone = torch.arange(5, 11)[None]
    padding_BT = torch.arange(10)[None] < 4
    padded = value(F.pad(alone, (4, 0), value=config.pad_token_id), padding_BT=padding_BT)
    torch.testing.assert_close(padded[:, 4:], value(alone), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", [RewardModel, ValueModel])
def test_a_head_model_has_its_own_copy_of_the_trunk(model, kind):
    copied = kind.from_trunk(model.model, seed=3)
    for name, parameter in model.model.named_parameters():
        assert torch.equal(copied.model.get_parameter(name), parameter)
    with torch.no_grad():
        copied.model.embed_tokens.weight.zero_()
    assert model.model.embed_tokens.weight.abs().sum() > 0


def test_a_value_model_can_start_from_a_reward_model(model, rows):
    reward = RewardModel.from_trunk(model.model, seed=3)
    value = ValueModel.from_trunk(reward.model, seed=4)
    assert torch.equal(value.model(rows[0]), reward.model(rows[0]))


def test_rewards_under_autocast_are_not_rounded_to_bf16(model, rows):
    reward = RewardModel.from_trunk(model.model, seed=3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        reward_B = reward(*rows)
    assert reward_B.dtype == torch.float32
    assert not torch.equal(reward_B, reward_B.to(torch.bfloat16).float())
