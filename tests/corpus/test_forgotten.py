"""Documents that are to be forgotten: the file, and what clean makes of it."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasks.corpus.clean import clean
from tasks.corpus.forgotten import Forgotten, add_forgotten, read_forgotten
from tasks.corpus.policies.policy import CleanParams
from tasks.corpus.score import ScoreParams, score
from tasks.records import content_hash
from tasks.resources import Resources
from tasks.stage import StageError

TODAY = datetime.date(2026, 1, 2)
SECRET = "The private letter that must go, in as many words as it takes to write one. "
PROSE = "The ship went down with all hands, and that was the end of what they have told. "


def entry(name: str, *contents: str) -> Forgotten:
    return Forgotten(id=name, contents=contents, date=TODAY, reason="asked by letter")


@pytest.fixture
def cleaned(collected: Callable[..., Path], tmp_path: Path, resources: Resources):
    """Score texts once, then clean them with entries in the file."""
    (tmp_path / "lexicons").mkdir()
    (tmp_path / "forgotten.jsonl").touch()

    def run(*texts: str, forget: list[Forgotten]):
        if texts:
            lists = tmp_path / "lexicons"
            score(collected(*texts), lists, lists, tmp_path / "scored", ScoreParams(), resources)
        add_forgotten(tmp_path / "forgotten.jsonl", forget)
        here = resources.model_copy(update={"work": tmp_path / "work"})
        inputs = (tmp_path / "scored", tmp_path / "lexicons", tmp_path / "forgotten.jsonl")
        return clean(*inputs, tmp_path / "clean", CleanParams(presets=[]), here), tmp_path / "clean"

    return run


def test_a_listed_id_is_removed_and_the_ledger_has_no_text(cleaned, documents_of, ledger_of) -> None:
    report, layer = cleaned(PROSE, SECRET, forget=[])
    assert report.kept == 2
    (secret,) = (row["id"] for row in documents_of(layer) if row["text"].startswith("The private"))
    report, layer = cleaned(forget=[entry(secret)])
    assert report.removed_by_rule == {"forgotten": 1}
    assert [row["id"] for row in documents_of(layer)] != [secret]
    (told,) = ledger_of(layer)
    assert (told["id"], told["rule"], told["verdict"]) == (secret, "forgotten", "removed")
    assert "private" not in str(told)


def test_the_same_text_under_another_id_is_removed_too(cleaned, documents_of, ledger_of) -> None:
    listed = entry("0" * 32, content_hash(SECRET.strip()))
    report, layer = cleaned(PROSE, SECRET, SECRET.upper(), forget=[listed])
    assert report.removed_by_rule == {"forgotten": 2}
    assert {row["detail"] for row in ledger_of(layer)} == {
        "the hash of its text is listed in forgotten.jsonl"
    }
    assert [row["text"][:8] for row in documents_of(layer)] == ["The ship"]


def test_a_text_is_known_by_what_masking_makes_of_it(cleaned, documents_of, ledger_of) -> None:
    _, layer = cleaned("Write to ann@example.org, says the private letter.", PROSE, forget=[])
    (masked,) = (row for row in documents_of(layer) if "letter" in row["text"])
    report, layer = cleaned(forget=[entry("0" * 32, masked["content"])])
    assert report.removed_by_rule == {"forgotten": 1}
    assert [row["text"][:8] for row in documents_of(layer)] == ["The ship"]


def test_a_rule_of_its_own_comes_before_all_others_in_the_report(cleaned, documents_of) -> None:
    _, layer = cleaned("short", forget=[])
    (short,) = documents_of(layer)
    report, _ = cleaned(forget=[entry(short["id"], short["content"])])
    assert report.removed_by_rule == {"forgotten": 1}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 2 is no entry of a forgotten document"),
        ('{"id": "xyz", "date": "2026-01-02"}', "line 2 .*id: String should match"),
        ('{"id": "' + "a" * 32 + '"}', "line 2 .*date: Field required"),
        ('{"id": "' + "a" * 32 + '", "date": "2026-01-02", "text": "x"}', "line 2 .*text: Extra inputs"),
        ("\xff", "line 2 is no entry"),
    ],
    ids=["broken", "id", "date", "text", "bytes"],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "forgotten.jsonl"
    path.write_bytes(f"{entry('a' * 32).model_dump_json()}\n{line}\n".encode("latin-1"))
    with pytest.raises(StageError, match=complaint):
        read_forgotten(path)


def test_blank_lines_say_nothing_and_entries_are_added_behind(tmp_path: Path) -> None:
    path = tmp_path / "forgotten.jsonl"
    path.write_text(f"\n{entry('a' * 32).model_dump_json()}", "utf-8")
    add_forgotten(path, [entry("b" * 32)])
    assert [item.id[0] for item in read_forgotten(path)] == ["a", "b"]


def test_of_requests_at_one_time_none_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "forgotten.jsonl"
    ids = [f"{number:032x}" for number in range(40)]
    with ThreadPoolExecutor(8) as people:
        list(people.map(lambda name: add_forgotten(path, [entry(name)]), ids))
    assert sorted(item.id for item in read_forgotten(path)) == ids
    assert [file.name for file in tmp_path.iterdir()] == ["forgotten.jsonl"]


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="an empty file says that nothing is to be forgotten"):
        read_forgotten(tmp_path / "forgotten.jsonl")
