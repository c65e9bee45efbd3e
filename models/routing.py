"""Which experts a token goes to, and what keeps them equally busy.

B rows of T tokens, E experts, K for each token.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from models.config import ModelConfig


@dataclass
class Routing:
    """What the layers of one forward pass sent where; a new one for each pass, as a layer writes once.

    Attributes:
        counted_BT: True on tokens that count (no padding); None: all. Set by `Decoder.forward`.
        loads_E: by layer, how many tokens chose each expert, each token counting K times.
        balance: by layer, the sum over tokens of `balance_loss`.
        z: by layer, the sum over tokens of `z_loss`.
        dropped: by layer, how many choices found their expert full.
    """

    counted_BT: Tensor | None = None
    loads_E: dict[int, Tensor] = field(default_factory=dict)
    balance: dict[int, Tensor] = field(default_factory=dict)
    z: dict[int, Tensor] = field(default_factory=dict)
    dropped: dict[int, Tensor] = field(default_factory=dict)

    def loss(self, config: ModelConfig) -> Tensor | float:
        """What to add to a loss that is summed over tokens; divided by the tokens of a step it is the mean of
        layers' sums, whatever the split of the step into micro-batches and ranks."""
        total: Tensor | float = 0.0
        if config.router_balance == "loss" and config.router_aux_loss_coef:
            total = total + config.router_aux_loss_coef * sum(self.balance.values())
        if config.router_z_loss_coef:
            total = total + config.router_z_loss_coef * sum(self.z.values())
        return total


def choose_experts(
    probabilities_BTE: Tensor, bias_E: Tensor | None, per_token: int, normalised: bool
) -> tuple[Tensor, Tensor]:
    """The K most probable experts of each token and the weights of their outputs: chosen_BTK, weights_BTK.

    A bias moves the choice and never the weights (Wang et al. 2024, arXiv:2408.15664). Of equal ones the
    first is taken. ``normalised``: the weights of a token add up to 1.
    """
    scores_BTE = probabilities_BTE if bias_E is None else probabilities_BTE + bias_E
    chosen_BTK = scores_BTE.sort(dim=-1, descending=True, stable=True).indices[..., :per_token]
    weights_BTK = probabilities_BTE.gather(-1, chosen_BTK)
    if normalised:
        weights_BTK = weights_BTK / weights_BTK.sum(dim=-1, keepdim=True)
    return chosen_BTK, weights_BTK


def choices(chosen_BTK: Tensor, experts: int, counted_BT: Tensor | None) -> Tensor:
    """True where a token that counts chose an expert: choices_BTE."""
    shape = (*chosen_BTK.shape[:-1], experts)
    choices_BTE = torch.zeros(shape, dtype=torch.bool, device=chosen_BTK.device).scatter_(
        -1, chosen_BTK, True
    )
    return choices_BTE if counted_BT is None else choices_BTE & counted_BT[..., None]


def within_capacity(choices_BTE: Tensor, probabilities_BTE: Tensor, factor: float, per_token: int) -> Tensor:
    """The choices that find room, choices_BTE: an expert takes ``factor`` times its equal share of a row.

    The most probable come first, then the earlier ones (Riquelme et al. 2021, batch prioritised routing).
    Room is a row's own, so what is dropped does not depend on the rows beside it.
    """
    length, experts = choices_BTE.shape[1:]
    capacity = math.ceil(factor * per_token * length / experts)
    ranked_BTE = torch.where(choices_BTE, probabilities_BTE, -1.0).sort(dim=1, descending=True, stable=True)
    rank_BTE = ranked_BTE.indices.argsort(dim=1)
    return choices_BTE & (rank_BTE < capacity)


def balance_loss(
    probabilities_BTE: Tensor, choices_BTE: Tensor, per_token: int, counted_BT: Tensor | None
) -> Tensor:
    """The sum over tokens of the sequence-wise balance loss; 1 for each token at even use.

    For a row of T tokens that count: T · Σₑ fₑ·pₑ, with fₑ = E/(K·T) times the tokens that chose e, and pₑ
    the mean probability of e (DeepSeek-AI 2024, DeepSeek-V3, section 2.1.2, equations 17 to 20). Mixtral's is
    over the whole micro-batch, and therefore another one for another micro-batch.
    """
    experts = probabilities_BTE.shape[-1]
    if counted_BT is None:
        counted_BT = torch.ones(
            probabilities_BTE.shape[:-1], dtype=torch.bool, device=probabilities_BTE.device
        )
    tokens_B1 = counted_BT.sum(dim=1, keepdim=True).clamp(min=1)
    frequency_BE = choices_BTE.sum(dim=1) * experts / (per_token * tokens_B1)
    mass_BE = torch.where(counted_BT[..., None], probabilities_BTE, 0.0).sum(dim=1)
    return (frequency_BE * mass_BE).sum()


def z_loss(logits_BTE: Tensor, counted_BT: Tensor | None) -> Tensor:
    """The sum over tokens of the squared log of the softmax's denominator (ST-MoE, equation 5)."""
    squared_BT = logits_BTE.logsumexp(dim=-1).square()
    return (squared_BT if counted_BT is None else torch.where(counted_BT, squared_BT, 0.0)).sum()


@torch.no_grad()
def update_biases(model: nn.Module, loads_LE: Tensor, rate: float) -> None:
    """Make busy experts less likely to be chosen and idle ones more: once after each optimizer step.

    A bias falls by ``rate`` where its expert got more than the mean, and rises where it got less (Wang et al.
    2024, arXiv:2408.15664, algorithm 1).

    Args:
        loads_LE: the step's tokens for each expert of each layer with experts, in order, over all ranks.
    """
    biases = [buffer for name, buffer in model.named_buffers() if name.endswith("expert_bias")]
    for bias_E, loads_E in zip(biases, loads_LE, strict=True):
        bias_E += rate * torch.sign(loads_E.float().mean() - loads_E.float()).to(bias_E.device)
