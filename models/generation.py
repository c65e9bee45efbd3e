from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from models.cache import KeyValueCache
from models.sampling import check_sampling, choose
from models.transformer import CausalLM


@dataclass(frozen=True)
class Generation:
    """What `generate` returns: B rows of P prompt tokens and R response tokens.

    tokens_BT: prompts padded on the left, then responses padded on the right; T = P + R.
    padding_BT: True on the padding of both kinds.
    response_mask_BR: True on the tokens of the responses, an ending EOS included.
    prompt_length: P, the common width of the padded prompts; responses begin there.
    """

    tokens_BT: Tensor
    padding_BT: Tensor
    response_mask_BR: Tensor
    prompt_length: int

    @property
    def responses_BR(self) -> Tensor:
        """The tokens after the prompts, padded on the right."""
        return self.tokens_BT[:, self.prompt_length :]


@torch.no_grad()
def generate(
    model: CausalLM,
    prompts: list[list[int]],
    *,
    max_new_tokens: int,
    temperature: float,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
    eos_id: int | None,
    pad_id: int,
    cast: torch.dtype | None = None,
) -> Generation:
    """Continue every prompt until `eos_id` or for `max_new_tokens`; stops early when all rows have ended.

    Tokens are chosen as `sampling.choose` does. `cast` runs the network under autocast in that type; without
    it the weights' own type is used, even inside a caller's autocast. The result lies on the model's device.

    Raises `ValueError` for no prompts or an empty one, for a temperature above 0 without a generator, and
    when the longest prompt and `max_new_tokens` together exceed `max_position_embeddings`.
    """
    check_sampling(temperature, top_p, generator)
    _check_lengths(model, prompts, max_new_tokens)
    device = model.lm_head.weight.device
    width = max(map(len, prompts))
    tokens_BT, padding_BT = _pad_left(prompts, width, max_new_tokens, pad_id)
    padded = bool(padding_BT.any())
    tokens_BT, padding_BT = tokens_BT.to(device), padding_BT.to(device)
    cache = _cache_for(model, len(prompts), width + max_new_tokens, cast)
    mask_BR = torch.zeros(len(prompts), max_new_tokens, dtype=torch.bool, device=device)
    ended_B = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    begin, end = 0, width
    with torch.autocast(device.type, dtype=cast, enabled=cast is not None):
        for step in range(max_new_tokens):
            seen_BT = padding_BT[:, :end] if padded else None
            hidden_BTC = model.hidden(tokens_BT[:, begin:end], padding_BT=seen_BT, cache=cache)
            chosen_B = choose(model.lm_head(hidden_BTC[:, -1]), temperature, top_p, generator)
            tokens_BT[:, end] = torch.where(ended_B, pad_id, chosen_B)
            mask_BR[:, step] = ~ended_B
            begin, end = end, end + 1
            if eos_id is not None:
                ended_B |= chosen_B == eos_id
                if bool(ended_B.all()):
                    break
    mask_BR = mask_BR[:, : end - width]
    padding_BT = torch.cat((padding_BT[:, :width], ~mask_BR), dim=1)
    return Generation(tokens_BT[:, :end], padding_BT, mask_BR, width)


def stream(
    model: CausalLM,
    prompt: list[int],
    *,
    max_new_tokens: int,
    temperature: float,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
    eos_id: int | None,
) -> Iterator[int]:
    """Continue one prompt, token by token, until `eos_id`, which is not yielded, or for `max_new_tokens`.

    Chooses what `generate` would choose. Raises what `generate` raises, and at the call, not at the first
    token.
    """
    check_sampling(temperature, top_p, generator)
    _check_lengths(model, [prompt], max_new_tokens)

    @torch.no_grad()
    def tokens() -> Iterator[int]:
        device = model.lm_head.weight.device
        cache = _cache_for(model, 1, len(prompt) + max_new_tokens, cast=None)
        new_BT = torch.tensor([prompt], device=device)
        for _ in range(max_new_tokens):
            hidden_BTC = model.hidden(new_BT, cache=cache)
            chosen_B = choose(model.lm_head(hidden_BTC[:, -1]), temperature, top_p, generator)
            token = int(chosen_B)
            if token == eos_id:
                return
            yield token
            new_BT = chosen_B[:, None]

    return tokens()


def _check_lengths(model: CausalLM, prompts: list[list[int]], max_new_tokens: int) -> None:
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens {max_new_tokens} is not a number from 1 up")
    if not prompts:
        raise ValueError("there are no prompts")
    if empty := [row for row, prompt in enumerate(prompts) if not prompt]:
        raise ValueError(f"prompts {empty} are empty; each needs a token to continue, such as BOS")
    longest, limit = max(map(len, prompts)), model.config.max_position_embeddings
    if longest + max_new_tokens > limit:
        raise ValueError(
            f"a prompt of {longest} tokens and max_new_tokens {max_new_tokens} together exceed "
            f"max_position_embeddings {limit}"
        )


def _pad_left(
    prompts: list[list[int]], width: int, max_new_tokens: int, pad_id: int
) -> tuple[Tensor, Tensor]:
    """tokens_BT with room for the responses, and padding_BT, True on the left of shorter prompts."""
    rows = [[pad_id] * (width - len(prompt)) + prompt + [pad_id] * max_new_tokens for prompt in prompts]
    lengths_B1 = torch.tensor([len(prompt) for prompt in prompts])[:, None]
    return torch.tensor(rows), torch.arange(width + max_new_tokens) < width - lengths_B1


def _cache_for(model: CausalLM, batch: int, length: int, cast: torch.dtype | None) -> KeyValueCache:
    weight = model.lm_head.weight
    return KeyValueCache(model.config, batch, length, dtype=cast or weight.dtype, device=weight.device)
