"""The index of the documents that were kept: what a later month is compared with.

A folder for each method, with the files of its segments (see segments.py), and ``index.json``, written last.
It holds hashes and numbers, no text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tasks.corpus.deduplication.arrays import mapped_array, write_array
from tasks.corpus.deduplication.method import Method
from tasks.corpus.deduplication.segments import FILES, Segment
from tasks.corpus.deduplication.signing import SIGNATURES
from tasks.distributed import batches, run_tasks
from tasks.links import link_or_copy
from tasks.stage import StageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANIFEST = "index.json"
TABLE = "table.npy"
"""A file of the method as a whole, where it has one."""

READ_WHOLE = ("documents", "keys", "rows")
"""Files that a run reads from end to end, and therefore checks; features are checked where they are used."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class IndexedSegment(_Model):
    """The files of some documents: their names begin with ``name``."""

    name: str = Field(pattern=r"^[0-9]+-[0-9]+$")
    documents: int = Field(ge=0)
    bytes: dict[str, int]
    sha256: dict[str, str]

    @model_validator(mode="after")
    def _names_all_files(self) -> IndexedSegment:
        for listed, wanted in ((self.bytes, FILES), (self.sha256, READ_WHOLE)):
            if missing := set(wanted) - set(listed):
                raise ValueError(f"segment {self.name} does not tell of its {', '.join(sorted(missing))}")
        return self


class IndexedMethod(_Model):
    """A method with its parameters, and a hash of what it makes of texts that never change."""

    parameters: dict[str, Any]
    probe: str
    table: str | None
    """sha256 of `TABLE`"""
    segments: list[IndexedSegment]


class Index(_Model):
    """``index.json``."""

    methods: dict[str, IndexedMethod]


PROBE = (
    "The quick brown fox jumps over the lazy dog, twice.",
    "Übergröße, naïve: don't!",
    "人工智能是工程",
    "ภาษาไทย",
)


def probe(method: Method) -> str:
    """A hash of features and keys of `PROBE`: another version may cut words otherwise."""
    import pyarrow as pa

    made = method.measure(pa.array(PROBE))
    return hashlib.sha256(made.values.tobytes() + made.keys_K.tobytes()).hexdigest()[:16]


def earlier_segments(
    spark: SparkSession, folder: Path, method: Method, parameters: dict[str, Any]
) -> list[Segment]:
    """The segments of an index for a method; none if the folder has no index.

    Raises:
        StageError: the index is damaged, or was made with other parameters: naming the file or the
            difference.
    """
    index = read_index(folder)
    if index is None:
        return []
    held = index.methods.get(method.name)
    if held is None:
        raise StageError(
            f"{folder / MANIFEST} has no documents indexed by {method.name}, but by "
            f"{', '.join(index.methods)}: deduplicate as those before were, or make the index anew"
        )
    _check_table(folder / method.name / TABLE, held.table)
    _check_same(folder, method, held, parameters)
    segments, first = [], 0
    for entry in held.segments:
        segments.append(Segment(str((folder / method.name).absolute()), entry.name, first, entry.documents))
        first += entry.documents
    run_tasks(spark, batches(spark, list(zip(segments, held.segments, strict=True))), _check_files)
    return segments


def read_index(folder: Path) -> Index | None:
    """What a folder's ``index.json`` says; None if the folder has none.

    Raises:
        StageError: it is none, or DVC tracks one that is not there.
    """
    path = folder / MANIFEST
    try:
        return Index.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        if folder.with_name(f"{folder.name}.dvc").exists():
            raise StageError(
                f"{path} does not exist, but {folder}.dvc says that there is an index: "
                f"`dvc checkout {folder}.dvc` brings it back"
            ) from None
        return None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise StageError(
            f"{path} is no index of documents: {place}: {first['msg']}. Restore it (`dvc checkout`)"
        ) from None


@dataclass(frozen=True)
class NextIndex:
    """The index of this month: the documents of the earlier one, and the new ones that stay.

    Attributes:
        out: where it is written.
        before: the folder of the earlier index.
        made: of each method its parameters, its table, the earlier segments and the new ones.
        removed: files with the numbers of rows of the layer, ascending, that go.
    """

    out: Path
    before: Path
    made: Sequence[tuple[Method, dict[str, Any], Path | None, Sequence[Segment], Sequence[Segment]]]
    removed: Sequence[Path]

    def tasks(self, spark: SparkSession) -> list[Callable[[], list[tuple[str, IndexedSegment]]]]:
        """What is to be done, each in any order; returns what `finish` wants."""
        index = read_index(self.before)
        found: list[Callable[[], list[tuple[str, IndexedSegment]]]] = []
        for method, _, _, old, new in self.made:
            folder = (self.out / method.name).absolute()
            folder.mkdir(parents=True)
            entries = index.methods[method.name].segments if index else []
            first = new[0].first if new else 0
            pairs = batches(spark, list(zip(old, entries, strict=True)))
            found += [partial(_carried, method.name, folder, some) for some in pairs]
            found += [
                partial(_written, method.name, folder, segment, segment.first - first, self.removed)
                for segment in new
            ]
        return found

    def finish(self, written: Iterable[list[tuple[str, IndexedSegment]]]) -> None:
        """Write the manifest, last."""
        held = [entry for some in written for entry in some]
        methods = {}
        for method, parameters, table, _, _ in self.made:
            if table is not None:
                link_or_copy(table, self.out / method.name / TABLE)
            segments = [entry for name, entry in held if name == method.name and entry.documents]
            methods[method.name] = IndexedMethod(
                parameters=parameters,
                probe=probe(method),
                table=_sha256(table) if table else None,
                segments=segments,
            )
        (self.out / MANIFEST).write_text(Index(methods=methods).model_dump_json(indent=1) + "\n", "utf-8")


