"""The first weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from models.config import ModelConfig

INTO_THE_STREAM = ("o_proj", "down_proj")


def initialise(model: nn.Module, config: ModelConfig, seed: int | torch.Generator) -> None:
    """Fill all parameters of a model of this package; the same seed gives the same weights on every device.

    Matrices of the layers, by `config.initialization`: ``normal``, with standard deviation
    `initializer_range`; ``xavier``, √(2 / (inputs + outputs)) (Glorot and Bengio 2010, equation 16);
    ``kaiming``, √(2 / inputs) (He et al. 2015, equation 10). With `depth_scaled`, projections that write into
    the residual stream have that / √(2 · layers), so that its variance does not grow with depth (Radford et
    al. 2019, GPT-2, section 2.3). Embedding and head: normal with `initializer_range`. Norms: 1. Biases: 0.
    Reward head: normal with standard deviation 1 / √(hidden_size + 1) (Stiennon et al. 2020, appendix B).
    Value head: 0, so that no value is invented before the first update.
    """
    generator = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            kind, leaf = name.rsplit(".", 2)[-2:]
            if leaf == "bias" or kind == "value":
                parameter.zero_()
            elif kind.endswith("norm"):
                parameter.fill_(1.0)
            elif kind == "score":
                _fill_normal(parameter, 1 / math.sqrt(config.hidden_size + 1), generator)
            else:
                _fill_normal(parameter, _standard_deviation(kind, leaf, parameter, config), generator)


def _standard_deviation(kind: str, leaf: str, parameter: Tensor, config: ModelConfig) -> float:
    if kind in ("embed_tokens", "lm_head") or config.initialization == "normal":
        std = config.initializer_range
    else:
        # The experts' weights are stacked; each is a matrix like any other.
        outputs, inputs = parameter.shape[-2:]
        std = math.sqrt(2 / (inputs + outputs if config.initialization == "xavier" else inputs))
    writes = kind in INTO_THE_STREAM or leaf in INTO_THE_STREAM
    return std / math.sqrt(2 * config.num_hidden_layers) if writes and config.depth_scaled else std


def _fill_normal(parameter: Tensor, std: float, generator: torch.Generator) -> None:
    # Drawn where the generator lives: a GPU's random numbers are not those of the CPU.
    parameter.copy_(
        torch.empty(parameter.shape, device=generator.device).normal_(0.0, std, generator=generator)
    )
