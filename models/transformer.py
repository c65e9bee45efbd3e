from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from models.attention import SelfAttention
from models.cache import KeyValueCache
from models.config import ModelConfig
from models.feed_forward import FeedForward, GatedFeedForward
from models.masks import Sight
from models.moe import SparseMoE
from models.norms import stream_norm
from models.rotary import RotaryEmbedding
from models.routing import Routing


class CausalLM(nn.Module):
    """A decoder with a head over the vocabulary; its state dict is that of transformers' ``…ForCausalLM``.

    It predicts the next token or, where `is_causal` is false, the token in place of a masked one. With
    `tie_word_embeddings` the head and the embedding are one parameter under two names. Weights are
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
        segments_BT: Tensor | None = None,
        cache: KeyValueCache | None = None,
        routing: Routing | None = None,
    ) -> Tensor:
        """Logits, logits_BTV. The arguments are those of `Decoder.forward`."""
        return self.lm_head(
            self.hidden(
                tokens_BT,
                positions_BT=positions_BT,
                padding_BT=padding_BT,
                segments_BT=segments_BT,
                cache=cache,
                routing=routing,
            )
        )

    def hidden(
        self,
        tokens_BT: Tensor,
        *,
        positions_BT: Tensor | None = None,
        padding_BT: Tensor | None = None,
        segments_BT: Tensor | None = None,
        cache: KeyValueCache | None = None,
        routing: Routing | None = None,
    ) -> Tensor:
        """States after the final norm, hidden_BTC: `lm_head` turns them, or a part of them, into logits."""
        return self.model(
            tokens_BT,
            positions_BT=positions_BT,
            padding_BT=padding_BT,
            segments_BT=segments_BT,
            cache=cache,
            routing=routing,
        )

    def tie_weights(self) -> None:
        """Make head and embedding one parameter where the configuration says so.

        Needed again after whatever replaces parameters, such as `to_empty` or `load_state_dict(assign=True)`.
        """
        if self.config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight


class Decoder(nn.Module):
    """Embedding, decoder layers and final norm (Touvron et al. 2023, LLaMA, section 2.2).

    With `checkpoint_activations` a layer's inner states are computed once more in the backward pass instead
    of kept (Chen et al. 2016, arXiv:1604.06174): less memory, a third more computation, the same gradients.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.checkpoint_activations = False
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config, layer) for layer in range(config.num_hidden_layers))
        self.norm = stream_norm(config)
        self.rotary = RotaryEmbedding(config)

    def forward(
        self,
        tokens_BT: Tensor,
        *,
        positions_BT: Tensor | None = None,
        padding_BT: Tensor | None = None,
        segments_BT: Tensor | None = None,
        cache: KeyValueCache | None = None,
        routing: Routing | None = None,
    ) -> Tensor:
        """States after the final norm, hidden_BTC.

        Args:
            padding_BT: True on padding; for a causal model only needed for padding on the left, as no token
                looks to its right, and where experts count tokens. With a `cache` it covers the cached
                positions too and is as wide as cached and new tokens together. States there mean nothing.
            positions_BT: count from 0 at the first column by default; rotary attention depends on differences
                only, so neither padding on the left nor where a document begins in a row changes anything.
            segments_BT: the number of each token's document, in rows that hold several: a token sees those
                of its own document. Not with a `cache`.
            routing: where layers with experts write what was sent where.

        Raises:
            ValueError: for more tokens than `max_position_embeddings` or than the cache holds, or a cache
                of a model that looks both ways.
        """
        length = tokens_BT.shape[1]
        start = cache.used if cache is not None else 0
        self._check(start, length, padding_BT, segments_BT, cache)
        sight = Sight(self.config.is_causal, padding_BT, segments_BT)
        rotary = self.rotary(length, start, positions_BT)
        if routing is not None:
            routing.counted_BT = None if padding_BT is None else ~padding_BT[:, start:]
        x_BTC = F.dropout(self.embed_tokens(tokens_BT), self.config.embedding_dropout, self.training)
        for layer in self.layers:
            if self.checkpoint_activations and torch.is_grad_enabled():
                x_BTC = checkpoint(layer, x_BTC, rotary, sight, cache, routing, use_reentrant=False)
            else:
                x_BTC = layer(x_BTC, rotary, sight, cache, routing)
        if cache is not None:
            cache.advance(length)
        return self.norm(x_BTC)

    def _check(
        self,
        start: int,
        length: int,
        padding_BT: Tensor | None,
        segments_BT: Tensor | None,
        cache: KeyValueCache | None,
    ) -> None:
        total, limit = start + length, self.config.max_position_embeddings
        if total > limit:
            raise ValueError(f"{total} tokens are more than max_position_embeddings {limit}")
        if cache is not None and total > cache.length:
            raise ValueError(f"{total} tokens are more than the cache holds, {cache.length}")
        if cache is not None and not self.config.is_causal:
            raise ValueError("a model that looks both ways (is_causal false) has no use for a cache")
        if cache is not None and segments_BT is not None:
            raise ValueError("segments_BT are of whole rows; with a cache each row is one document")
        if padding_BT is not None and padding_BT.shape[1] != total:
            raise ValueError(
                f"padding covers {padding_BT.shape[1]} tokens; there are {total}, cached ones included"
            )


class DecoderLayer(nn.Module):
    """Attention, then the feed-forward network, each on a normalised input and added to the stream."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.dropout = config.residual_dropout
        self.input_layernorm = stream_norm(config)
        self.self_attn = SelfAttention(config, layer)
        self.post_attention_layernorm = stream_norm(config)
        if config.num_local_experts is not None:
            self.mlp = SparseMoE(config, layer)
        else:
            self.mlp = GatedFeedForward(config) if config.gated else FeedForward(config)

    def forward(
        self,
        x_BTC: Tensor,
        rotary: tuple[Tensor, Tensor],
        sight: Sight,
        cache: KeyValueCache | None = None,
        routing: Routing | None = None,
    ) -> Tensor:
        """One layer; the arguments are those of `SelfAttention.forward` and `SparseMoE.forward`."""
        attended_BTC = self.self_attn(self.input_layernorm(x_BTC), rotary, sight, cache)
        x_BTC = x_BTC + F.dropout(attended_BTC, self.dropout, self.training)
        normed_BTC = self.post_attention_layernorm(x_BTC)
        given = (normed_BTC, routing) if isinstance(self.mlp, SparseMoE) else (normed_BTC,)
        fed_BTC = self.mlp(*given)
        return x_BTC + F.dropout(fed_BTC, self.dropout, self.training)
