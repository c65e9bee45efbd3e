"""The loss of a language model on the scored tokens of sequences: what every perplexity is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch.nn import functional as F

if TYPE_CHECKING:
    from models.transformer import CausalLM


class Scored(Protocol):
    """A sequence of token ids, and True for each token that is scored; nothing predicts the first."""

    @property
    def tokens(self) -> Sequence[int] | np.ndarray:
        """T token ids."""
        ...

    @property
    def answer(self) -> Sequence[bool] | np.ndarray:
        """T times whether the token is scored."""
        ...


def scored_counts(sequences: Sequence[Scored]) -> np.ndarray:
    """How many tokens of each sequence are scored, counts_N."""
    return np.array([int(np.sum(sequence.answer[1:])) for sequence in sequences], dtype=np.int64)


@torch.inference_mode()
def sequence_losses(
    model: CausalLM, sequences: Sequence[Scored], *, batch_size: int, cast: torch.dtype | None = None
) -> np.ndarray:
    """−Σ log p of the scored tokens of each sequence, in nats: losses_N, fp64.

    Every token is predicted from all tokens before it in its sequence. Sequences of like length share a
    batch, which saves padding and changes nothing else. ``cast`` runs the network under autocast; the
    logarithm is always taken in fp32.
    """
    losses_N = np.zeros(len(sequences), dtype=np.float64)
    device = model.lm_head.weight.device
    by_length = sorted(range(len(sequences)), key=lambda index: len(sequences[index].tokens))
    for first in range(0, len(by_length), batch_size):
        rows = by_length[first : first + batch_size]
        tokens_BT, scored_BT = _pad([sequences[row] for row in rows], device)
        targets_BT, scored_BT = tokens_BT[:, 1:], scored_BT[:, 1:]
        with torch.autocast(device.type, dtype=cast, enabled=cast is not None):
            hidden_BTC = model.hidden(tokens_BT[:, :-1])
            # Only the scored positions go through the head, by far the widest matrix of a small model.
            logits_SV = model.lm_head(hidden_BTC[scored_BT])
        losses_S = F.cross_entropy(logits_SV.float(), targets_BT[scored_BT], reduction="none")
        losses_BT = torch.zeros(scored_BT.shape, dtype=torch.float64, device=device)
        losses_BT[scored_BT] = losses_S.double()
        losses_N[rows] = losses_BT.sum(1).cpu().numpy()
    return losses_N


def _pad(sequences: list[Scored], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows padded on the right, where no scored token looks; two wide at least, so that there is an input."""
    width = max(2, *(len(sequence.tokens) for sequence in sequences))
    tokens_BT = np.zeros((len(sequences), width), dtype=np.int64)
    scored_BT = np.zeros((len(sequences), width), dtype=bool)
    for row, sequence in enumerate(sequences):
        tokens_BT[row, : len(sequence.tokens)] = sequence.tokens
        scored_BT[row, : len(sequence.tokens)] = sequence.answer
    return torch.from_numpy(tokens_BT).to(device), torch.from_numpy(scored_BT).to(device)
