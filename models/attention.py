from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.cache import KeyValueCache
from models.config import ModelConfig
from models.masks import Sight
from models.norms import HeadNorm
from models.rotary import rotate
from models.window import windowed_attention


class SelfAttention(nn.Module):
    """Grouped-query attention (Ainslie et al. 2023) with rotary positions.

    By configuration: to a window of the tokens before (Child et al. 2019; Mistral), both ways, with queries
    and keys normalised in each head (Dehghani et al. 2023, ViT-22B; Qwen3), with biases.
    """

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.head_dim = config.head_dim
        self.window = config.window(layer)
        self.causal = config.is_causal
        self.dropout = config.attention_dropout
        self.grouped = config.num_key_value_heads != config.num_attention_heads
        query_size = config.num_attention_heads * config.head_dim
        key_value_size = config.num_key_value_heads * config.head_dim
        bias = config.attention_bias or config.qkv_bias
        self.q_proj = nn.Linear(config.hidden_size, query_size, bias=bias)
        self.k_proj = nn.Linear(config.hidden_size, key_value_size, bias=bias)
        self.v_proj = nn.Linear(config.hidden_size, key_value_size, bias=bias)
        self.o_proj = nn.Linear(query_size, config.hidden_size, bias=config.attention_bias)
        if config.qk_norm:
            self.q_norm, self.k_norm = HeadNorm(config), HeadNorm(config)
        else:
            self.q_norm = self.k_norm = None

    def forward(
        self,
        x_BTC: Tensor,
        rotary: tuple[Tensor, Tensor],
        sight: Sight,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Attend within x_BTC, and to what the cache holds."""
        heads = (*x_BTC.shape[:2], -1, self.head_dim)
        queries_BTHD, keys_BTKD = self.q_proj(x_BTC).view(heads), self.k_proj(x_BTC).view(heads)
        values_BTKD = self.v_proj(x_BTC).view(heads)
        if self.q_norm is not None and self.k_norm is not None:
            queries_BTHD, keys_BTKD = self.q_norm(queries_BTHD), self.k_norm(keys_BTKD)
        # torch's CPU kernel takes four times as long backwards in bf16 as in fp32 (measured with 2.13).
        dtype = torch.float32 if x_BTC.device.type == "cpu" and cache is None else values_BTKD.dtype
        queries_BHTD = rotate(queries_BTHD, *rotary, dtype).transpose(1, 2)
        keys_BKTD = rotate(keys_BTKD, *rotary, dtype).transpose(1, 2)
        values_BKTD = values_BTKD.to(dtype).transpose(1, 2)
        with torch.autocast(x_BTC.device.type, enabled=False):
            if cache is None:
                mixed_BHTD = self._within(queries_BHTD, keys_BKTD, values_BKTD, sight)
            else:
                mixed_BHTD = self._with_cache(queries_BHTD, keys_BKTD, values_BKTD, sight, cache)
        mixed_BTE = mixed_BHTD.transpose(1, 2).flatten(2)
        return self.o_proj(mixed_BTE.to(x_BTC.dtype))

    def _within(self, queries_BHTD: Tensor, keys_BKTD: Tensor, values_BKTD: Tensor, sight: Sight) -> Tensor:
        length = queries_BHTD.shape[2]
        window = self.window if self.window is not None and self.window < length else None
        dropout = self.dropout if self.training else 0.0
        if window is not None and length > 2 * window and not dropout:
            return windowed_attention(queries_BHTD, keys_BKTD, values_BKTD, window, sight)
        mask = None
        if window is not None or not sight.of_all:
            places_T = torch.arange(length, device=queries_BHTD.device)
            mask = sight.mask(places_T, places_T, window)
        return self._attend(queries_BHTD, keys_BKTD, values_BKTD, mask, self.causal and mask is None, dropout)

    def _with_cache(
        self, queries_BHTD: Tensor, keys_BKTD: Tensor, values_BKTD: Tensor, sight: Sight, cache: KeyValueCache
    ) -> Tensor:
        start, new = cache.used, queries_BHTD.shape[2]
        positions_S = cache.positions(self.layer, new)
        keys_BKSD, values_BKSD = cache.append(self.layer, keys_BKTD, values_BKTD)
        queries_BHTD = queries_BHTD.to(keys_BKSD.dtype)
        mask = None
        # Of one new token all keys are in the past and, where the cache is a ring, in the window.
        if not sight.of_all or (new > 1 and (start or (self.window or new) < new)):
            places_T = torch.arange(start, start + new, device=queries_BHTD.device)
            mask = sight.mask(places_T, positions_S, self.window)
        return self._attend(queries_BHTD, keys_BKSD, values_BKSD, mask, mask is None and new > 1, 0.0)

    def _attend(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool, dropout: float
    ) -> Tensor:
        return F.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=mask,
            dropout_p=dropout,
            is_causal=causal,
            enable_gqa=self.grouped,
        )
