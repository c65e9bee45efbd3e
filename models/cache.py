"""Keys and values of the tokens that were seen, of each layer as many as it looks back at."""

from __future__ import annotations

import torch
from torch import Tensor

from models.config import ModelConfig


class KeyValueCache:
    """Room, taken once, for `batch` rows of `length` tokens; a layer with a window holds a window of them.

    `used` is the number of tokens seen. Give `dtype` the type in which attention runs (the autocast type,
    where there is one); otherwise every step casts the whole cache.
    """

    def __init__(
        self,
        config: ModelConfig,
        batch: int,
        length: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self.length = length
        self.used = 0
        self.rooms = [
            min(config.window(layer) or length, length) for layer in range(config.num_hidden_layers)
        ]
        shape = (batch, config.num_key_value_heads, config.head_dim)
        self.keys_BKSD, self.values_BKSD = (
            [
                torch.empty((*shape[:2], room, shape[2]), dtype=dtype, device=device)
                for room in self.rooms
            ]
            for _ in range(2)
        )  # fmt: skip

    def append(self, layer: int, keys_BKTD: Tensor, values_BKTD: Tensor) -> tuple[Tensor, Tensor]:
        """Store the keys and values of T new tokens of a layer; return those they may look at.

        Where the layer has room for all tokens these are all, in order. Beyond a window's room they lie in a
        ring, and are returned as `positions` says. The number of tokens seen moves on only with `advance`,
        once for all layers.
        """
        keys, values = self.keys_BKSD[layer], self.values_BKSD[layer]
        room, new = self.rooms[layer], keys_BKTD.shape[2]
        end = self.used + new
        if end <= room:
            keys[:, :, self.used : end], values[:, :, self.used : end] = keys_BKTD, values_BKTD
            return keys[:, :, :end], values[:, :, :end]
        if new == 1:
            place = self.used % room
            keys[:, :, place : place + 1], values[:, :, place : place + 1] = keys_BKTD, values_BKTD
            return keys, values
        seen = self.positions(layer, new)[:-new] % room
        before = keys[:, :, seen], values[:, :, seen]
        stored = torch.arange(max(self.used, end - room), end, device=keys.device)
        keys[:, :, stored % room] = keys_BKTD[:, :, stored - self.used].to(keys.dtype)
        values[:, :, stored % room] = values_BKTD[:, :, stored - self.used].to(values.dtype)
        return (
            torch.cat((before[0], keys_BKTD.to(keys.dtype)), dim=2),
            torch.cat((before[1], values_BKTD.to(values.dtype)), dim=2),
        )

    def positions(self, layer: int, new: int) -> Tensor:
        """The positions, positions_S, of the keys that `append` returns for `new` more tokens."""
        room, end = self.rooms[layer], self.used + new
        device = self.keys_BKSD[layer].device
        if end <= room:
            return torch.arange(end, device=device)
        if new == 1:
            places_S = torch.arange(room, device=device)
            return self.used - (self.used - places_S) % room
        return torch.arange(max(0, self.used - room + 1), end, device=device)

    def advance(self, tokens: int) -> None:
        """Count the tokens that every layer has stored."""
        self.used += tokens
