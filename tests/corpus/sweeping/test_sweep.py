from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.corpus.perplexity.buckets import cutoffs, histogram
from tasks.corpus.policies.judgement import Judge, judge_batch
from tasks.corpus.policies.policy import CleanParams
from tasks.corpus.policies.rules import Rule
from tasks.corpus.sweeping import page, table
from tasks.corpus.sweeping import sweep as module
from tasks.corpus.sweeping.border import EXCERPT_CHARACTERS, excerpt
from tasks.corpus.sweeping.curves import Curve
from tasks.corpus.sweeping.selection import Selection, SweepError
from tasks.corpus.sweeping.sweep import sweep
from tasks.corpus.sweeping.thresholds import MOST_THRESHOLDS
from tasks.records import DOCUMENT_COLUMNS, KEPT

WriteLayer = Callable[..., Path]


def document(text: str, words: float | None, characters: int = 100, **columns: Any) -> dict[str, Any]:
    signals = {"characters": float(characters)} | ({} if words is None else {"words": float(words)})
    return {"text": text, "signals": signals | columns.pop("signals", {})} | columns


def policy(*rules: Rule, **given: Any) -> CleanParams:
    return CleanParams.model_validate({"presets": [], "mask": []} | given | {"rules": list(rules)})


AT_LEAST_50 = Rule(name="short", signal="words", minimum=50)


def counts(curve: Curve) -> dict[float, tuple[int, int]]:
    return {point.threshold: (point.documents, point.policy_documents) for point in curve.points}


def test_every_threshold_tells_what_it_would_keep(layer: WriteLayer) -> None:
    scored = layer(
        *(document(f"of {words} words", words, words) for words in (10, 49, 50, 70)), name="scored"
    )
    (curve,) = sweep(scored, policy(AT_LEAST_50), "short").curves
    assert (curve.signal, curve.side, curve.bound, curve.documents) == ("words", "minimum", 50, 4)
    assert {point.threshold: (point.documents, point.characters) for point in curve.points} == {
        10: (4, 179), 49: (3, 169), 50: (2, 120), 70: (1, 70)}  # fmt: skip
    assert curve.present
    assert curve.present.documents == 2


def test_the_policy_keeps_what_nothing_else_removes(layer: WriteLayer) -> None:
    scored = layer(
        document("short", 10),
        document("long", 60),
        document("long and toxic", 70, signals={"toxicity": 0.9}),
        document("lang", 80, language="de"),
        name="scored",
    )
    toxic = Rule(name="toxic", signal="toxicity", maximum=0.5)
    found = sweep(scored, policy(AT_LEAST_50, toxic, languages=["en"]), "short")
    (curve,) = found.curves
    assert counts(curve) == {10: (4, 2), 50: (3, 1), 60: (3, 1), 70: (2, 0), 80: (1, 0)}
    assert (found.documents, found.policy_documents) == (4, 1)
    at_80 = curve.points[-1]
    assert table.removed_by_it_alone(curve, at_80) == 2


def test_each_entry_is_swept_over_the_documents_that_it_decides_on(layer: WriteLayer) -> None:
    scored = layer(
        document("book", 60),
        document("code", 7, kind="code"),
        document("Buch", 20, language="de"),
        document("書", 1, language="zh"),
        name="scored",
    )
    rules = [
        AT_LEAST_50,
        Rule(name="short", minimum=5, only_kinds=["code"]),
        Rule(name="short", maximum=30, only_languages=["de"], except_kinds=["code"]),
        Rule(name="short", off=True, only_languages=["zh"]),
    ]
    found = sweep(scored, policy(*rules), "short")
    told = {curve.scope: (curve.side, curve.bound, list(counts(curve))) for curve in found.curves}
    assert told == {
        "all documents": ("minimum", 50, [50, 60]),
        "kinds code": ("minimum", 5, [5, 7]),
        "kinds other than code; languages de": ("maximum", 30, [20, 30]),
    }
    assert found.unjudged == 1


def test_a_minimum_and_a_maximum_are_swept_each_with_the_other_in_the_policy(layer: WriteLayer) -> None:
    scored = layer(*(document(f"{words}", words) for words in (10, 60, 200)), name="scored")
    both = Rule(name="length", signal="words", minimum=50, maximum=100)
    low, high = sweep(scored, policy(both), "length").curves
    assert (low.side, counts(low)) == ("minimum", {10: (3, 2), 50: (2, 1), 60: (2, 1), 200: (1, 0)})
    assert (high.side, counts(high)) == ("maximum", {10: (1, 0), 60: (2, 1), 100: (2, 1), 200: (3, 2)})


