from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from tasks.corpus.deduplication.passage_counts import RepeatedPassages, add_up
from tasks.corpus.deduplication.passage_keys import RepeatedPassagesParams
from tasks.corpus.deduplication.repeated_passages import RepeatedReport, repeated_ledger, strip_repeated
from tasks.records import content_hash, record_id
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import StageError

HEADER = "The Gristmill Gazette, every morning"
FOOTER = "All rights reserved by the Gazette"


def body(number: int) -> str:
    return f"Article {number} says what no other article says."


def article(number: int) -> str:
    return f"{HEADER}\n\n{body(number)}\n\n{FOOTER}"


class Stripped:
    """What came out, read back."""

    def __init__(self, report: RepeatedReport, layer: Path, ledger: list[dict[str, Any]]) -> None:
        self.report = report
        self.rows = pq.read_table(layer / "documents").to_pylist(maps_as_pydicts="strict")
        self.texts = [row["text"] for row in self.rows]
        self.evidence = pq.read_table(layer / "repeated.parquet").to_pylist()
        self.ledger = ledger


Strip = Callable[..., Stripped]


@pytest.fixture
def stripped(layer: Callable[..., Path], tmp_path: Path, resources: Resources) -> Strip:
    def run(
        *documents: str | dict[str, Any], parts: int = 1, row_group: int = 1000, **params: Any
    ) -> Stripped:
        clean = layer(*documents, parts=parts)
        for path in (clean / "documents").glob("*.parquet"):
            pq.write_table(pq.read_table(path), path, row_group_size=row_group)
        with spark_session("tests", resources) as spark:
            found = RepeatedPassagesParams(**params)
            report = strip_repeated(spark, clean, tmp_path / "stripped", tmp_path / "steps", found)
            ledger = [
                row for path in repeated_ledger(tmp_path / "steps") for row in pq.read_table(path).to_pylist()
            ]
        return Stripped(report, tmp_path / "stripped", ledger)

    return run


def test_what_more_documents_have_than_the_bound_goes_from_all(stripped: Strip) -> None:
    found = stripped(*map(article, range(6)), parts=2, row_group=2, more_than=5)
    assert sorted(found.texts) == [body(number) for number in range(6)]
    assert found.ledger == []
    report = found.report
    assert (report.passages, report.occurrences, report.changed, report.removed) == (2, 12, 6, 0)
    assert report.characters == 6 * (len(HEADER) + len(FOOTER) + 4)


def test_what_as_many_documents_have_as_the_bound_stays(stripped: Strip) -> None:
    texts = list(map(article, range(5)))
    found = stripped(*texts, more_than=5)
    assert found.texts == texts
    assert found.report == RepeatedReport()
    assert found.evidence == []


def test_a_line_that_a_document_repeats_counts_once_and_goes_everywhere(stripped: Strip) -> None:
    chant = "and the mill went round and round"
    once = [f"{chant}\nverse {number}\n{chant}\n{chant}" for number in range(2)]
    assert stripped(*once, more_than=2).texts == once


def test_all_occurrences_in_a_document_go(stripped: Strip) -> None:
    chant = "and the mill went round and round"
    found = stripped(*[f"{chant}\nverse {number}\n{chant}\n{chant}" for number in range(3)], more_than=2)
    assert sorted(found.texts) == ["verse 0", "verse 1", "verse 2"]
    assert found.report.occurrences == 9
    assert [(row["documents"], row["occurrences"]) for row in found.evidence] == [(3, 9)]


def test_another_source_is_not_touched(stripped: Strip) -> None:
    papers = [{"text": article(number), "source": "gazette"} for number in range(4)]
    other = {"text": article(99), "source": "letters"}
    found = stripped(*papers, other, more_than=3)
    assert [row["text"] for row in found.rows if row["source"] == "letters"] == [article(99)]
    assert set(found.report.by_source) == {"gazette"}
    assert found.report.by_source["gazette"].changed == 4


def test_by_corpus_all_sources_count_together(stripped: Strip) -> None:
    papers = [{"text": article(number), "source": f"source {number % 2}"} for number in range(4)]
    found = stripped(*papers, more_than=3, by="corpus")
    assert sorted(found.texts) == [body(number) for number in range(4)]
    assert {(row["source"], row["documents"], row["occurrences"]) for row in found.evidence} == {
        ("source 0", 4, 2),
        ("source 1", 4, 2),
    }
    assert found.report.passages == 4


def test_case_width_and_white_space_do_not_hide_a_line(stripped: Strip) -> None:
    variants = [HEADER, HEADER.upper(), f"  {HEADER.replace(' ', '  ')}\t", HEADER.replace("G", "Ｇ")]
    found = stripped(*[f"{line}\n{body(number)}" for number, line in enumerate(variants)], more_than=3)
    assert sorted(found.texts) == [body(number) for number in range(4)]
    (row,) = found.evidence
    assert row["text"] == min(line.strip() for line in variants)


