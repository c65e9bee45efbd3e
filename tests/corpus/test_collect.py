from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.collect import CollectParams, SourceParams, collect
from tasks.records import record_id
from tasks.resources import Resources
from tasks.stage import StageError


def test_every_record_is_a_document_or_in_the_ledger(
    tmp_path: Path, resources: Resources, source: Callable[..., SourceParams], documents_of, ledger_of
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    lines = [json.dumps({"text": f"text {i}"}) for i in range(30)] + ['{"text": 5}']
    (corpus / "docs.jsonl").write_text("\n".join(lines), "utf-8")
    report = collect(corpus, tmp_path / "raw", CollectParams(sources=[source()]), resources)
    assert (report.records_in, report.kept, report.quarantined) == (31, 30, 1)
    assert len(documents_of(tmp_path / "raw")) == 30
    (entry,) = ledger_of(tmp_path / "raw")
    assert (entry["stage"], entry["rule"], entry["verdict"]) == ("collect", "text_not_string", "quarantined")


def test_a_document_says_where_it_is_from(collected: Callable[..., Path], documents_of) -> None:
    (document,) = documents_of(collected("some text", domain="legal", license="MIT"))
    assert document["id"] == record_id("docs", "docs.jsonl:1", "some text")
    assert {key: document[key] for key in ("source", "origin", "domain", "license", "collected_at")} == {
        "source": "docs",
        "origin": "docs.jsonl:1",
        "domain": "legal",
        "license": "MIT",
        "collected_at": "2026-01-01",
    }


def test_an_id_does_not_depend_on_where_the_corpus_lies(
    collected: Callable[..., Path], tmp_path: Path
) -> None:
    # The origin is relative: the id of a fixed record is a constant on every machine.
    assert record_id("docs", "docs.jsonl:1", "some text") == "".join(
        hashlib.blake2b(
            b"".join(
                len(part).to_bytes(8, "little") + part for part in (b"docs", b"docs.jsonl:1", b"some text")
            ),
            digest_size=16,
        ).hexdigest()
    )


def test_a_directory_of_files_is_one_document_each(
    tmp_path: Path, resources: Resources, source: Callable[..., SourceParams], documents_of
) -> None:
    pages = tmp_path / "corpus" / "pages"
    (pages / "deep").mkdir(parents=True)
    (pages / "a.txt").write_text("first", "utf-8")
    (pages / "deep" / "b.txt").write_text("second", "utf-8")
    (pages / "c.bin").write_bytes(b"\xff")
    given = source(path="pages", format="files", files="*.txt")
    collect(tmp_path / "corpus", tmp_path / "raw", CollectParams(sources=[given]), resources)
    found = {document["origin"]: document["text"] for document in documents_of(tmp_path / "raw")}
    assert found == {"pages/a.txt": "first", "pages/deep/b.txt": "second"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"path": "none.jsonl"}, "none.jsonl does not exist"),
        ({"path": ".", "files": "*.xml"}, "files: *.xml"),
    ],
)
def test_a_source_that_is_not_there_is_named(
    tmp_path: Path,
    resources: Resources,
    source: Callable[..., SourceParams],
    given: dict[str, Any],
    told: str,
) -> None:
    (tmp_path / "corpus").mkdir()
    with pytest.raises(StageError, match="collect.sources: docs") as error:
        collect(tmp_path / "corpus", tmp_path / "raw", CollectParams(sources=[source(**given)]), resources)
    assert told in str(error.value)
    assert not (tmp_path / "raw").exists()


def test_a_source_that_is_mostly_unreadable_stops_the_stage(
    collected: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(StageError, match="2 of 3 records cannot be read"):
        collected("good", 1, None)
    assert [path.name for path in tmp_path.iterdir() if path.name != "corpus"] == []


def test_two_sources_of_one_name_are_refused(source: Callable[..., SourceParams]) -> None:
    with pytest.raises(ValueError, match="used twice: docs"):
        CollectParams(sources=[source(), source()])