def test_documents_without_a_value_are_kept_at_every_threshold(layer: WriteLayer) -> None:
    scored = layer(document("a", 10), document("b", None), document("c", 60), name="scored")
    (curve,) = sweep(scored, policy(AT_LEAST_50), "short").curves
    assert curve.unmeasured == 1
    assert counts(curve) == {10: (3, 3), 50: (2, 2), 60: (2, 2)}
    assert "b" not in {example.excerpt for example in (*curve.just_kept, *curve.just_removed)}


def test_a_signal_without_a_rule_is_swept_from_both_sides(layer: WriteLayer) -> None:
    scored = layer(document("a", 10), document("b", 60), name="scored")
    found = sweep(scored, policy(AT_LEAST_50), "words", at=30)
    assert [(curve.side, curve.bound, counts(curve)) for curve in found.curves] == [
        ("minimum", None, {10: (2, 1), 60: (1, 1)}),
        ("maximum", None, {10: (1, 0), 60: (2, 1)}),
    ]
    assert found.rules_of_signal == ["short"]
    assert [[example.excerpt for example in curve.just_kept] for curve in found.curves] == [["b"], ["a"]]
    assert sweep(scored, policy(), "words").curves[0].just_kept == []


def test_the_language_score_is_a_signal_too(layer: WriteLayer) -> None:
    scored = layer(document("a", 1, language_score=0.2), document("b", 1, language_score=0.9), name="scored")
    rule = Rule(name="language_score", signal="language_score", minimum=0.65)
    (curve,) = sweep(scored, policy(rule), "language_score").curves
    assert counts(curve) == {0.2: (2, 2), 0.65: (1, 1), 0.9: (1, 1)}


def test_documents_at_the_border_come_nearest_first_and_by_id(layer: WriteLayer) -> None:
    texts = [document(f"{words} {copy}", words) for words in (1, 48, 49, 50, 52) for copy in range(4)]
    scored = layer(*texts, name="scored")
    ids = {row["text"]: row["id"] for row in pq.read_table(scored / "documents").to_pylist()}
    (curve,) = sweep(scored, policy(AT_LEAST_50), "short", examples=5).curves

    def nearest(*words: int) -> list[str]:
        return [text for group in words for text in sorted(
            (f"{group} {copy}" for copy in range(4)), key=lambda text: ids[text])][:5]  # fmt: skip

    assert [example.excerpt for example in curve.just_kept] == nearest(50, 52)
    assert [example.excerpt for example in curve.just_removed] == nearest(49, 48)
    assert all(ids[example.excerpt] == example.id for example in (*curve.just_kept, *curve.just_removed))
    assert {example.value for example in curve.just_removed} == {49, 48}


def test_no_examples_can_be_asked_for(layer: WriteLayer) -> None:
    scored = layer(document("a", 10), document("b", 60), name="scored")
    (curve,) = sweep(scored, policy(AT_LEAST_50), "short", examples=0).curves
    assert (curve.just_kept, curve.just_removed) == ([], [])


def many(seed: int, number: int = 300) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        document(
            f"document {n}", chance.choice([None, 0, 0.3, chance.random(), chance.uniform(0, 2000)]),
            chance.randrange(10_000), kind=chance.choice(["book", "code"]),
            language=chance.choice(["en", "de"]), source=chance.choice("st"),
            signals={"perplexity": chance.uniform(10, 900), "toxicity": round(chance.random(), 6)},
        )
        for n in range(number)
    ]  # fmt: skip


POLICY = policy(
    Rule(name="words", signal="words", minimum=0.12345, maximum=1500),
    Rule(name="words", minimum=300, only_kinds=["code"]),
    Rule(name="toxic", signal="toxicity", maximum=0.8, except_languages=["de"]),
    languages=["en"],
    keep_buckets=["head", "middle"],
)


@pytest.mark.parametrize("seed", range(3))
def test_at_the_present_bounds_it_agrees_with_what_clean_keeps(layer: WriteLayer, seed: int) -> None:
    scored = layer(*many(seed), name="scored")
    found = sweep(scored, POLICY, "words")
    (batch,) = pq.read_table(scored / "documents").combine_chunks().to_batches()
    perplexity = np.array([dict(signals)["perplexity"] for signals in batch.column("signals").to_pylist()])
    cuts = cutoffs(histogram(perplexity, batch.column("language").to_pylist()), POLICY.bucket_shares)
    judged = judge_batch(batch, Judge(POLICY, cuts)).to_pylist()
    kept = [row for row in judged if row["verdict"] == KEPT]
    assert 0 < len(kept) < 300
    assert found.policy_documents == len(kept)
    assert found.policy_characters == sum(int(dict(row["signals"])["characters"]) for row in kept)
    for curve in found.curves:
        own = [row for row in kept if (row["kind"] == "code") == (curve.scope == "kinds code")]
        assert curve.present
        assert curve.present.policy_documents == len(own)


