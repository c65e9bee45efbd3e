"""A sliding window against attention to all tokens, at a length of 16,384.

    python -m benchmarks.window_attention [--length 16384] [--window 1024] [--threads 2] [--rounds 3]

The same network (4 layers, 256 channels, 8 heads, 4 of keys and values) with a window in every layer and
without, in processes of their own that take turns: a training step (forward and backward of a row in fp32)
and generation (the row read in pieces of 512 tokens, then 32 tokens one by one). The peer is torch's fused
attention over all tokens. Seconds are medians; memory is what the process held at most above what it held
with the model loaded. Fused attention keeps nothing quadratic, so a window saves time in training, and memory
where keys and values are kept: in generation.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.machine import describe_machine

PIECE, NEW_TOKENS = 512, 32


def main() -> None:
    """Print seconds and MiB of both, of both kinds of work."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--length", type=int, default=16384)
    parser.add_argument("--window", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", nargs=2, metavar=("WORK", "WINDOW"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        work, window = arguments.measure
        print(json.dumps(_measure(work, int(window) or None, arguments.length, arguments.threads)))
        return
    print(describe_machine("torch"))
    saved: dict[str, float] = {}
    for work in ("training", "generation"):
        found: dict[int, list[dict[str, float]]] = {arguments.window: [], 0: []}
        for _ in range(arguments.rounds):
            for window, runs in found.items():
                runs.append(_in_process(work, window, arguments))
        for what in ("seconds", "mib"):
            ours, peer = (statistics.median(run[what] for run in runs) for runs in found.values())
            saved[f"{work}_{what}_saved"] = round(1 - ours / peer, 3)
            print(f"{work:10s} {what:8s} window {ours:9.2f}   all {peer:9.2f}   saved {1 - ours / peer:.0%}")
            if (work, what) == ("generation", "mib"):
                memory = {"ours": round(ours, 1), "peer": round(peer, 1), "ratio": round(ours / peer, 3)}
    print(json.dumps({"benchmark": "window_attention", **memory, **saved}))


def _in_process(work: str, window: int, arguments: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.window_attention", "--measure", work, str(window)]
    command += ["--length", str(arguments.length), "--threads", str(arguments.threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _measure(work: str, window: int | None, length: int, threads: int) -> dict[str, float]:
    import torch

    from models.config import ModelConfig
    from models.initialization import initialise
    from models.transformer import CausalLM

    torch.set_num_threads(threads)
    config = ModelConfig(
        vocab_size=512, hidden_size=256, intermediate_size=704, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=length + NEW_TOKENS, sliding_window=window,
    )  # fmt: skip
    model = CausalLM(config)
    initialise(model, config, seed=0)
    tokens_BT = torch.randint(0, 512, (1, length), generator=torch.Generator().manual_seed(0))
    run = _train if work == "training" else _generate
    run(model, tokens_BT[:, : 2 * PIECE])  # allocates what every run needs
    _forget_peak()
    before = _held()
    started = time.perf_counter()
    run(model, tokens_BT)
    return {"seconds": time.perf_counter() - started, "mib": (_peak() - before) / 2**20}


def _train(model, tokens_BT) -> None:
    model.train()
    model(tokens_BT).logsumexp(-1).mean().backward()
    model.zero_grad(set_to_none=True)


def _generate(model, tokens_BT) -> None:
    import torch

    from models.cache import KeyValueCache

    length = tokens_BT.shape[1]
    cache = KeyValueCache(model.config, 1, length + NEW_TOKENS)
    with torch.no_grad():
        for piece_BT in tokens_BT.split(PIECE, dim=1):
            hidden_BTC = model.hidden(piece_BT, cache=cache)
        for _ in range(NEW_TOKENS):
            token_BT = model.lm_head(hidden_BTC[:, -1:]).argmax(-1)
            hidden_BTC = model.hidden(token_BT, cache=cache)


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _held() -> int:
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)


if __name__ == "__main__":
    main()
