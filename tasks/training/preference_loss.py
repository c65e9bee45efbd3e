"""The loss of a reward model on preference pairs."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def bradley_terry_loss(chosen_B: Tensor, rejected_B: Tensor, *, centring: float) -> Tensor:
    """Summed over B pairs: −log σ(r_c − r_r) + centring · (r_c + r_r)².

    The first term is the likelihood of Bradley and Terry 1952 (Ouyang et al. 2022, InstructGPT, equation 1).
    It does not say where zero lies; the second one does (Eisenstein et al. 2023, Helping or Herding).
    """
    return (-F.logsigmoid(chosen_B - rejected_B) + centring * (chosen_B + rejected_B).square()).sum()