def test_the_result_is_the_same_whatever_the_batches_and_parts(
    layer: WriteLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = many(7)
    whole = sweep(layer(*documents, name="scored"), POLICY, "words", examples=7)
    monkeypatch.setattr(module, "BATCH_DOCUMENTS", 11)
    assert sweep(layer(*documents, name="apart", parts=4), POLICY, "words", examples=7) == whole


def test_a_selection_is_all_that_is_counted_and_moves_no_cutoff(layer: WriteLayer) -> None:
    documents = many(3)
    scored = layer(*documents, name="scored")
    selected = sweep(scored, POLICY, "toxic", selection=Selection(sources=["s"], languages=["en"]))
    of_s = [d for d in documents if d["source"] == "s" and d["language"] == "en"]
    assert selected.documents == selected.curves[0].documents == len(of_s)
    assert selected.selection == {"source": ["s"], "language": ["en"]}
    parts = [sweep(scored, POLICY, "toxic", selection=Selection(sources=[s])).policy_documents for s in "st"]
    assert sum(parts) == sweep(scored, POLICY, "toxic").policy_documents


def test_a_curve_has_a_bounded_number_of_points_and_its_own_bound_exactly(layer: WriteLayer) -> None:
    scored = layer(*many(1, 1500), name="scored")
    (curve,) = sweep(scored, policy(Rule(name="r", signal="toxicity", maximum=0.123456)), "r").curves
    assert 100 < len(curve.points) <= MOST_THRESHOLDS
    assert [point.threshold for point in curve.points] == sorted({p.threshold for p in curve.points})
    assert 0.123456 in counts(curve)
    kept = [point.documents for point in curve.points]
    assert kept == sorted(kept)
    assert sum(curve.bars) == 1500


def test_texts_are_read_of_row_groups_that_may_have_an_example_only(
    layer: WriteLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored = layer(*(document(f"text {n}", n) for n in range(100)), name="scored")
    path = scored / "documents" / "part-00000.parquet"
    pq.write_table(pq.read_table(path).sort_by("id"), path, row_group_size=10)
    read: list[int] = []
    real = pq.ParquetFile.iter_batches

    def spied(self: pq.ParquetFile, *arguments: Any, **options: Any) -> Any:
        if "text" in options["columns"]:
            read.extend(options["row_groups"])
        return real(self, *arguments, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spied)
    (curve,) = sweep(scored, policy(AT_LEAST_50), "short", examples=1).curves
    assert [example.excerpt for example in (*curve.just_kept, *curve.just_removed)] == ["text 50", "text 49"]
    assert 1 <= len(read) <= 2


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (
            "shrot",
            r"no rule `shrot`, and there is no signal of that name; did you mean `short`\?\nrules: short",
        ),
        (
            "qqqq",
            r"no rule `qqqq`, and there is no signal of that name\nrules: short, off\nsignals: alphabetic",
        ),
        ("off", "the rule off is off wherever it is named"),
        ("toxicity", "no document that is looked at has the signal toxicity: `score` did not measure it"),
    ],
)
def test_what_cannot_be_swept_is_named(layer: WriteLayer, name: str, complaint: str) -> None:
    scored = layer(document("a", 10), name="scored")
    off = Rule(name="off", signal="words", off=True)
    with pytest.raises(SweepError, match=complaint):
        sweep(scored, policy(AT_LEAST_50, off), name)


@pytest.mark.parametrize(
    ("selection", "complaint"),
    [
        (Selection(sources=["dosc"]), "no document has the source dosc; did you mean `docs`"),
        (Selection(kinds=["book", "wbe"]), "no document has the kind wbe; known are: book"),
        (Selection(languages=["xx"]), "no document has the language xx; known are: en"),
        (Selection(languages=["en"]), "short judges none of the 1 documents that are looked at"),
    ],
)
def test_a_selection_of_nothing_is_refused(layer: WriteLayer, selection: Selection, complaint: str) -> None:
    only_german = Rule(name="short", signal="words", minimum=5, only_languages=["de"])
    with pytest.raises(SweepError, match=complaint):
        sweep(layer(document("a", 10), name="scored"), policy(only_german), "short", selection=selection)


def test_a_layer_that_is_not_scored_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match="has no documents: `gristmill run corpus` makes the scored layer"):
        sweep(tmp_path / "scored", policy(AT_LEAST_50), "short")
    (tmp_path / "raw" / "documents").mkdir(parents=True)
    part = tmp_path / "raw" / "documents" / "part-00000.parquet"
    pq.write_table(pa.table({"id": ["a"], "text": ["b"]}), part)
    with pytest.raises(SweepError, match=r"part-00000.parquet has no column source, kind, language"):
        sweep(tmp_path / "raw", policy(AT_LEAST_50), "short")
    part.write_bytes(b"PAR1 torn")
    with pytest.raises(SweepError, match=r"part-00000.parquet cannot be read"):
        sweep(tmp_path / "raw", policy(AT_LEAST_50), "short")