def described(segment: Segment) -> IndexedSegment:
    """A segment's files as ``index.json`` lists them."""
    paths = {what: segment.path(what) for what in (*FILES, SIGNATURES)}
    paths = {what: path for what, path in paths.items() if path.exists()}
    return IndexedSegment(
        name=segment.name,
        documents=segment.documents,
        bytes={what: path.stat().st_size for what, path in paths.items()},
        sha256={what: _sha256(paths[what]) for what in READ_WHOLE},
    )


def _written(
    name: str, folder: Path, segment: Segment, row: int, removed: Sequence[Path]
) -> list[tuple[str, IndexedSegment]]:
    """Write the documents of a segment that stay; its first is this row of the layer."""
    stays_D = np.ones(segment.documents, bool)
    for path in removed:
        numbers = mapped_array(path)
        start, stop = np.searchsorted(numbers, [row, row + segment.documents])
        stays_D[numbers[start:stop] - row] = False
    out = Segment(str(folder), segment.name, 0, int(stays_D.sum()))
    rows = mapped_array(segment.path("rows"))
    kept_K = stays_D[rows]
    places_D = np.cumsum(stays_D) - 1
    write_array(out.path("documents"), mapped_array(segment.path("documents"))[stays_D])
    write_array(out.path("keys"), mapped_array(segment.path("keys"))[kept_K])
    write_array(out.path("rows"), places_D[rows[kept_K]].astype(np.uint32))
    if segment.path(SIGNATURES).exists():
        write_array(out.path(SIGNATURES), mapped_array(segment.path(SIGNATURES))[stays_D])
    link_or_copy(segment.path("features"), out.path("features"))
    return [(name, described(out))]


def _carried(
    name: str, folder: Path, pairs: Sequence[tuple[Segment, IndexedSegment]]
) -> list[tuple[str, IndexedSegment]]:
    """Take over segments of the earlier index as they are."""
    for segment, entry in pairs:
        for what in entry.bytes:
            link_or_copy(segment.path(what), folder / f"{segment.name}.{what}.npy")
    return [(name, entry) for _, entry in pairs]


def _check_table(path: Path, expected: str | None) -> None:
    if expected is not None and not (path.exists() and _sha256(path) == expected):
        what = "damaged: it is not the file that" if path.exists() else "missing, but"
        raise StageError(f"{path} is {what} {MANIFEST} lists. Restore the index (`dvc checkout`)")


def _check_same(folder: Path, method: Method, held: IndexedMethod, parameters: dict[str, Any]) -> None:
    for name in sorted(parameters.keys() | held.parameters.keys()):
        theirs, ours = held.parameters.get(name), parameters.get(name)
        if theirs != ours:
            raise StageError(
                f"{folder / MANIFEST} was made with {name} = {theirs}, but dedup has {name} = {ours}: their "
                f"documents cannot be compared. Set dedup's {name} to {theirs}, or make the index anew from "
                "all documents"
            )
    if held.probe != probe(method):
        raise StageError(
            f"{folder / MANIFEST} was made by a version that cuts or hashes texts otherwise (probe "
            f"{held.probe}, here {probe(method)}): make the index anew from all documents"
        )


def _check_files(pairs: Sequence[tuple[Segment, IndexedSegment]]) -> None:
    for segment, entry in pairs:
        _check_segment(segment, entry)


def _check_segment(segment: Segment, entry: IndexedSegment) -> None:
    for what, size in entry.bytes.items():
        path = segment.path(what)
        if not path.exists():
            raise StageError(
                f"{path} is missing, but {MANIFEST} lists it: restore the index (`dvc checkout`)"
            )
        if path.stat().st_size != size or (what in READ_WHOLE and _sha256(path) != entry.sha256[what]):
            raise StageError(
                f"{path} is damaged: it is not the file that {MANIFEST} lists. Restore the index "
                "(`dvc checkout`), or make it anew from all documents"
            )
    held = len(mapped_array(segment.path("documents")))
    if held != entry.documents:
        manifest = Path(segment.folder).parent / MANIFEST
        raise StageError(
            f"{manifest} says that segment {segment.name} has {entry.documents} documents, but its files "
            f"have {held}: restore the index (`dvc checkout`)"
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
