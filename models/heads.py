from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.config import ModelConfig
from models.initialization import initialise
from models.transformer import Decoder


class RewardModel(nn.Module):
    """A decoder that scores a whole text.

    Its state dict is that of transformers' `LlamaForSequenceClassification` with one label.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.score = nn.Linear(config.hidden_size, 1, bias=False)

    @classmethod
    def from_trunk(cls, trunk: Decoder, seed: int | torch.Generator) -> Self:
        """A reward model on a copy of `trunk` (the `model` of any of these classes), with a new head."""
        return _on_copy_of(cls, trunk, seed)

    def forward(self, tokens_BT: Tensor, last_B: Tensor) -> Tensor:
        """reward_B in fp32, read at position `last_B` of each row: the index of its EOS.

        Rows are padded on the right; what follows `last_B` has no influence.
        """
        hidden_BTC = self.model(tokens_BT)
        rows_B = torch.arange(len(last_B), device=last_B.device)
        return _scalar(self.score, hidden_BTC[rows_B, last_B])


class ValueModel(nn.Module):
    """A decoder that estimates, at every token, the reward that is still to come."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.value = nn.Linear(config.hidden_size, 1)

    @classmethod
    def from_trunk(cls, trunk: Decoder, seed: int | torch.Generator) -> Self:
        """A value model on a copy of `trunk` (the `model` of any of these classes); its head starts at 0."""
        return _on_copy_of(cls, trunk, seed)

    def forward(
        self, tokens_BT: Tensor, positions_BT: Tensor | None = None, padding_BT: Tensor | None = None
    ) -> Tensor:
        """values_BT in fp32. The arguments are those of `Decoder.forward`."""
        return _scalar(self.value, self.model(tokens_BT, positions_BT=positions_BT, padding_BT=padding_BT))


def _on_copy_of(cls, trunk: Decoder, seed: int | torch.Generator):
    model = cls(trunk.config)
    initialise(model, trunk.config, seed)
    model.model.load_state_dict(trunk.state_dict())
    return model.to(trunk.embed_tokens.weight.device)


def _scalar(head: nn.Linear, hidden: Tensor) -> Tensor:
    # bf16 has 8 significant bits: too few for a number that is compared with its neighbours.
    with torch.autocast(hidden.device.type, enabled=False):
        bias = head.bias.float() if head.bias is not None else None
        return F.linear(hidden.float(), head.weight.float(), bias).squeeze(-1)
