"""A snapshot in, a tokenizer and memory-mapped token files out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import Field, model_validator

from tasks.corpus.encoding.index import ListedFile, SpecialTokens, TokenIndex, token_type, write_index
from tasks.corpus.encoding.parts import SPLITS, encode_part, read_rows, texts_of
from tasks.corpus.encoding.slices import slice_size
from tasks.corpus.encoding.splits import GROUPS, EncodedSplit, Layout, TokenCounts
from tasks.corpus.encoding.token_bytes import token_bytes
from tasks.corpus.encoding.tokenizer_directory import TOKENIZER, adopt, check_digest, write_config
from tasks.corpus.fertility import Fertility, fertility, token_kinds
from tasks.corpus.snapshot import Manifest, file_sha256, verify
from tasks.corpus.tokenizer import train_tokenizer
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import Input, Output, StageError, StageParams, StageReport, run_as_stage, stage
from tasks.training.chat import SPECIAL_TOKENS, TOKENIZER_FILES, ChatTokenizer, tokenizer_config


class EncodeParams(StageParams):
    """The tokenizer, and the length of sequences."""

    tokenizer: str | None = Field(
        default=None, description="a directory with a tokenizer.json to take; null: one is trained"
    )
    tokenizer_digest: str | None = Field(
        default=None, description="what the stage says that directory's digest is; required with it"
    )
    vocabulary: int = Field(
        default=32768, ge=300, description="tokens at most, the special ones and 256 bytes among them"
    )
    tokenizer_bytes: int = Field(
        default=2**30, ge=1, description="text that the tokenizer learns from, from the first on"
    )
    context: int = Field(
        default=2048, ge=8, description="inputs of a sequence: pretrain.context must be the same"
    )
    bos: bool = Field(default=True, description="a begin token before every document")
    eos: bool = Field(default=True, description="an end token behind every document")

    @model_validator(mode="after")
    def _digest_is_of_a_tokenizer(self) -> EncodeParams:
        if self.tokenizer is None and self.tokenizer_digest is not None:
            raise ValueError("tokenizer_digest is given, but no tokenizer that it is of")
        return self


class EncodeReport(StageReport):
    """The tokens in numbers."""

    snapshot: str
    vocabulary: int
    tokens: dict[str, int]
    """of each split, without padding"""
    documents: dict[str, int]
    bytes: dict[str, int]
    bytes_per_token: float
    sequences: int
    """that the training documents are packed into"""
    padding_share: float
    """of the tokens of these sequences"""
    cut_share: float
    """of the training documents: those longer than a sequence"""
    tokens_by: dict[str, dict[str, int]]
    """tokens of both splits by source, kind, domain and language, the copies of a document included"""
    languages: dict[str, Fertility]
    """how well the tokenizer suits each"""


@stage
def encode(snapshot: Input, tokens: Output, params: EncodeParams, resources: Resources) -> EncodeReport:
    """Encode every document with a tokenizer that is trained here or given, and pack the training documents.

    One token file for each part of the snapshot and split, so that the files do not depend on how many
    workers wrote them; beside it a table of its documents, and one of the pieces in each sequence, by which
    `gristmill trace` tells what was in a training step.

    Raises:
        StageError: a file of the snapshot is not the one its manifest lists; there is nothing to train on;
            the given tokenizer is none, or not the one that the parameters say.
    """
    manifest = verify(snapshot)
    tokens.mkdir(parents=True)
    _prepare_tokenizer(manifest, snapshot, tokens, params)
    tokenizer = ChatTokenizer(tokens)
    layout = Layout(
        dtype=token_type(tokenizer.vocab_size),
        sequence_tokens=params.context + 1,
        bos=tokenizer.bos_id if params.bos else None,
        eos=tokenizer.eos_id if params.eos else None,
        pad=tokenizer.pad_id,
        slice_characters=slice_size(tokenizer.encode),
        kinds=token_kinds(tokenizer),
        bytes_V=token_bytes(tokens),
    )
    written = _encode_parts(manifest, snapshot, tokens, layout, resources)
    files = {split: [part.file for part in written if part.split == split] for split in SPLITS}
    if not files["train"]:
        raise StageError(f"{snapshot} has no training document: see mix.epochs and mix.validation_share")
    sequences = sum(file.sequences or 0 for file in files["train"])
    if not sequences:
        raise StageError(f"the training documents of {snapshot} have no tokens: all are empty")
    index = TokenIndex(
        dtype=token_type(tokenizer.vocab_size),
        vocab_size=tokenizer.vocab_size,
        context=params.context,
        special_tokens=SpecialTokens(bos=tokenizer.bos_id, eos=tokenizer.eos_id, pad=tokenizer.pad_id),
        begins=params.bos,
        ends=params.eos,
        tokenizer=[ListedFile(file=name, sha256=file_sha256(tokens / name)) for name in TOKENIZER_FILES],
        splits=files,
        snapshot=manifest.snapshot,
    )
    write_index(tokens, index)
    totals = {
        field: {split: sum(getattr(file, field) for file in files[split]) for split in SPLITS}
        for field in ("tokens", "documents", "bytes")
    }
    packed, documents = totals["tokens"]["train"], totals["documents"]["train"]
    return EncodeReport(
        snapshot=manifest.snapshot,
        vocabulary=tokenizer.vocab_size,
        **totals,
        bytes_per_token=round(sum(totals["bytes"].values()) / max(1, sum(totals["tokens"].values())), 4),
        sequences=sequences,
        padding_share=round(1 - packed / (sequences * layout.sequence_tokens), 6),
        cut_share=round(sum(part.cut_documents for part in written) / documents, 6),
        tokens_by=_summed(part.counts for part in written),
        languages=fertility(part.measured for part in written),
    )


def _prepare_tokenizer(manifest: Manifest, snapshot: Path, tokens: Path, params: EncodeParams) -> None:
    """Write the tokenizer's files: those of the given one, or of one trained on the training documents."""
    if params.tokenizer is not None:
        check_digest(Path(params.tokenizer), params.tokenizer_digest)
        adopt(Path(params.tokenizer), tokens, params.context)
        return
    parts = [snapshot / file.path for file in manifest.files]
    texts = _bounded(_training_texts(parts), params.tokenizer_bytes)
    train_tokenizer(texts, params.vocabulary, list(SPECIAL_TOKENS)).save(str(tokens / TOKENIZER))
    write_config(tokens, tokenizer_config(params.context))


