from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.config import ModelConfig
from models.dispatch import through_experts
from models.feed_forward import GatedFeedForward
from models.routing import (
    Routing,
    balance_loss,
    choices,
    choose_experts,
    within_capacity,
    z_loss,
)


class SparseMoE(nn.Module):
    """A feed-forward network of experts, of which a token uses few (Jiang et al. 2024, Mixtral, section 2.1).

    By configuration: balanced by a loss or by a bias of the choice, noise on the router in training, room for
    a bounded number of tokens, and experts that every token goes through (Dai et al. 2024, DeepSeekMoE).
    """

    expert_bias: Tensor | None

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        assert config.num_local_experts is not None
        self.config = config
        self.layer = layer
        self.gate = nn.Linear(config.hidden_size, config.num_local_experts, bias=False)
        self.experts = Experts(config, config.num_local_experts)
        self.shared_expert = None
        if config.num_shared_experts:
            self.shared_expert = GatedFeedForward(config, config.num_shared_experts * config.expert_size)
        by_bias = config.router_balance == "bias"
        self.register_buffer("expert_bias", torch.zeros(config.num_local_experts) if by_bias else None)

    def forward(self, x_BTC: Tensor, routing: Routing | None = None) -> Tensor:
        """x_BTC to x_BTC, token by token; ``routing`` is told what was sent where, and says what counts."""
        config, counted_BT = self.config, routing.counted_BT if routing is not None else None
        logits_BTE = self._logits(x_BTC)
        probabilities_BTE = logits_BTE.softmax(dim=-1)
        per_token = config.num_experts_per_tok
        chosen_BTK, weights_BTK = choose_experts(
            probabilities_BTE, self.expert_bias, per_token, config.norm_topk_prob
        )
        chosen_BTE = choices(chosen_BTK, logits_BTE.shape[-1], counted_BT)
        taken_BTE = chosen_BTE
        if config.expert_capacity_factor is not None:
            taken_BTE = within_capacity(
                chosen_BTE, probabilities_BTE.detach(), config.expert_capacity_factor, per_token
            )
        if routing is not None and self.layer not in routing.loads_E:
            routing.loads_E[self.layer] = chosen_BTE.sum(dim=(0, 1))
            routing.dropped[self.layer] = (chosen_BTE & ~taken_BTE).sum()
            routing.balance[self.layer] = balance_loss(probabilities_BTE, chosen_BTE, per_token, counted_BT)
            routing.z[self.layer] = z_loss(logits_BTE, counted_BT)
        gates_BTE = torch.zeros_like(probabilities_BTE).scatter(-1, chosen_BTK, weights_BTK)
        y_BTC = self.experts(x_BTC, gates_BTE, taken_BTE)
        return y_BTC if self.shared_expert is None else y_BTC + self.shared_expert(x_BTC)

    def _logits(self, x_BTC: Tensor) -> Tensor:
        """In fp32: rounded to bf16, chance would choose among close experts (ST-MoE, section 3.1)."""
        with torch.autocast(x_BTC.device.type, enabled=False):
            logits_BTE = F.linear(x_BTC.float(), self.gate.weight.float())
        if self.training and self.config.router_noise:
            logits_BTE = logits_BTE + self.config.router_noise * torch.randn_like(logits_BTE)
        return logits_BTE


class Experts(nn.Module):
    """The experts' weights, stacked; the names are those of transformers' classes."""

    def __init__(self, config: ModelConfig, number: int) -> None:
        super().__init__()
        inner, outer = config.expert_size, config.hidden_size
        self.gate_up_proj = nn.Parameter(torch.empty(number, 2 * inner, outer))
        self.down_proj = nn.Parameter(torch.empty(number, outer, inner))

    def forward(self, x_BTC: Tensor, gates_BTE: Tensor, taken_BTE: Tensor) -> Tensor:
        """Each token through the experts that take it; see `models.dispatch.through_experts`."""
        y_NC = through_experts(
            x_BTC.flatten(0, 1),
            gates_BTE.flatten(0, 1),
            taken_BTE.flatten(0, 1),
            self.gate_up_proj,
            self.down_proj,
        )
        return y_NC.view(x_BTC.shape).to(x_BTC.dtype)
