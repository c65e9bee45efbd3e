"""Where a loss or a gradient stopped being a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def first_bad_layer(model: nn.Module, forward: Callable[[], Any] | None = None) -> str:
    """Name the layer in which NaN or infinity arose, with what is wrong there.

    Looked for in the order in which it spreads: weights; then, if ``forward`` is given, which must run the
    model once more on the batch, outputs in the order of the forward pass; then gradients, against the order
    of the layers, since the backward pass begins at the last.
    """
    for name, parameter in model.named_parameters():
        if not is_finite(parameter):
            return f"{name} (the weight itself)"
    if forward is not None:
        name = _first_bad_output(model, forward)
        if name is not None:
            return f"{name} (its output)"
    for name, parameter in reversed(list(model.named_parameters())):
        if parameter.grad is not None and not is_finite(parameter.grad):
            return f"{name} (its gradient)"
    return "the loss itself: every layer's weights, outputs and gradients are finite"


def is_finite(tensor: Tensor) -> bool:
    """Whether no element is NaN or infinite."""
    return bool(torch.isfinite(tensor).all())


def _first_bad_output(model: nn.Module, forward: Callable[[], Any]) -> str | None:
    found: list[str] = []

    def watch(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            if not found and isinstance(output, Tensor) and not is_finite(output):
                found.append(name or type(model).__name__)

        return hook

    hooks = [module.register_forward_hook(watch(name)) for name, module in model.named_modules()]
    try:
        with torch.no_grad():
            forward()
    finally:
        for hook in hooks:
            hook.remove()
    return found[0] if found else None
