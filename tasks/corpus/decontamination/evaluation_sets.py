"""Evaluation sets, read from JSON Lines: what a training corpus must not contain."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import Field, field_validator

from tasks.parameters import StageParams
from tasks.stage import StageError


class EvaluationSet(StageParams):
    """A file of questions. The answer field holds a text or a list of texts, or null; null: no answers."""

    name: str = Field(min_length=1)
    path: str
    question_field: str
    answer_field: str | None = None

    @field_validator("path")
    @classmethod
    def _within_the_folder(cls, path: str) -> str:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ValueError("must be a path within the folder of evaluation sets, as in set.jsonl.gz")
        return path


@dataclass(frozen=True)
class EvaluationItem:
    """A question, the answers to it, and the line of the file that it is on, from 1."""

    set: str
    line: int
    question: str
    answers: tuple[str, ...]


def read_evaluation_sets(sets: Sequence[EvaluationSet], root: Path) -> list[EvaluationItem]:
    """All items in order; paths are relative to ``root``. A file may be compressed with gzip.

    A byte order mark, CRLF and blank lines are no faults. An empty question is an item too. A lone surrogate
    is U+FFFD, as in the documents.

    Raises:
        StageError: if two sets share a name, if a file is missing, or if a line is broken: an item that
            cannot be read is one that nothing would be checked against.
    """
    repeated = [name for name, times in Counter(given.name for given in sets).items() if times > 1]
    if repeated:
        raise StageError(f"two evaluation sets are named {repeated[0]!r}: give each a name of its own")
    return [item for given in sets for item in _items(given, root / given.path)]


def _items(given: EvaluationSet, path: Path) -> Iterator[EvaluationItem]:
    found = False
    for number, line in _lines(path):
        found = True
        where = f"{path}:{number}"
        try:
            record = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise StageError(f"{where}: invalid UTF-8 at byte {error.start} of the line") from None
        except (ValueError, RecursionError) as error:
            raise StageError(f"{where}: not JSON ({error})") from None
        if not isinstance(record, dict):
            raise StageError(f"{where}: holds a {type(record).__name__}, not an object")
        question = _field(record, given.question_field, where)
        if not isinstance(question, str):
            raise StageError(f"{where}: {given.question_field} must be a text, not {_shown(question)}")
        answers = () if given.answer_field is None else _answers(record, given.answer_field, where)
        yield EvaluationItem(given.name, number, _whole(question), tuple(map(_whole, answers)))
    if not found:
        raise StageError(f"{path}: holds no item; an evaluation set is JSON Lines, one object a line")


def _field(record: dict[str, Any], name: str, where: str) -> Any:
    if name not in record:
        raise StageError(f"{where}: no field {name!r}; the fields there are {', '.join(map(repr, record))}")
    return record[name]


def _answers(record: dict[str, Any], name: str, where: str) -> tuple[str, ...]:
    answers = _field(record, name, where)
    if answers is None:
        return ()
    answers = [answers] if isinstance(answers, str) else answers
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise StageError(f"{where}: {name} must be a text or a list of texts, not {_shown(answers)}")
    return tuple(answers)


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:80]


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, numbered from 1; gzip is known by its first bytes."""
    try:
        with path.open("rb") as raw:
            compressed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream: Iterable[bytes] = gzip.GzipFile(fileobj=raw) if compressed else raw
            for number, line in enumerate(stream, 1):
                content = (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip()
                if content:
                    yield number, content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StageError(f"{path}: not a whole gzip file ({error})") from None
    except OSError as error:
        raise StageError(f"{path}: {error.strerror or error}") from None