def test_an_empty_layer_has_nothing_to_judge(layer: WriteLayer) -> None:
    scored = layer(document("a", 1), name="scored")
    part = scored / "documents" / "part-00000.parquet"
    pq.write_table(pq.read_table(part).slice(0, 0).select(list(DOCUMENT_COLUMNS)), part)
    with pytest.raises(SweepError, match="short judges none of the 0 documents"):
        sweep(scored, policy(AT_LEAST_50), "short")


@pytest.mark.parametrize("at", [float("nan"), float("inf")])
def test_examples_lie_at_a_number(layer: WriteLayer, at: float) -> None:
    with pytest.raises(SweepError, match="examples can be shown at a number"):
        sweep(layer(document("a", 1), name="scored"), policy(AT_LEAST_50), "short", at=at)


def test_an_excerpt_shows_no_personal_data_not_even_where_it_ends() -> None:
    for before in range(EXCERPT_CHARACTERS - 30, EXCERPT_CHARACTERS + 5):
        text = "a" * (before - 1) + " jane.doe@example.org and more " + "b" * 400
        assert "jane" not in excerpt(text)
        assert "@" not in excerpt(text)


def test_an_excerpt_is_one_line_that_no_terminal_obeys() -> None:
    shown = excerpt("first\n\n  line \x1b[31mred\x07 \u202eright to left\u2028next \U000e0041tag")
    assert shown == "first line [31mred right to left next tag"
    assert excerpt("می\u200cخواهم") == "می\u200cخواهم"
    assert len(excerpt("word " * 10**6)) <= EXCERPT_CHARACTERS + 2


HOSTILE = "<script>alert(1)</script> & <b>bold</b>"


def test_the_page_needs_nothing_else_and_runs_nothing(layer: WriteLayer) -> None:
    scored = layer(document(HOSTILE, 49), document("fine", 60), name="scored")
    found = sweep(scored, policy(AT_LEAST_50), "short")
    html = page.render(found)
    assert html == page.render(found)
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp;" in html
    assert re.findall(r'(?:src|href)="([^"]*)"', html) == ["data:,"]
    assert not re.search(r"url\(|@import|https?://", html)
    assert "prefers-color-scheme: dark" in html


def test_the_page_marks_the_present_bound_and_the_value_of_the_examples(layer: WriteLayer) -> None:
    scored = layer(*(document(f"{words}", words) for words in range(100)), name="scored")
    drawing = page.draw(sweep(scored, policy(AT_LEAST_50), "short", at=75).curves[0])
    assert [label for _, label in drawing.marks] == ["now 50", "examples 75"]
    assert [round(place) for place, _ in drawing.marks] == [51, 76]
    assert len(drawing.lines) == 4
    places = [float(place) for _, path, _ in drawing.lines for place in re.findall(r"[\d.]+", path)]
    assert all(0 <= place <= 100 for place in places)


@pytest.mark.parametrize("values", [[5], [0, 0, 0], [1, 10, 100, 1e6], [None, 3], [-4, -2, 0]])
def test_any_distribution_can_be_drawn(layer: WriteLayer, values: list[float | None]) -> None:
    scored = layer(*(document(f"{n}", value) for n, value in enumerate(values)), name="scored")
    for found in (sweep(scored, policy(AT_LEAST_50), "short"), sweep(scored, policy(), "words")):
        assert "NaN" not in page.render(found)
        assert all(page.draw(curve).x_ticks for curve in found.curves)
        assert found.model_validate_json(found.model_dump_json()) == found


def test_the_table_marks_the_present_bound(layer: WriteLayer) -> None:
    scored = layer(*(document(f"{n}", n) for n in range(1000)), name="scored")
    found = sweep(scored, policy(AT_LEAST_50), "short")
    lines = table.render(found).splitlines()
    assert lines[0] == "short: 1,000 documents, 0 of them not judged; the policy keeps 95.0 %"
    assert lines[2] == "minimum of words, now 50; all documents: 1,000 documents"
    (marked,) = [line.split() for line in lines if "*" in line]
    assert marked == ["*", "50", "95.0", "%", "95.0", "%", "95.0", "%", "95.0", "%", "50", "50"]
    assert len(lines) <= 4 + table.MOST_ROWS + 1
    assert len({len(line) for line in lines[3:]}) == 1
