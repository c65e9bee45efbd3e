"""A mixture of experts against the dense network of as many parameters.

    python -m benchmarks.mixture_of_experts [--threads 2] [--rounds 5]

Both have 4 layers of 256 channels and train on the same rows (forward, backward, AdamW; batch 4, 256 tokens,
fp32), by turns. The mixture has 32 experts of 512 channels in each layer, of which a token uses 2; the dense
network is one of 32 · 512 channels. The figures are medians of tokens a second. Last, the layer alone against
transformers' Mixtral block with the same weights and tokens, forward and backward.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.machine import describe_machine
from models.config import ModelConfig
from models.estimates import parameter_count
from models.initialization import initialise
from models.moe import SparseMoE
from models.routing import Routing
from models.transformer import CausalLM

EXPERTS, EXPERT_SIZE, BATCH, CONTEXT = 32, 512, 4, 256


def main() -> None:
    """Print tokens a second of the mixture, the dense network and both layers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(describe_machine("torch", "transformers"))
    mixture, dense = _config(num_local_experts=EXPERTS, moe_intermediate_size=EXPERT_SIZE), _config()
    print(f"parameters {parameter_count(mixture):,} in the mixture, {parameter_count(dense):,} dense")
    ours, peer = _rates(_training(mixture), _training(dense), arguments.rounds)
    print(f"training   mixture {ours:9.0f} tokens/s   dense {peer:9.0f}   ratio {ours / peer:.2f}")
    layer, block = _rates(_layer(mixture), _block(mixture), arguments.rounds)
    print(f"the layer  ours    {layer:9.0f} tokens/s   transformers {block:9.0f}   ratio {layer / block:.2f}")
    result = {"ours": round(ours), "peer": round(peer), "ratio": round(ours / peer, 2)}
    print(json.dumps({"benchmark": "mixture_of_experts", **result, "against_block": round(layer / block, 2)}))


def _config(**choice: Any) -> ModelConfig:
    return ModelConfig(
        vocab_size=2048, hidden_size=256, intermediate_size=EXPERTS * EXPERT_SIZE, num_hidden_layers=4,
        num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=CONTEXT, **choice,
    )  # fmt: skip


def _rates(ours: Callable[[], None], peer: Callable[[], None], rounds: int) -> tuple[float, float]:
    """Median tokens a second of both, which take turns; the first turn of each is not counted."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for work, taken in zip((ours, peer), seconds, strict=True):
            started = time.perf_counter()
            work()
            if number:
                taken.append(time.perf_counter() - started)
    mine, theirs = (BATCH * CONTEXT / statistics.median(taken) for taken in seconds)
    return mine, theirs


def _training(config: ModelConfig) -> Callable[[], None]:
    model = CausalLM(config)
    initialise(model, config, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens_BT = torch.randint(0, 2048, (BATCH, CONTEXT), generator=torch.Generator().manual_seed(0))

    def step() -> None:
        routing = Routing()
        logits_BTV = model(tokens_BT, routing=routing)
        loss = logits_BTV.logsumexp(-1).sum() + routing.loss(config)
        optimizer.zero_grad()
        (loss / tokens_BT.numel()).backward()
        optimizer.step()

    return step


def _inputs() -> torch.Tensor:
    return torch.randn(BATCH, CONTEXT, 256, generator=torch.Generator().manual_seed(0))


def _layer(config: ModelConfig) -> Callable[[], None]:
    layer = SparseMoE(config, 0)
    initialise(layer, config, seed=0)
    x_BTC = _inputs().requires_grad_()
    return lambda: layer(x_BTC).sum().backward()


def _block(config: ModelConfig) -> Callable[[], None]:
    from transformers import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

    theirs = MixtralConfig(
        hidden_size=256, intermediate_size=EXPERT_SIZE, num_local_experts=EXPERTS, num_experts_per_tok=2
    )
    block = MixtralSparseMoeBlock(theirs)
    ours = SparseMoE(config, 0)
    initialise(ours, config, seed=0)
    block.load_state_dict(ours.state_dict())
    x_BTC = _inputs().requires_grad_()
    assert torch.allclose(block(x_BTC), ours(x_BTC), atol=1e-5)
    return lambda: block(x_BTC).sum().backward()


if __name__ == "__main__":
    main()
