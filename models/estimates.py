"""What a model costs before it is built: parameters, operations, memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from models.config import ModelConfig

Strategy = Literal["single", "ddp", "zero1", "zero2", "zero3"]


def parameter_count(config: ModelConfig) -> int:
    """Number of distinct parameters of `CausalLM`; a tied weight counts once."""
    heads = 1 if config.tie_word_embeddings else 2
    norm = config.hidden_size * (2 if config.norm == "layer" else 1)
    layer = _attention_parameters(config) + _feed_forward_parameters(config, every_expert=True) + 2 * norm
    return heads * config.vocab_size * config.hidden_size + config.num_hidden_layers * layer + norm


def active_parameter_count(config: ModelConfig) -> int:
    """Parameters that take part in a token's matrix products: of the experts only those that it goes to, and
    neither the embedding's look-up nor the norms."""
    layer = _attention_matrices(config) + _feed_forward_matrices(config, every_expert=False)
    return config.num_hidden_layers * layer + config.vocab_size * config.hidden_size


def estimate_flops(config: ModelConfig, context: int) -> int:
    """Floating-point operations of one training token, forward and backward, at `context` tokens.

    6·N + 12·L·H·Q·T (Chowdhery et al. 2022, PaLM, appendix B): N parameters that take part in a matrix
    product, L layers, H heads of Q channels, T the tokens that a token may see: the context, or a layer's
    window where that is shorter. As there, the causal mask is not discounted. A forward pass is a third.
    """
    seen = sum(min(config.window(layer) or context, context) for layer in range(config.num_hidden_layers))
    return 6 * active_parameter_count(config) + 12 * config.num_attention_heads * config.head_dim * seen


@dataclass(frozen=True)
class Memory:
    """Bytes on each device while a step is trained, and those that offloading keeps in the host's memory."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    host: int = 0

    @property
    def device(self) -> int:
        """All that a device holds."""
        return self.weights + self.gradients + self.optimizer + self.activations


def estimate_memory(
    config: ModelConfig,
    *,
    micro_batch: int,
    context: int,
    strategy: Strategy = "single",
    devices: int = 1,
    offload: bool = False,
    checkpoint_activations: bool = False,
    activation_bytes: int = 2,
) -> Memory:
    """Bytes of a training step with AdamW over fp32 weights.

    Weights, gradients and two moments of 4 bytes each; ZeRO 1 shares the moments out over the devices, 2 the
    gradients too, 3 the weights too (Rajbhandari et al. 2020, arXiv:1910.02054, section 5). With ``offload``
    what the strategy shares out of optimizer state lies in the host's memory. Activations: what a layer keeps
    for its backward pass, counted tensor by tensor, and the logits in fp32 with their gradient; workspace of
    kernels and the allocator's waste are not in it.

    Args:
        activation_bytes: 2 under bf16 or fp16 autocast, 4 in fp32.
    """
    size = 4 * parameter_count(config)
    shared = {"single": 0, "ddp": 0, "zero1": 1, "zero2": 2, "zero3": 3}[strategy]
    weights, gradients = (-(-size // devices) if shared >= least else size for least in (3, 2))
    moments = -(-2 * size // devices) if shared >= 1 else 2 * size
    tokens = micro_batch * context
    layers = config.num_hidden_layers * _kept_by_layer(config) * tokens * activation_bytes
    if checkpoint_activations:
        stream = config.num_hidden_layers * config.hidden_size * tokens * 4
        layers = stream + _kept_by_layer(config) * tokens * activation_bytes
    logits = 2 * tokens * config.vocab_size * 4
    return Memory(weights, gradients, 0 if offload else moments, layers + logits, moments if offload else 0)


def _kept_by_layer(config: ModelConfig) -> int:
    """Numbers for each token: inputs of both norms and what they give, queries, keys, values, the mixed
    heads, and the feed-forward network's inner states."""
    queries = config.num_attention_heads * config.head_dim
    keys = config.num_key_value_heads * config.head_dim
    inner = config.intermediate_size
    if config.num_local_experts is not None:
        inner = config.expert_size * (config.num_experts_per_tok + config.num_shared_experts)
    return 4 * config.hidden_size + 3 * queries + 3 * keys + (4 if config.gated else 2) * inner


def _attention_matrices(config: ModelConfig) -> int:
    queries = config.num_attention_heads * config.head_dim
    keys = config.num_key_value_heads * config.head_dim
    return 2 * config.hidden_size * queries + 2 * config.hidden_size * keys


def _attention_parameters(config: ModelConfig) -> int:
    queries = config.num_attention_heads * config.head_dim
    keys = config.num_key_value_heads * config.head_dim
    biases = queries + 2 * keys if config.attention_bias or config.qkv_bias else 0
    biases += config.hidden_size if config.attention_bias else 0
    return _attention_matrices(config) + biases + (2 * config.head_dim if config.qk_norm else 0)


def _feed_forward_matrices(config: ModelConfig, *, every_expert: bool) -> int:
    matrices = 3 if config.gated else 2
    if config.num_local_experts is None:
        return matrices * config.hidden_size * config.intermediate_size
    used = config.num_local_experts if every_expert else config.num_experts_per_tok
    experts = (used + config.num_shared_experts) * matrices * config.hidden_size * config.expert_size
    return experts + config.hidden_size * config.num_local_experts


def _feed_forward_parameters(config: ModelConfig, *, every_expert: bool) -> int:
    biases = 0
    if config.mlp_bias:
        biases = config.hidden_size + (2 if config.gated else 1) * config.intermediate_size
    return _feed_forward_matrices(config, every_expert=every_expert) + biases