def test_scripts_without_spaces(stripped: Strip) -> None:
    header = "版权所有，未经许可不得转载本站内容，违者必究其责任"
    texts = [f"{header}\n第{number}篇文章说的是别的事情。" for number in range(4)]
    found = stripped(*texts, more_than=3)
    assert sorted(found.texts) == sorted(text.split("\n")[1] for text in texts)
    assert found.evidence[0]["text"] == header


def test_shorter_passages_stay(stripped: Strip) -> None:
    texts = [f"Menu\n{body(number)}" for number in range(4)]
    assert stripped(*texts, more_than=3).texts == texts


def test_how_short_is_a_parameter(stripped: Strip) -> None:
    texts = [f"Menu\n{body(number)}" for number in range(4)]
    assert sorted(stripped(*texts, more_than=3, minimum_characters=4).texts) == list(map(body, range(4)))


def test_paragraphs_go_as_a_whole_only(stripped: Strip) -> None:
    notice = f"{HEADER}\n{FOOTER}"
    texts = [f"{notice}\n\n{body(number)}" for number in range(4)]
    cut = [f"{HEADER}\n{body(number)}" for number in range(4, 8)]
    found = stripped(*texts, *cut, more_than=3, unit="paragraph")
    assert sorted(found.texts) == sorted([body(number) for number in range(4)] + cut)
    assert [(row["unit"], row["text"]) for row in found.evidence] == [("paragraph", notice)]


def test_both_takes_paragraphs_first_and_counts_no_line_of_them_again(stripped: Strip) -> None:
    notice = f"{HEADER}\n{FOOTER}"
    texts = [f"{notice}\n\n{body(number)}" for number in range(4)]
    cut = [f"{HEADER}\n{body(number)}" for number in range(4, 8)]
    found = stripped(*texts, *cut, more_than=3, unit="both")
    assert sorted(found.texts) == list(map(body, range(8)))
    assert {(row["unit"], row["occurrences"]) for row in found.evidence} == {("paragraph", 4), ("line", 4)}


def test_code_is_left_alone_unless_it_is_named(stripped: Strip) -> None:
    licence = "# Licensed under the Apache License, Version 2.0"
    code = [{"text": f"{licence}\nvalue = {number}", "kind": "code"} for number in range(4)]
    assert [row["text"] for row in stripped(*code, more_than=3).rows] == [row["text"] for row in code]


def test_code_that_is_named_changes(stripped: Strip) -> None:
    licence = "# Licensed under the Apache License, Version 2.0"
    code = [{"text": f"{licence}\nvalue = {number}", "kind": "code"} for number in range(4)]
    found = stripped(*code, more_than=3, kinds=["code"])
    assert sorted(found.texts) == [f"value = {number}" for number in range(4)]


def test_what_is_not_text_stays_and_content_is_that_of_the_new_text(stripped: Strip) -> None:
    given = {"signals": {"words": 7.0}, "meta": {"markup": "plain"}, "language": None, "license": "CC-BY-4.0"}
    before = [given | {"text": article(number)} for number in range(4)]
    found = stripped(*before, {"text": "another text altogether"}, more_than=3)
    ids = {record_id("docs", f"docs.jsonl:{number + 1}", article(number)): number for number in range(4)}
    for row in found.rows:
        assert row["content"] == content_hash(row["text"])
        if row["id"] in ids:
            assert row["text"] == body(ids.pop(row["id"]))
            assert {name: row[name] for name in given} == given
    assert ids == {}


def test_a_document_that_has_no_text_left_is_in_the_ledger(stripped: Strip) -> None:
    frame = f"{HEADER}\n\n{FOOTER}"
    found = stripped(*map(article, range(4)), frame, more_than=3)
    assert sorted(found.texts) == [body(number) for number in range(4)]
    assert found.ledger == [
        {
            "id": record_id("docs", "docs.jsonl:5", frame),
            "rule": "repeated_passages",
            "value": 5.0,
            "threshold": 3.0,
            "detail": "all of its text is in more than 3 documents of source docs",
        }
    ]
    report = found.report.by_source["docs"]
    assert (report.changed, report.removed, report.passages, report.occurrences) == (4, 1, 2, 10)


def test_a_document_that_was_empty_before_is_not_touched(stripped: Strip) -> None:
    found = stripped(*map(article, range(4)), "", " \n", more_than=3)
    assert found.texts[-2:] == ["", " \n"]
    assert found.ledger == []


