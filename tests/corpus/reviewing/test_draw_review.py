"""What is drawn for review, and what is written of it."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.corpus.reviewing.draw import draw_review
from tasks.corpus.reviewing.sample import ReviewError, ReviewParams, Sample, read_sample

FACTS = {"source": "books", "origin": "books/a.txt", "language": "en", "kind": "book"}
Removal = tuple[str, str]


def identifier(name: object) -> str:
    return hashlib.blake2b(str(name).encode(), digest_size=16).hexdigest()


def parquet(directory: Path, rows: Iterable[dict[str, Any]], parts: int = 1, group: int = 50) -> None:
    """Rows in so many parts, as they come."""
    rows = list(rows)
    directory.mkdir(parents=True, exist_ok=True)
    doubles = {"value": pa.float64(), "threshold": pa.float64()}
    names = list(rows[0]) if rows else ["id", "rule", "verdict"]
    schema = pa.schema([(name, doubles.get(name, pa.string())) for name in names])
    for part in range(parts):
        table = pa.Table.from_pylist(rows[part::parts], schema)
        pq.write_table(table, directory / f"part-{part:05d}.parquet", row_group_size=group)


def document(name: object, text: str, **facts: str) -> dict[str, Any]:
    return {"id": identifier(name), "text": text} | FACTS | facts


def entry(stage: str, name: object, rule: str, verdict: str = "removed", detail: str | None = "why"):
    return {"id": identifier(name), "stage": stage, "rule": rule, "value": 1.5, "threshold": 2.0,
            "verdict": verdict, "detail": detail}  # fmt: skip


def corpus(data: Path, scored: list[dict], ledger: list[dict], clean: list[dict], parts: int = 1) -> Path:
    """Layers scored and clean as given; rows are sorted, unless they come in several parts."""
    rows: list[list[dict]] = [scored, ledger, clean]
    if parts == 1:
        rows = [sorted(each, key=lambda row: (row["id"], row.get("rule", ""))) for each in rows]
    for directory, each in zip(("scored/documents", "clean/ledger", "clean/documents"), rows, strict=True):
        parquet(data / directory, each, parts)
    return data


def big(data: Path, parts: int = 1, seed: int = 0) -> Path:
    """600 documents of two sources, one of them small; `short` removes 300, `odd` 20 of those."""
    scored = [
        document(n, f"text {n}", source="rare" if n % 50 == 0 else "books") for n in range(600)
    ]  # fmt: skip
    ledger = [entry("clean", n, "short") for n in range(300)] + [entry("clean", n, "odd") for n in range(20)]
    clean = scored[300:]
    for rows in (scored, ledger, clean):
        random.Random(seed).shuffle(rows)
    return corpus(data, scored, ledger, clean, parts)


def written(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "review.jsonl").read_bytes().splitlines()]


def one(data: Path, out: Path, **params: Any) -> dict[str, Any]:
    """The item of the only document that was drawn."""
    draw_review(data, out, ReviewParams(**params))
    (item,) = written(out)
    return item


def drawn(sample: Sample, rule: str) -> set[str]:
    return set(sample.rules[rule].drawn)


def test_of_each_rule_and_of_what_is_kept_so_many_are_drawn_and_no_more(tmp_path):
    result = draw_review(big(tmp_path / "data"), tmp_path / "out", ReviewParams(removed=50, kept=200))
    counts = {rule: (found.population, len(found.drawn)) for rule, found in result.sample.rules.items()}
    assert counts == {"clean/odd": (20, 20), "clean/short": (300, 50), "kept": (300, 200)}
    assert drawn(result.sample, "kept") <= {identifier(n) for n in range(300, 600)}
    assert drawn(result.sample, "clean/short") <= {identifier(n) for n in range(300)}


def test_equal_layers_give_equal_files_however_they_are_divided(tmp_path):
    params = ReviewParams(removed=30, kept=40, by_source=True)
    draw_review(big(tmp_path / "data"), tmp_path / "out", params)
    draw_review(big(tmp_path / "other", parts=7, seed=3), tmp_path / "again", params)
    names = ("review.jsonl", "review.html", "sample.json")
    assert [(tmp_path / "out" / name).read_bytes() for name in names] == [
        (tmp_path / "again" / name).read_bytes() for name in names
    ]


def test_another_seed_draws_others_and_each_rule_draws_for_itself(tmp_path):
    data = big(tmp_path / "data")
    first = draw_review(data, tmp_path / "out", ReviewParams(removed=10)).sample
    second = draw_review(data, tmp_path / "again", ReviewParams(removed=10, seed=2)).sample
    assert drawn(first, "clean/short") != drawn(second, "clean/short")
    assert drawn(first, "clean/odd") != drawn(first, "clean/short")


def test_every_document_has_the_same_chance(tmp_path):
    data, times = big(tmp_path / "data"), dict.fromkeys(map(identifier, range(300, 600)), 0)
    for seed in range(40):
        sample = draw_review(data, tmp_path / "out", ReviewParams(removed=0, kept=30, seed=seed)).sample
        for name in sample.rules["kept"].drawn:
            times[name] += 1
    # 40 draws of a tenth: binomial with mean 4 and variance 3.6, so chi-squared over variance is near 300
    spread = sum((count - 4) ** 2 for count in times.values()) / 3.6
    assert 220 < spread < 390


def test_by_source_a_small_source_has_its_share_and_the_rest_goes_to_the_others(tmp_path):
    params = ReviewParams(removed=40, kept=0, by_source=True)
    sample = draw_review(big(tmp_path / "data"), tmp_path / "out", params).sample
    short = sample.rules["clean/short"]
    assert short.strata == {"books": 294, "rare": 6}
    assert sorted(short.drawn.values()) == ["books"] * 34 + ["rare"] * 6


def test_a_document_that_fails_several_rules_is_shown_once_with_all_of_them(tmp_path):
    draw_review(big(tmp_path / "data"), tmp_path / "out", ReviewParams(removed=400, kept=0))
    items = written(tmp_path / "out")
    assert len({item["id"] for item in items}) == len(items) == 300
    (both,) = (item for item in items if item["id"] == identifier(3))
    assert both["rules"] == ["clean/odd", "clean/short"]
    assert [(found["rule"], found["value"], found["threshold"]) for found in both["findings"]] == [
        ("odd", 1.5, 2.0), ("short", 1.5, 2.0)]  # fmt: skip


def test_a_rule_that_speaks_twice_of_a_document_counts_it_once(tmp_path):
    twice = [entry("clean", 1, "short", detail=detail) for detail in "ab"]
    data = corpus(tmp_path / "data", [document(1, "a")], twice, [document(2, "b")])
    assert draw_review(data, tmp_path / "out", ReviewParams()).sample.rules["clean/short"].population == 1


def test_what_is_not_removed_is_no_removal(tmp_path):
    ledger = [entry("clean", 2, "pii_email", "kept"), entry("clean", 3, "broken", "quarantined")]
    data = corpus(tmp_path / "data", [document(2, "b")], ledger, [document(2, "b")])
    item = one(data, tmp_path / "out")
    assert item["rules"] == ["kept"]
    assert [found["rule"] for found in item["findings"]] == ["pii_email"]


def test_a_removed_duplicate_stands_beside_the_one_that_was_kept(tmp_path):
    clean = [document("kept", "the original"), document("copy", "the copy")]
    data = corpus(tmp_path / "data", clean, [], clean)
    parquet(data / "unique" / "documents", clean[:1])
    parquet(
        data / "unique" / "ledger",
        [entry("dedup", "copy", "near_duplicate", detail=identifier("kept"))],
    )
    item = one(data, tmp_path / "out", kept=0)
    assert (item["id"], item["text"]) == (identifier("copy"), "the copy")
    assert item["kept_instead"]["id"] == identifier("kept")
    assert item["kept_instead"]["text"] == "the original"
    sample = draw_review(data, tmp_path / "out", ReviewParams()).sample
    assert drawn(sample, "kept") == {identifier("kept")}  # a duplicate that went is not among the kept


def test_what_score_removed_is_shown_as_it_was_collected(tmp_path):
    data = corpus(tmp_path / "data", [document(2, "b")], [], [document(2, "b")])
    parquet(data / "raw" / "documents", [document(1, "<p></p>"), document(2, "b")])
    parquet(data / "scored" / "ledger", [entry("score", 1, "empty")])
    item = one(data, tmp_path / "out", kept=0)
    assert (item["rules"], item["text"]) == (["score/empty"], "<p></p>")


def test_personal_data_is_written_nowhere(tmp_path):
    text = "Write to anna.smith@example.com or call +44 20 7946 0958 about 81.2.69.142.\n" * 3
    private = ("anna.smith", "7946 0958", "81.2.69.142")
    before, after = (
        document("kept", text),
        document("kept", text.replace("anna.smith@example.com", "<email-0a1b2c3d>")),
    )
    scored = [before, document("gone", text), document("long", "x " * 5000 + text + "y " * 5000)]
    ledger = [entry("clean", "gone", "short"), entry("clean", "long", "short")]
    draw_review(corpus(tmp_path / "data", scored, ledger, [after]), tmp_path / "out", ReviewParams())
    for path in (tmp_path / "out").iterdir():
        content = path.read_text("utf-8")
        assert not [value for value in private if value in content], path
    shown = {item["id"]: item for item in written(tmp_path / "out")}
    assert "<email-" in shown[identifier("gone")]["text"]


def test_an_edited_document_shows_passages_before_and_after_with_the_form_of_what_was_masked(tmp_path):
    before = "First line.\nWrite to anna.smith@example.com today.\nHome | About | Login\nLast line."
    after = "First line.\nWrite to <email-0a1b2c3d> today.\nLast line."
    data = corpus(tmp_path / "data", [document(1, before)], [], [document(1, after)])
    item = one(data, tmp_path / "out")
    assert item["edits"] == [
        {"before": "Write to xxxx.xxxxx@xxxxxxx.xxx today.\nHome | About | Login",
         "after": "Write to <email-0a1b2c3d> today."}]  # fmt: skip
    assert item["edits_found"] == 1


def test_a_document_that_was_not_edited_shows_none(tmp_path):
    data = corpus(tmp_path / "data", [document(1, "a\nb")], [], [document(1, "a\nb")])
    assert one(data, tmp_path / "out")["edits"] == []


def test_a_long_text_shows_head_and_tail_with_a_mark(tmp_path):
    text = "head" + "m" * 5_000_000 + "tail"
    data = corpus(tmp_path / "data", [document(1, text)], [entry("clean", 1, "short")], [document(2, "b")])
    item = one(data, tmp_path / "out", kept=0, text_characters=300)
    assert item["text"].startswith("head")
    assert item["text"].endswith("tail")
    assert "[… 4,999,708 characters are left out …]" in item["text"]
    assert item["characters"] == 5_000_008


def test_hostile_text_is_written_whole_and_cannot_leave_its_place(tmp_path):
    text = "</script><script>alert(1)</script><!-- \u2028 \u202e gnirts \U0001f469\u200d\U0001f52c \u05e9\0"
    data = corpus(tmp_path / "data", [document(1, text)], [entry("clean", 1, "short")], [document(2, "b")])
    assert one(data, tmp_path / "out", kept=0)["text"] == text
    html = (tmp_path / "out" / "review.html").read_text("utf-8")
    assert html.count("</script>") == 2
    assert "alert(1)</script" not in html
    assert "<!--" not in html


def test_nothing_outside_the_page_is_referred_to(tmp_path):
    draw_review(big(tmp_path / "data"), tmp_path / "out", ReviewParams(removed=1, kept=1))
    html = (tmp_path / "out" / "review.html").read_text("utf-8")
    assert "http:" not in html
    assert "https:" not in html
    assert " src=" not in html
    assert "default-src 'none'" in html


def test_the_sample_is_read_as_it_was_drawn_and_holds_no_text(tmp_path):
    result = draw_review(big(tmp_path / "data"), tmp_path / "out", ReviewParams(removed=5, kept=5))
    assert read_sample(tmp_path / "out" / "sample.json") == result.sample
    assert "text 3" not in (tmp_path / "out" / "sample.json").read_text()


def test_what_else_lies_in_the_folder_stays(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "verdicts.jsonl").write_text("mine")
    draw_review(big(tmp_path / "data"), tmp_path / "out", ReviewParams(removed=1, kept=1))
    assert (tmp_path / "out" / "verdicts.jsonl").read_text() == "mine"


def test_without_layers_one_is_told_how_to_make_them(tmp_path):
    with pytest.raises(ReviewError, match=r"gristmill run corpus"):
        draw_review(tmp_path / "data", tmp_path / "out", ReviewParams())
    assert not (tmp_path / "out").exists()


def test_layers_of_different_runs_are_an_error_and_not_a_smaller_sample(tmp_path):
    data = corpus(tmp_path / "data", [document(2, "b")], [entry("clean", 1, "short")], [document(2, "b")])
    with pytest.raises(ReviewError, match=rf"lacks 1 of the documents.* {identifier(1)}"):
        draw_review(data, tmp_path / "out", ReviewParams())


def test_a_sample_that_was_edited_by_hand_is_an_error_that_names_the_key(tmp_path):
    (tmp_path / "sample.json").write_text('{"params": {}, "rules": {"kept": {"strata": {}}}}')
    with pytest.raises(ReviewError, match=r"sample\.json is broken: `rules\.kept\.drawn`"):
        read_sample(tmp_path / "sample.json")
