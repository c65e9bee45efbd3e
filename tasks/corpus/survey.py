"""What has to be known of files before they are read, looked up on the executors: identities, row groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tasks.corpus.found_files import FoundFile, NoFile
from tasks.corpus.locations import Location
from tasks.corpus.reading.compression import compression_of
from tasks.corpus.reading.formats import HEAD_BYTES, wide_encoding
from tasks.corpus.reading.reading import row_groups, split_kind
from tasks.corpus.sources import SourceParams
from tasks.corpus.spreading import decoded, encoded, is_cut_by_row_groups, spread
from tasks.corpus.store_errors import Unreadable
from tasks.corpus.watermarks import Mark, fingerprint

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

QUESTION_COLUMNS = {
    "number": "bigint", "source": "int", "path": "binary", "name": "string", "size": "bigint",
    "identity": "string", "before": "bigint", "groups": "int",
}  # fmt: skip

ANSWER_COLUMNS = {
    "number": "bigint", "size": "bigint", "identity": "string", "before": "string", "resume": "bigint",
    "groups": "bigint", "rule": "string", "detail": "string",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A file with its identity; whether it is to be read, and from where on."""

    source: int
    file: FoundFile
    kind: str | None
    start: int | None
    groups: int = 0

    @property
    def bytes_to_read(self) -> int:
        """Bytes, as far as the size is known; 0 for a file that is skipped."""
        return 0 if self.start is None else (self.file.size or 0) - self.start


def survey(
    spark: SparkSession,
    sources: list[SourceParams],
    corpus: Path,
    found: list[tuple[int, FoundFile]],
    marks: list[dict[str, Mark]],
) -> list[Surveyed | tuple[int, NoFile]]:
    """Decide for every file, given with the number of its source, whether it is new, has grown, or is known.

    ``marks`` has the watermark of each source. Only what no listing tells is looked up; local files are
    hashed.
    """
    readings = [source.reading() for source in sources]
    whole = [source.location(corpus).is_http for source in sources]  # a web server's files come whole
    kinds = [None if whole[source] else split_kind(file.name, readings[source]) for source, file in found]
    questions = []
    for number, (source, file) in enumerate(found):
        counts_groups = is_cut_by_row_groups(file, kinds[number])
        if file.identity is None or counts_groups:
            mark = marks[source].get(file.name)
            grown = mark is not None and kinds[number] == "bytes" and (file.size or 0) > (mark.size or 0) > 0
            questions.append(
                {
                    "number": number,
                    "source": source,
                    "path": encoded(file.path),
                    "name": file.name,
                    "size": file.size,
                    "identity": file.identity,
                    "before": mark.size if mark is not None and grown else None,
                    "groups": int(counts_groups),
                }
            )
    answers = {}
    if questions:
        asked = spread(spark, questions, QUESTION_COLUMNS, [row["size"] or 0 for row in questions])
        columns = ", ".join(f"{name} {kind}" for name, kind in ANSWER_COLUMNS.items())
        answered = asked.mapInArrow(_answering(sources, corpus), columns).collect()
        answers = {row["number"]: row.asDict() for row in answered}
    return [
        _decided(source, file, kinds[number], marks[source].get(file.name), answers.get(number))
        for number, (source, file) in enumerate(found)
    ]


def _decided(
    source: int, file: FoundFile, kind: str | None, mark: Mark | None, answer: dict[str, Any] | None
) -> Surveyed | tuple[int, NoFile]:
    groups, grown_from = 0, None
    if answer is not None:
        if answer["rule"]:
            return source, NoFile(file.name, answer["rule"], answer["detail"])
        file = replace(file, size=answer["size"], identity=answer["identity"])
        groups = answer["groups"] or 0
        if mark is not None and answer["before"] == mark.identity:
            grown_from = answer["resume"]
    if mark is not None and mark.identity == file.identity and mark.size == file.size:
        start = None
    else:
        start = grown_from or 0
    return Surveyed(source, file, kind, start, groups)


def _answering(sources: list[SourceParams], corpus: Path):
    def answered(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        types = {"bigint": pa.int64(), "string": pa.string()}
        columns = pa.schema([(name, types[kind]) for name, kind in ANSWER_COLUMNS.items()])
        locations = [source.location(corpus) for source in sources]
        for batch in batches:
            rows = [_answer(locations[row["source"]], row) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist(rows, columns)

    return answered


def _answer(location: Location, row: dict[str, Any]) -> dict[str, Any]:
    file = FoundFile(decoded(row["path"]), row["name"], row["size"], row["identity"])
    answer: dict[str, Any] = {"number": row["number"]}
    try:
        if file.identity is None and not location.is_local:
            file = location.info(file)
        answer |= {"size": file.size, "identity": file.identity}
        if file.identity is None:
            with location.open(file) as opened:
                before = row["before"] if _grows_by_lines(opened) else None
                seen = fingerprint(opened, file.size, before)
            answer |= {"size": seen.size, "identity": seen.identity, "before": seen.before}
            answer |= {"resume": seen.resume}
        if row["groups"]:
            with location.open(file) as opened:
                answer["groups"] = row_groups(opened)
    except Unreadable as error:
        answer |= {"rule": "unreadable", "detail": str(error)}
    return answer


def _grows_by_lines(opened: BinaryIO) -> bool:
    """Whether reading may begin at a line: not in what is compressed, whatever its name, or UTF-16."""
    head = opened.read(HEAD_BYTES)
    opened.seek(0)
    return compression_of(head) is None and wide_encoding(head) is None