def _encode_parts(
    manifest: Manifest, snapshot: Path, tokens: Path, layout: Layout, resources: Resources
) -> list[EncodedSplit]:
    """Encode each part in a task of Spark's, whose workers must see the same directories."""
    here, there = snapshot.resolve(), tokens.resolve()
    numbered = list(enumerate(file.path for file in manifest.files))
    if not numbered:
        return []

    def encoded(part: tuple[int, str]) -> list[EncodedSplit] | str:
        number, name = part
        try:
            return encode_part(number, here / name, name, ChatTokenizer(there), there, layout)
        except StageError as error:
            return str(error)

    with spark_session("encode", resources) as spark:
        done = spark.sparkContext.parallelize(numbered, len(numbered)).map(encoded).collect()
    written: list[EncodedSplit] = []
    for found in done:
        if isinstance(found, str):
            raise StageError(found)
        written += found
    # What an attempt that was killed and tried again has left.
    for left in tokens.glob(".*"):
        left.unlink()
    return sorted(written, key=lambda part: part.file.file)


def _summed(parts: Iterable[TokenCounts]) -> dict[str, dict[str, int]]:
    totals: dict[str, Counter[str]] = {group: Counter() for group in GROUPS}
    for part in parts:
        for group, counts in part.items():
            totals[group].update(counts)
    return {group: dict(sorted(total.items())) for group, total in totals.items()}


def _training_texts(parts: list[Path]) -> Iterator[str]:
    import pyarrow.compute as pc

    for part in parts:
        for rows in read_rows(part, ["id", "text", "split"]):
            yield from texts_of(rows.filter(pc.field("split") == "train"), part)


def _bounded(texts: Iterator[str], limit: int) -> Iterator[str]:
    seen = 0
    for text in texts:
        if seen >= limit:
            return
        raw = text.encode("utf-8", "surrogatepass")[: limit - seen]
        yield raw.decode("utf-8", "ignore")
        seen += len(raw)


if __name__ == "__main__":
    run_as_stage(encode)