def test_all_documents_may_go(stripped: Strip) -> None:
    found = stripped(*[HEADER] * 4, parts=2, more_than=3)
    assert found.texts == []
    assert len(found.ledger) == found.report.removed == 4


def test_a_layer_without_documents(stripped: Strip) -> None:
    found = stripped(more_than=3)
    assert (found.texts, found.ledger, found.evidence, found.report) == ([], [], [], RepeatedReport())


def test_a_folder_that_is_no_layer_is_named(tmp_path: Path, resources: Resources) -> None:
    nothing, out, steps = (tmp_path / name for name in ("nothing", "out", "steps"))
    with spark_session("tests", resources) as spark, pytest.raises(StageError, match="nothing is no layer"):
        strip_repeated(spark, nothing, out, steps, RepeatedPassagesParams())


@pytest.mark.parametrize(
    "given",
    [{"unit": "word"}, {"more_than": 0}, {"minimum_characters": 0}, {"kinds": ["poem"]}, {"least": 3}],
)
def test_parameters_that_cannot_be_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RepeatedPassagesParams(**given)


def mixed() -> list[dict[str, Any]]:
    """Documents of two sources with much and little that is repeated, in several spellings."""
    shared = [f"a line that many documents share, number {number}" for number in range(9)]
    documents = []
    for number in range(120):
        lines = [shared[number % 9], body(number), "", shared[number % 4].upper(), "", f"end {number}"]
        text = shared[0] if number % 40 == 0 else "\n".join(lines)
        documents.append({"text": text, "source": "one" if number % 3 else "two"})
    return documents


@pytest.mark.parametrize("partitions", [1, 2, 7])
@pytest.mark.parametrize("counts_in_a_range", [10, 10**6], ids=["many-ranges", "one-range"])
def test_neither_partitions_nor_ranges_show_in_the_bytes(
    layer: Callable[..., Path],
    tmp_path: Path,
    resources: Resources,
    monkeypatch: pytest.MonkeyPatch,
    partitions: int,
    counts_in_a_range: int,
) -> None:
    monkeypatch.setattr("tasks.corpus.deduplication.passage_counts.COUNTS_IN_A_RANGE", counts_in_a_range)
    clean = layer(*mixed(), parts=3)
    for path in (clean / "documents").glob("*.parquet"):
        pq.write_table(pq.read_table(path), path, row_group_size=7)
    params = RepeatedPassagesParams(more_than=10, unit="both")
    with spark_session("tests", resources) as spark:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        try:
            report = strip_repeated(spark, clean, tmp_path / "stripped", tmp_path / "steps", params)
        finally:
            spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert report.removed == 3
    files = {path.name: path.read_bytes() for path in sorted((tmp_path / "stripped").rglob("*.parquet"))}
    assert len(files) == 4
    expected = tmp_path.parent / "expected-stripped"
    expected.mkdir(exist_ok=True)
    for name, content in files.items():
        if (expected / name).exists():
            assert (expected / name).read_bytes() == content
        (expected / name).write_bytes(content)


def test_counts_over_row_groups_are_those_of_plain_python(tmp_path: Path) -> None:
    coin, total = random.Random(0), {}
    (tmp_path / "counts").mkdir()
    (tmp_path / "repeated").mkdir()
    edges = [0, 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
    for group in range(5):
        keys = sorted({*coin.sample(edges, 4), *(coin.randrange(200) * 2**56 % 2**64 for _ in range(60))})
        counts = [coin.randrange(1, 4) for _ in keys] if group else []
        keys = keys if group else []
        (tmp_path / "counts" / f"{group:06d}.counts").write_bytes(
            np.array([keys, counts], np.uint64).tobytes()
        )
        for key, count in zip(keys, counts, strict=True):
            total[key] = total.get(key, 0) + count
    found = [add_up(number, 7, tmp_path / "counts", tmp_path / "repeated", 4) for number in range(7)]
    assert sum(found) == sum(count > 4 for count in total.values())
    asked = [*total, 12345]
    documents = RepeatedPassages(tmp_path / "repeated").documents_with(np.array(asked, np.uint64))
    assert documents.tolist() == [total[key] if total.get(key, 0) > 4 else 0 for key in asked]


def test_parts_keep_their_names_and_columns(stripped: Strip, tmp_path: Path) -> None:
    stripped(*map(article, range(6)), parts=3, more_than=5)
    names = [path.name for path in sorted((tmp_path / "stripped" / "documents").iterdir())]
    assert names == ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    schemas = [
        pq.read_schema(tmp_path / layer / "documents" / "part-00000.parquet")
        for layer in ("clean", "stripped")
    ]
    assert schemas[0].equals(schemas[1])
    assert schemas[0].field("text").type == pa.string()
