"""Encoding from the snapshot to packed token files, against the bare library.

    python -m benchmarks.encoding [--corpus sample/corpus] [--cores 2] [--rounds 5]

Ours reads a snapshot's part, encodes, finds the characters at every cut, packs, and writes tokens, tables
and hashes, as a task of the stage `encode` does. The peer is `tokenizers.Tokenizer.encode_batch` over the
same texts, already in memory, with the same tokenizer and threads; its encodings are thrown away. Both take
turns in one process; the figures are medians of tokens a second, the special tokens apart, and of the rounds'
ratios. Java and the training of the tokenizer (6,144 tokens) are left out. The table tells what packing does
with these documents.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpora import read_texts
from benchmarks.machine import describe_machine

NAME = "part-00000.parquet"


def main() -> None:
    """Print tokens a second of both, and a line for each context."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("sample/corpus"), help="a folder of *.jsonl.gz")
    parser.add_argument("--cores", type=int, default=2, help="threads of the library, for both")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    # Read by the library's pool of threads when it begins.
    os.environ |= {"RAYON_NUM_THREADS": str(arguments.cores), "TOKENIZERS_PARALLELISM": "true"}
    print(describe_machine("tokenizers", "numpy", "pyarrow"))
    texts = read_texts(arguments.corpus)
    size = sum(len(text.encode()) for text in texts) / 1e6
    print(f"corpus    {len(texts)} documents, {size:.1f} MB, {arguments.cores} threads")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        _write_part(texts, out / NAME)
        _train(texts, out)
        _ours(out, 2048)  # compiles and loads what is to be loaded once
        ours, peer = [], []
        for number in range(arguments.rounds):
            peer.append(_timed(lambda: _peer(texts, out)))
            ours.append(_timed(lambda: _ours(out, 2048)))
            print(f"round {number + 1}   ours {ours[-1]}, the library {peer[-1]}")
        _show_packing(out)
    rounds = list(zip(ours, peer, strict=True))
    result = {
        "benchmark": "encoding",
        "ours": round(statistics.median(rate.wall for rate in ours)),
        "peer": round(statistics.median(rate.wall for rate in peer)),
        "ratio": round(statistics.median(mine.wall / theirs.wall for mine, theirs in rounds), 3),
        "processor_ratio": round(
            statistics.median(mine.processor / theirs.processor for mine, theirs in rounds), 3
        ),
    }
    print(json.dumps(result))


@dataclass(frozen=True)
class _Rate:
    """Tokens a second of wall time, and of processor time, which tells more on a busy machine."""

    wall: float
    processor: float

    def __str__(self) -> str:
        return f"{self.wall / 1e6:.3f} M tokens/s ({self.processor / 1e6:.3f} of processor time)"


def _timed(work: Callable[[], int]) -> _Rate:
    wall, processor = time.perf_counter(), time.process_time()
    tokens = work()
    return _Rate(tokens / (time.perf_counter() - wall), tokens / (time.process_time() - processor))


def _write_part(texts: list[str], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tasks.corpus.encoding.splits import GROUPS

    columns = {"id": pa.array([f"{number:032x}" for number in range(len(texts))]), "text": pa.array(texts)}
    columns["copy"] = pa.array([0] * len(texts), pa.int64())
    columns["split"] = pa.array(["train"] * len(texts))
    columns |= {group: pa.array(["en"] * len(texts)) for group in GROUPS}
    pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=20_000)


def _train(texts: list[str], out: Path) -> None:
    from tasks.corpus.encoding.tokenizer_directory import write_config
    from tasks.corpus.tokenizer import train_tokenizer
    from tasks.training.chat import SPECIAL_TOKENS, tokenizer_config

    train_tokenizer(iter(texts), 6144, list(SPECIAL_TOKENS)).save(str(out / "tokenizer.json"))
    write_config(out, tokenizer_config(2048))


def _ours(out: Path, context: int) -> int:
    """Encode one part; how many tokens of text there were."""
    from tasks.corpus.encoding.index import token_type
    from tasks.corpus.encoding.parts import encode_part
    from tasks.corpus.encoding.slices import slice_size
    from tasks.corpus.encoding.splits import Layout
    from tasks.corpus.encoding.token_bytes import token_bytes
    from tasks.corpus.fertility import token_kinds
    from tasks.training.chat import ChatTokenizer

    chat = ChatTokenizer(out)
    layout = Layout(
        dtype=token_type(chat.vocab_size), sequence_tokens=context + 1, bos=chat.bos_id, eos=chat.eos_id,
        pad=chat.pad_id, slice_characters=slice_size(chat.encode), kinds=token_kinds(chat),
        bytes_V=token_bytes(out),
    )  # fmt: skip
    (written,) = encode_part(0, out / NAME, NAME, chat, out, layout)
    return written.file.tokens - 2 * written.file.documents


def _peer(texts: list[str], out: Path) -> int:
    """Encode with the library alone; how many tokens there were."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return sum(map(len, tokenizer.encode_batch(texts, add_special_tokens=False)))


def _show_packing(out: Path) -> None:
    """What packing and a stream cut into windows do with the documents."""
    import numpy as np
    import pyarrow.parquet as pq

    from tasks.corpus.encoding.packing import pack

    lengths_D = pq.read_table(out / "train-00000.documents.parquet").column("tokens").to_numpy()
    ends_D = np.cumsum(lengths_D)
    print("context   sequences   padding   documents cut: by packing   by windows of a stream")
    for context in (256, 2048, 8192):
        size = context + 1
        sequences = pack(lengths_D, size).sequences
        padding = 1 - ends_D[-1] / (sequences * size)
        cut = np.mean((ends_D - lengths_D) // size != (ends_D - 1) // size)
        print(
            f"{context:7d}  {sequences:10d}  {padding:8.3%}  {np.mean(lengths_D > size):26.1%}  {cut:23.1%}"
        )


if __name__ == "__main__":
    main()
