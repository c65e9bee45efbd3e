from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tasks.stage import StageError
from tasks.training.instructions import InstructionRow
from tasks.training.json_lines import read_rows
from tasks.training.preferences import PreferenceRow


def row(question: str = "q", answer: str = "a", **more: object) -> bytes:
    return json.dumps({"instruction": question, "output": answer, "split": "train", **more}).encode()


def test_files_of_a_directory_are_read_in_the_order_of_their_names_packed_or_not(tmp_path: Path):
    (tmp_path / "b.jsonl").write_bytes(row("third"))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(row("first") + b"\n" + row("second")))
    (tmp_path / "notes.txt").write_text("not a row")
    rows = read_rows(tmp_path, InstructionRow, max_broken=0.0)
    assert [r.instruction for r in rows.good] == ["first", "second", "third"]


def test_a_byte_order_mark_crlf_and_blank_lines_lose_no_row(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + row("1") + b"\r\n\r\n" + row("2") + b"\n\n")
    assert [r.instruction for r in read_rows(path, InstructionRow, max_broken=0.0).good] == ["1", "2"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"instruction": "a\xff", "output": "b", "split": "train"}', "invalid UTF-8 at byte 18"),
        (b'{"instruction": ', "Invalid JSON"),
        (b'{"instruction": "a\\ud800", "output": "b", "split": "train"}', "Invalid JSON"),
        (b'{"instruction": "a", "split": "train"}', "output is missing"),
        (b'{"instruction": "a", "output": "b"}', "split: Field required"),
        (
            b'{"instruction": 1, "output": "b", "split": "train"}',
            "instruction: Input should be a valid string",
        ),
        (b'{"instruction": null, "output": "b", "split": "train"}', "instruction: Input should be"),
        (b'["a"]', "Input should be an object"),
        (row(split="test"), "split: Input should be 'train' or 'held_out'"),
        (row(messages=[{"role": "assistant", "content": "x"}]), "message 0 is by assistant"),
        (row(messages=[{"role": "user", "content": "x"}]), "ends with an answer"),
    ],
)
def test_a_broken_row_is_named_and_left_out(tmp_path: Path, line: bytes, reason: str):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join([row("1"), line, row("3")]))
    rows = read_rows(path, InstructionRow, max_broken=0.5)
    assert [r.instruction for r in rows.good] == ["1", "3"]
    assert rows.broken == 1
    assert rows.broken_rows[0].startswith("rows.jsonl:2: ")
    assert reason in rows.broken_rows[0]


def test_more_broken_rows_than_the_limit_are_an_error_that_names_the_first(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join([row()] * 8 + [b"{", b"{"]))
    read_rows(path, InstructionRow, max_broken=0.2)
    with pytest.raises(StageError, match=r"2 of 10 rows are broken.*rows\.jsonl:9"):
        read_rows(path, InstructionRow, max_broken=0.19)


def test_counts_add_up(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join([row()] * 8 + [b"{"]))
    counts = read_rows(path, InstructionRow, max_broken=0.2).counts(used=5)
    assert (counts.read, counts.used, counts.broken, counts.too_long) == (9, 5, 1, 3)


def test_a_gzip_file_that_breaks_off_is_an_error(tmp_path: Path):
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(row() * 1000)[:-20])
    with pytest.raises(StageError, match="not a whole gzip file"):
        read_rows(path, InstructionRow, max_broken=0.0)


def test_a_directory_without_rows_is_an_error(tmp_path: Path):
    with pytest.raises(StageError, match=r"holds no \*\.jsonl"):
        read_rows(tmp_path, InstructionRow, max_broken=0.0)


def test_an_input_follows_its_instruction_in_the_question(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(row("Translate.", input="Hallo"))
    question, answer = read_rows(path, InstructionRow, max_broken=0.0).good[0].dialogue()
    assert (question.content, answer.content) == ("Translate.\n\nHallo", "a")


def test_a_pair_of_equal_answers_is_broken(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    pair = {"prompt": "p", "chosen": "a", "rejected": "b", "rule": "cut", "split": "train"}
    path.write_text(json.dumps(pair) + "\n" + json.dumps(pair | {"rejected": "a"}))
    rows = read_rows(path, PreferenceRow, max_broken=0.5)
    assert len(rows.good) == 1
    assert "are the same" in rows.broken_rows[0]
