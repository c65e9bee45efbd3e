"""Tokens to their experts and back: sorted by expert, so that each does one product over its own."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def through_experts(
    x_NC: Tensor, gates_NE: Tensor, taken_NE: Tensor, gate_up_EFC: Tensor, down_ECI: Tensor
) -> Tensor:
    """The sum of a token's experts' outputs, each times its gate: y_NC; 0 for a token that none takes.

    Args:
        gates_NE: the weights of outputs; read where ``taken_NE`` is true.
        taken_NE: which experts take which tokens.
        gate_up_EFC: of each expert the gate's and the inner layer's matrix, one below the other, F = 2·I.
        down_ECI: of each expert the matrix that writes into the stream.
    """
    experts_M, tokens_M = taken_NE.T.nonzero(as_tuple=True)  # sorted by expert, then by token
    counts = torch.bincount(experts_M, minlength=taken_NE.shape[1]).tolist()
    # unbind and split give their whole gradient at once; indexing would make one of full size for each.
    outputs = [
        _expert(rows, gate_up_FC, down_CI)
        for rows, gate_up_FC, down_CI in zip(
            x_NC[tokens_M].split(counts), gate_up_EFC.unbind(), down_ECI.unbind(), strict=True
        )
        if len(rows)
    ]
    if not outputs:
        return torch.zeros_like(x_NC)
    gates_M = gates_NE[tokens_M, experts_M]
    weighted_MC = torch.cat(outputs) * gates_M[:, None].to(outputs[0].dtype)
    return torch.zeros_like(x_NC, dtype=weighted_MC.dtype).index_add(0, tokens_M, weighted_MC)


def _expert(x_NC: Tensor, gate_up_FC: Tensor, down_CI: Tensor) -> Tensor:
    gate_NI, up_NI = F.linear(x_NC, gate_up_FC).chunk(2, dim=-1)
    return F.linear(F.silu(gate_NI) * up_NI, down_CI)
