import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.attention import KeyValueCache, RotaryEmbedding, SelfAttention, attention_mask
from models.config import ModelConfig


class CausalLM(nn.Module):
    """A decoder that predicts the next token; its state dict is that of transformers' `LlamaForCausalLM`.

    With `tie_word_embeddings` the head and the embedding are one parameter under two names. Weights are
    meaningless until `initialise` or `load_state_dict` has filled them.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.tie_weights()

    def forward(
        self,
        tokens_BT: Tensor,
        *,
        positions_BT: Tensor | None = None,
        padding_BT: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Logits of the next token, logits_BTV. The arguments are those of `Decoder.forward`."""
        return self.lm_head(
            self.hidden(tokens_BT, positions_BT=positions_BT, padding_BT=padding_BT, cache=cache)
        )

    def hidden(
        self,
        tokens_BT: Tensor,
        *,
        positions_BT: Tensor | None = None,
        padding_BT: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """States after the final norm, hidden_BTC: `lm_head` turns them, or a part of them, into logits."""
        return self.model(tokens_BT, positions_BT=positions_BT, padding_BT=padding_BT, cache=cache)

    def tie_weights(self) -> None:
        """Make head and embedding one parameter where the configuration says so.

        Needed again after whatever replaces parameters, such as `to_empty` or `load_state_dict(assign=True)`.
        """
        if self.config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight


class Decoder(nn.Module):
    """Embedding, decoder layers and final norm (Touvron et al. 2023, LLaMA, section 2.2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config, layer) for layer in range(config.num_hidden_layers))
        self.norm = RMSNorm(config)
        self.rotary = RotaryEmbedding(config)

    def forward(
        self,
        tokens_BT: Tensor,
        *,
        positions_BT: Tensor | None = None,
        padding_BT: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """States after the final norm, hidden_BTC.

        `padding_BT` is True on padding; it is needed only for padding on the left, as no token looks to its
        right. With a `cache` it covers the cached positions too and is as wide as cached and new tokens
        together. `positions_BT` counts from 0 at the first column by default; rotary attention depends on
        differences only, so padding on the left does not change a row. States at padding mean nothing.

        Raises `ValueError` for more tokens than `max_position_embeddings` or than the cache holds.
        """
        length = tokens_BT.shape[1]
        start = cache.used if cache is not None else 0
        self._check_length(start, length, padding_BT, cache)
        mask = attention_mask(length, start, padding_BT, tokens_BT.device)
        rotary = self.rotary(length, start, positions_BT)
        x_BTC = self.embed_tokens(tokens_BT)
        for layer in self.layers:
            x_BTC = layer(x_BTC, rotary, mask, cache)
        if cache is not None:
            cache.advance(length)
        return self.norm(x_BTC)

    def _check_length(
        self, start: int, length: int, padding_BT: Tensor | None, cache: KeyValueCache | None
    ) -> None:
        total, limit = start + length, self.config.max_position_embeddings
        if total > limit:
            raise ValueError(f"{total} tokens are more than max_position_embeddings {limit}")
        if cache is not None and total > cache.length:
            raise ValueError(f"{total} tokens are more than the cache holds, {cache.length}")
        if padding_BT is not None and padding_BT.shape[1] != total:
            raise ValueError(
                f"padding covers {padding_BT.shape[1]} tokens; there are {total}, cached ones included"
            )


class DecoderLayer(nn.Module):
    """Attention, then the feed-forward network, each on a normalised input and added to the stream."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config)
        self.self_attn = SelfAttention(config, layer)
        self.post_attention_layernorm = RMSNorm(config)
        self.mlp = SwiGLU(config)

    def forward(
        self,
        x_BTC: Tensor,
        rotary: tuple[Tensor, Tensor],
        mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """One layer; the arguments are those of `SelfAttention.forward`."""
        x_BTC = x_BTC + self.self_attn(self.input_layernorm(x_BTC), rotary, mask, cache)
        return x_BTC + self.mlp(self.post_attention_layernorm(x_BTC))


class SwiGLU(nn.Module):
    """Feed-forward network with a gated linear unit (Shazeer 2020, GLU Variants Improve Transformer)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x_BTC: Tensor) -> Tensor:
        """x_BTC to x_BTC, position by position."""
        return self.down_proj(F.silu(self.gate_proj(x_BTC)) * self.up_proj(x_BTC))


class RMSNorm(nn.Module):
    """Root-mean-square normalisation (Zhang and Sennrich 2019), computed in fp32.

    Returns the autocast type where autocast is on: each of the projections that follow would otherwise cast
    the same fp32 input once more.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.hidden_size))
        self.eps = config.rms_norm_eps

    def forward(self, x_BTC: Tensor) -> Tensor:
        """x_BTC, each token scaled to root mean square 1, times the weight."""
        device = x_BTC.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x_BTC.dtype
        return F.rms_norm(x_BTC.float(), self.weight.shape, self.weight.float(), self.eps).to(dtype)


def initialise(model: nn.Module, config: ModelConfig, seed: int | torch.Generator) -> None:
    """Fill all parameters of a model of this package; the same seed gives the same weights on every device.

    Matrices: normal with standard deviation `initializer_range`; projections that write into the residual
    stream: that / √(2 · layers), so that its variance does not grow with depth (Radford et al. 2019, GPT-2,
    section 2.3). Norms: 1. Reward head: normal with standard deviation 1 / √(hidden_size + 1)
    (Stiennon et al. 2020, appendix B). Value head: 0, so that no value is invented before the first update.
    """
    generator = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
    std = config.initializer_range
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            kind = name.rsplit(".", 2)[-2]
            if kind == "norm" or kind.endswith("layernorm"):
                parameter.fill_(1.0)
            elif kind == "value":
                parameter.zero_()
            elif kind == "score":
                _fill_normal(parameter, 1 / math.sqrt(config.hidden_size + 1), generator)
            elif kind in ("o_proj", "down_proj"):
                _fill_normal(parameter, std / math.sqrt(2 * config.num_hidden_layers), generator)
            else:
                _fill_normal(parameter, std, generator)


def _fill_normal(parameter: Tensor, std: float, generator: torch.Generator) -> None:
    # Drawn where the generator lives: a GPU's random numbers are not those of the CPU.
    parameter.copy_(
        torch.empty(parameter.shape, device=generator.device).normal_(0.0, std, generator=generator)
    )
