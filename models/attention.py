import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.config import ModelConfig


class KeyValueCache:
    """Keys and values of the tokens already seen, in memory taken once for `batch` rows of `length` tokens.

    `used` is the number of filled positions. Give `dtype` the type in which attention runs (the autocast
    type, where there is one); otherwise every step casts the whole cache.
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
        shape = (config.num_hidden_layers, batch, config.num_key_value_heads, length, config.head_dim)
        self.keys_LBKSD = torch.empty(shape, dtype=dtype, device=device)
        self.values_LBKSD = torch.empty(shape, dtype=dtype, device=device)
        self.length = length
        self.used = 0

    def append(self, layer: int, keys_BKTD: Tensor, values_BKTD: Tensor) -> tuple[Tensor, Tensor]:
        """Store the keys and values of T new tokens of one layer; return all of that layer's, new ones last.

        The position moves on only with `advance`, once for all layers.
        """
        end = self.used + keys_BKTD.shape[2]
        self.keys_LBKSD[layer, :, :, self.used : end] = keys_BKTD
        self.values_LBKSD[layer, :, :, self.used : end] = values_BKTD
        return self.keys_LBKSD[layer, :, :, :end], self.values_LBKSD[layer, :, :, :end]

    def advance(self, tokens: int) -> None:
        """Count the tokens that every layer has stored."""
        self.used += tokens


class RotaryEmbedding(nn.Module):
    """Cosines and sines of rotary position embedding (Su et al. 2021, RoFormer, section 3.2), always fp32.

    The tables are not part of the state dict. A change of the module's dtype does not touch them: rounded to
    bf16 the angles of distant positions are wrong.
    """

    cos_PE: Tensor
    sin_PE: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.theta = config.rope_theta
        self.head_dim = config.head_dim
        self.positions = config.max_position_embeddings
        self.register_buffer("cos_PE", torch.empty(0), persistent=False)
        self.register_buffer("sin_PE", torch.empty(0), persistent=False)
        self._compute_tables()

    def forward(self, length: int, start: int, positions_BT: Tensor | None) -> tuple[Tensor, Tensor]:
        """Tables (cos, sin) of `length` positions from `start`, or of given ones, to use on queries_BTHD."""
        if positions_BT is None:
            rows = slice(start, start + length)
            return self.cos_PE[rows].unsqueeze(1), self.sin_PE[rows].unsqueeze(1)
        return self.cos_PE[positions_BT].unsqueeze(2), self.sin_PE[positions_BT].unsqueeze(2)

    def _apply(self, fn, recurse: bool = True):
        # Module.to, .half, .to_empty and the like all come through here: keep their device, not their dtype.
        super()._apply(fn, recurse)
        self._compute_tables()
        return self

    def _compute_tables(self) -> None:
        device = self.cos_PE.device
        channels_E = torch.arange(0, self.head_dim, 2, dtype=torch.int64, device=device).float()
        frequencies_E = 1.0 / (self.theta ** (channels_E / self.head_dim))
        angles_PE = torch.arange(self.positions, device=device).float()[:, None] * frequencies_E
        self.cos_PE, self.sin_PE = angles_PE.cos(), angles_PE.sin()


def rotate(x_BTHD: Tensor, cos: Tensor, sin: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn channel pairs (i, i + D/2) by the angles of their positions, in fp32; returned as `dtype`.

    The half-split pairing is that of transformers' `apply_rotary_pos_emb`; the paper pairs neighbours, which
    is the same up to a permutation of the projection's rows.
    """
    first, second = x_BTHD.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(dtype)


def attention_mask(length: int, start: int, padding_BS: Tensor | None, device: torch.device) -> Tensor | None:
    """Boolean mask, True where a query may look, or None where plain causal attention does the same.

    `length` queries stand at positions start … start + length - 1 of S = start + length keys. `padding_BS` is
    True on padding. A query may always look at itself, so that no row of the softmax is empty.
    Shape (B or 1, 1, length, S).
    """
    if padding_BS is None and (start == 0 or length == 1):
        return None
    keys_S = torch.arange(start + length, device=device)
    queries_T1 = keys_S[start:, None]
    causal_TS = keys_S <= queries_T1
    if padding_BS is None:
        return causal_TS[None, None]
    return ((causal_TS & ~padding_BS[:, None, :]) | (keys_S == queries_T1))[:, None]


class SelfAttention(nn.Module):
    """Causal grouped-query attention (Ainslie et al. 2023) with rotary positions and no biases."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.head_dim = config.head_dim
        self.grouped = config.num_key_value_heads != config.num_attention_heads
        key_value_size = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, key_value_size, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, key_value_size, bias=False)
        self.o_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)

    def forward(
        self,
        x_BTC: Tensor,
        rotary: tuple[Tensor, Tensor],
        mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Attend within x_BTC and to what the cache holds; `mask` is that of `attention_mask`."""
        heads = (*x_BTC.shape[:2], -1, self.head_dim)
        queries_BTHD, keys_BTKD = self.q_proj(x_BTC).view(heads), self.k_proj(x_BTC).view(heads)
        values_BTKD = self.v_proj(x_BTC).view(heads)
        # torch's CPU kernel takes four times as long backwards in bf16 as in fp32 (measured with 2.13).
        dtype = torch.float32 if x_BTC.device.type == "cpu" and cache is None else values_BTKD.dtype
        queries_BHTD = rotate(queries_BTHD, *rotary, dtype).transpose(1, 2)
        keys_BKSD = rotate(keys_BTKD, *rotary, dtype).transpose(1, 2)
        values_BKSD = values_BTKD.to(dtype).transpose(1, 2)
        if cache is not None:
            keys_BKSD, values_BKSD = cache.append(self.layer, keys_BKSD, values_BKSD)
            queries_BHTD = queries_BHTD.to(keys_BKSD.dtype)
        with torch.autocast(x_BTC.device.type, enabled=False):
            mixed_BHTD = F.scaled_dot_product_attention(
                queries_BHTD,
                keys_BKSD,
                values_BKSD,
                attn_mask=mask,
                # Without a mask the keys are those of the queries, or all in the past of the only query.
                is_causal=mask is None and queries_BHTD.shape[2] > 1,
                enable_gqa=self.grouped,
            )
        return self.o_proj(mixed_BHTD.transpose(1, 2).reshape(x_BTC.shape).to(x_BTC.dtype))
