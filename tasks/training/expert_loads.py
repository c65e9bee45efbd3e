"""What a step sent to each expert, and the biases that even it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from models.config import ModelConfig
    from models.routing import Routing


class ExpertLoads:
    """The loads of a step, added up over its micro-batches."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self._loads_LE: Tensor | None = None

    def add(self, routing: Routing) -> None:
        """Count a micro-batch."""
        loads_LE = torch.stack([routing.loads_E[layer] for layer in sorted(routing.loads_E)])
        self._loads_LE = loads_LE if self._loads_LE is None else self._loads_LE + loads_LE

    def settle(self, model: nn.Module) -> None:
        """After the optimizer step: move the biases, where they balance, and count anew."""
        from models.routing import update_biases

        if self._loads_LE is not None and self.config.router_balance == "bias":
            update_biases(model, self._loads_LE, self.config.router_bias_update_rate)
        self._loads_LE = None
