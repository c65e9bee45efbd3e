"""Experts' weights as families store them, one matrix for each, and as we compute with them, stacked."""

from __future__ import annotations

import re
from collections import defaultdict

import torch
from torch import Tensor

BLOCKS: dict[str, tuple[str, tuple[str, str, str]]] = {
    "mixtral": ("block_sparse_moe", ("w1", "w3", "w2")),
    "qwen3_moe": ("mlp", ("gate_proj", "up_proj", "down_proj")),
}
"""By family: its name for our ``mlp``, and those of an expert's gate, inner and outgoing matrix."""

_STACKED = re.compile(r"(.*\.)mlp\.(experts\.gate_up_proj|experts\.down_proj|gate\.weight)")


def split_experts(tensors: dict[str, Tensor], model_type: str) -> dict[str, Tensor]:
    """Tensors under the family's names; those of a family without experts, and our own, as they are."""
    if model_type not in BLOCKS:
        return tensors
    block, (gate, inner, out) = BLOCKS[model_type]
    split: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        match = _STACKED.fullmatch(name)
        if match is None:
            split[name] = tensor
            continue
        layer, part = match.groups()
        if part == "gate.weight":
            split[f"{layer}{block}.gate.weight"] = tensor
            continue
        for number, matrix in enumerate(tensor):
            expert = f"{layer}{block}.experts.{number}"
            if part == "experts.down_proj":
                split[f"{expert}.{out}.weight"] = matrix.contiguous()
            else:
                halves = matrix.chunk(2)
                split[f"{expert}.{gate}.weight"], split[f"{expert}.{inner}.weight"] = (
                    half.contiguous() for half in halves
                )
    return split


def joined_experts(tensors: dict[str, Tensor], model_type: str, experts: int) -> dict[str, Tensor]:
    """Tensors under our names, the experts' stacked; each stack is made as its parts are let go.

    Raises:
        ValueError: if an expert of a layer is missing or one more is there, naming the first.
    """
    if model_type not in BLOCKS:
        return tensors
    block, names = BLOCKS[model_type]
    pattern = re.compile(rf"(.*\.){block}\.experts\.(\d+)\.({'|'.join(names)})\.weight")
    joined: dict[str, Tensor] = {}
    parts: dict[str, dict[tuple[int, str], Tensor]] = defaultdict(dict)
    for name, tensor in tensors.items():
        if match := pattern.fullmatch(name):
            layer, number, part = match.groups()
            parts[layer][int(number), part] = tensor
        else:
            joined[name.replace(f".{block}.gate.", ".mlp.gate.")] = tensor
    gate, inner, out = names
    for layer, found in parts.items():
        wanted = {(number, name) for number in range(experts) for name in names}
        if different := sorted(wanted ^ found.keys()):
            number, name = different[0]
            what = "missing" if different[0] in wanted else "unexpected"
            raise ValueError(f"{what} keys: {layer}{block}.experts.{number}.{name}.weight")
        joined[f"{layer}mlp.experts.gate_up_proj"] = torch.stack(
            [torch.cat((found.pop((e, gate)), found.pop((e, inner)))) for e in range(experts)]
        )
        joined[f"{layer}mlp.experts.down_proj"] = torch.stack([found.pop((e, out)) for e in range(experts)])
    return joined
