"""A snapshot in, a tokenizer and memory-mapped token files out."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from tasks.corpus.fertility import Fertility, FertilityCounts, fertility, partial_tokens
from tasks.corpus.snapshot import verify
from tasks.corpus.token_documents import documents_path, write_token_documents
from tasks.corpus.tokenizer import train_tokenizer
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import Input, Output, StageError, StageParams, StageReport, run_as_stage, stage
from tasks.training.chat import BEGIN, END, PAD, SPECIAL_TOKENS, ChatTokenizer, tokenizer_config

SPLITS = ("train", "validation")
GROUPS = ("source", "kind", "domain", "language")
"""Columns by whose values tokens are counted."""
_DOCUMENTS_AT_ONCE = 64


class EncodeParams(StageParams):
    """The tokenizer."""

    vocabulary: int = Field(
        default=32768, ge=300, description="tokens at most, the special ones and 256 bytes among them"
    )
    tokenizer_bytes: int = Field(
        default=2**30, ge=1, description="text that the tokenizer learns from, from the first on"
    )
    context: int = Field(
        default=2048, ge=8, description="the longest input that tokenizer_config.json announces"
    )


class EncodeReport(StageReport):
    """The tokens in numbers."""

    snapshot: str
    vocabulary: int
    tokens: dict[str, int]
    documents: dict[str, int]
    bytes: dict[str, int]
    bytes_per_token: float
    tokens_by: dict[str, dict[str, int]]
    """tokens of both splits by source, kind, domain and language, the copies of a document included"""
    languages: dict[str, Fertility]
    """how well the tokenizer suits each"""


TokenCounts = Counter[tuple[str, str]]
"""Tokens by group and value."""


@dataclass(frozen=True)
class TokenFile:
    """One file of tokens, as ``index.json`` lists it; ``bytes`` counts the text in UTF-8."""

    file: str
    tokens: int
    documents: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class _Encoded:
    """What became of one split of one part of the snapshot."""

    split: str
    file: TokenFile
    counts: TokenCounts
    measured: FertilityCounts


@stage
def encode(snapshot: Input, tokens: Output, params: EncodeParams, resources: Resources) -> EncodeReport:
    """Train a byte-level BPE on the training documents and write every document as begin, text, end.

    One token file for each part of the snapshot and split, so that the files do not depend on how many
    workers wrote them; beside it a table of its documents, by which `gristmill trace` tells what was in a
    training step.

    Raises:
        StageError: a file of the snapshot is not the one its manifest lists; there is nothing to train on.
    """
    manifest = verify(snapshot)
    parts = [str((snapshot / file.path).resolve()) for file in manifest.files]
    tokens.mkdir(parents=True)
    tokenizer = train_tokenizer(
        _bounded(_texts(parts, "train"), params.tokenizer_bytes), params.vocabulary, list(SPECIAL_TOKENS)
    )
    tokenizer.save(str(tokens / "tokenizer.json"))
    config = json.dumps(tokenizer_config(params.context), indent=2, sort_keys=True)
    (tokens / "tokenizer_config.json").write_text(config + "\n", "utf-8")
    directory = str(tokens.resolve())
    with spark_session("encode", resources) as spark:
        numbered = spark.sparkContext.parallelize(list(enumerate(parts)), len(parts))
        written = numbered.flatMap(lambda part: _encode_part(part[0], part[1], directory)).collect()
    files = {
        split: sorted((part.file for part in written if part.split == split), key=lambda file: file.file)
        for split in SPLITS
    }
    if not files["train"]:
        raise StageError(f"{snapshot} has no training document: see mix.epochs and mix.validation_share")
    index = {
        "dtype": _dtype(tokenizer.get_vocab_size()),
        "vocab_size": tokenizer.get_vocab_size(),
        "special_tokens": {
            name: tokenizer.token_to_id(t) for name, t in (("bos", BEGIN), ("eos", END), ("pad", PAD))
        },
        "splits": {split: [asdict(file) for file in files[split]] for split in SPLITS},
        "snapshot": manifest.snapshot,
    }
    (tokens / "index.json").write_text(json.dumps(index, indent=1) + "\n", "utf-8")
    totals = {
        field: {split: sum(getattr(file, field) for file in files[split]) for split in SPLITS}
        for field in ("tokens", "documents", "bytes")
    }
    return EncodeReport(
        snapshot=manifest.snapshot,
        vocabulary=tokenizer.get_vocab_size(),
        **totals,
        bytes_per_token=round(sum(totals["bytes"].values()) / max(1, sum(totals["tokens"].values())), 4),
        tokens_by=_summed(part.counts for part in written),
        languages=fertility(part.measured for part in written),
    )


def _summed(parts: Iterable[TokenCounts]) -> dict[str, dict[str, int]]:
    total: TokenCounts = sum(parts, TokenCounts())
    return {
        group: {value: count for (its, value), count in sorted(total.items()) if its == group}
        for group in GROUPS
    }


def _texts(parts: list[str], split: str) -> Iterator[str]:
    for part in parts:
        for rows in _batches(part, ["text", "split"]):
            yield from (row["text"] for row in rows if row["split"] == split)


def _batches(part: str, columns: list[str]) -> Iterator[list[dict[str, Any]]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(part) as file:
        for batch in file.iter_batches(batch_size=_DOCUMENTS_AT_ONCE, columns=columns):
            yield batch.to_pylist()


def _bounded(texts: Iterator[str], limit: int) -> Iterator[str]:
    seen = 0
    for text in texts:
        if seen >= limit:
            return
        raw = text.encode("utf-8", "surrogatepass")[: limit - seen]
        yield raw.decode("utf-8", "ignore")
        seen += len(raw)


def _encode_part(number: int, part: str, directory: str) -> list[_Encoded]:
    """Encode one part; runs on a Spark worker, which must see the same directory."""
    out = Path(directory)
    tokenizer = ChatTokenizer(out)
    partial_V = partial_tokens(tokenizer)
    dtype = _dtype(tokenizer.vocab_size)
    written: list[_Encoded] = []
    for split in SPLITS:
        name = f"{split}-{number:05d}.bin"
        unfinished = out / f".{name}.{os.getpid()}"
        digest = hashlib.sha256()
        text_bytes = 0
        counts, measured = TokenCounts(), FertilityCounts()
        held: list[tuple[str, int, int]] = []
        with unfinished.open("wb") as file:
            for rows in _batches(part, ["id", "copy", "text", "split", *GROUPS]):
                chosen = [row for row in rows if row["split"] == split]
                texts = [row["text"] for row in chosen]
                encoded = tokenizer.encode_batch(texts)
                for document, ids in zip(chosen, encoded, strict=True):
                    row = np.array([tokenizer.bos_id, *ids, tokenizer.eos_id], dtype=dtype)
                    file.write(row.data)
                    digest.update(row.data)
                    held.append((document["id"], document["copy"], len(row)))
                    for group in GROUPS:
                        counts[group, document[group] or "und"] += len(row)
                measured.add(texts, [row["language"] or "und" for row in chosen], encoded, partial_V)
                text_bytes += sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        if held:
            unfinished.replace(out / name)
            write_token_documents(documents_path(out, name), held)
            tokens = sum(count for _, _, count in held)
            entry = TokenFile(name, tokens, len(held), text_bytes, digest.hexdigest())
            written.append(_Encoded(split, entry, counts, measured))
        else:
            unfinished.unlink()
    return written


def _dtype(vocabulary: int) -> str:
    return "uint16" if vocabulary <= 2**16 else "uint32"


if __name__ == "__main__":
    run_as_stage(encode)
