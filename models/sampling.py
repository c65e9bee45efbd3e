import torch
from torch import Tensor


def choose(
    logits_BV: Tensor, temperature: float, top_p: float = 1.0, generator: torch.Generator | None = None
) -> Tensor:
    """Choose one token of every row, tokens_B.

    Temperature 0 takes the most probable one. Any other divides the logits by the temperature, keeps the
    smallest set of tokens whose probability reaches `top_p` (Holtzman et al. 2020, nucleus sampling,
    section 3.1), and draws from it with `generator`.
    """
    if temperature == 0:
        return logits_BV.argmax(-1)
    probabilities_BV = torch.softmax(logits_BV.float() / temperature, dim=-1)
    if top_p < 1:
        probabilities_BV = _nucleus(probabilities_BV, top_p)
    return torch.multinomial(probabilities_BV, 1, generator=generator).squeeze(1)


def check_sampling(temperature: float, top_p: float, generator: torch.Generator | None) -> None:
    """Raise `ValueError` for values with which `choose` cannot sample, or cannot do so repeatably."""
    if not temperature >= 0:
        raise ValueError(f"temperature {temperature} is not a number from 0 up")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p {top_p} is not in (0, 1]")
    if temperature > 0 and generator is None:
        raise ValueError("sampling at a temperature above 0 needs a generator; seed one with torch.Generator")


def _nucleus(probabilities_BV: Tensor, top_p: float) -> Tensor:
    """Set to 0 what lies outside the nucleus; multinomial needs no renormalising."""
    sorted_BV, order_BV = probabilities_BV.sort(dim=-1, descending=True)
    # A token belongs to the nucleus if those before it have not reached top_p; so the first always does.
    outside_BV = sorted_BV.cumsum(-1) - sorted_BV >= top_p
    return torch.zeros_like(probabilities_BV).scatter_(1, order_BV, sorted_BV.masked_fill(outside_BV, 0.0))
