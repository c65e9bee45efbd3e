"""The stage that measures: text, language and signals of raw documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.corpus.decontamination.evaluation_sets import EvaluationSet
from tasks.corpus.lexicons.lists import LexiconParams
from tasks.corpus.score import ScoreParams, ScoreReport, score
from tasks.corpus.scoring.parts import FIXED_SIGNALS
from tasks.corpus.scoring.trusted import PerplexityParams
from tasks.resources import Resources
from tasks.stage import StageError

PROSE = "The ship went down with all hands, and that was the end of what they have told to the children. " * 5
QUESTION = "Which of the many ships of the old king went down with all hands in the great storm?"


@pytest.fixture
def scored(collected: Callable[..., Path], tmp_path: Path, resources: Resources):
    def run(*texts: str, params: ScoreParams | None = None, **given) -> tuple[ScoreReport, Path]:
        raw = collected(*texts, **given)
        for folder in ("lexicons", "evaluation"):
            (tmp_path / folder).mkdir(exist_ok=True)
        report = score(
            raw,
            tmp_path / "lexicons",
            tmp_path / "evaluation",
            tmp_path / "scored",
            params or ScoreParams(),
            resources,
        )
        return report, tmp_path / "scored"

    return run


def test_every_document_is_kept_with_all_its_signals(scored, documents_of) -> None:
    report, layer = scored(PROSE, "A text of few words, but one that is in English.")
    assert (report.records_in, report.kept) == (2, 2)
    unmeasured = {"perplexity", "contamination", "language_score"}
    for document in documents_of(layer):
        assert set(document["signals"]) == set(FIXED_SIGNALS) - unmeasured


def test_a_text_of_which_nothing_is_left_is_removed_with_the_reason(scored, ledger_of) -> None:
    report, layer = scored(PROSE, " \n\t ")
    assert report.removed_by_rule == {"empty": 1}
    assert {entry["rule"] for entry in ledger_of(layer)} == {"empty"}


def test_html_loses_its_navigation_and_keeps_its_text(scored, documents_of) -> None:
    page = (
        '<?xml version="1.0" encoding="UTF-8"?><html><head><title>T</title><script>var a = 1;</script></head>'
        "<body><nav><a href='/'>Home</a> <a href='/x'>Next page</a></nav>"
        f"<article><p>{PROSE}</p></article></body></html>"
    )
    _, layer = scored(page, markup="html")
    (document,) = documents_of(layer)
    assert PROSE.strip() in document["text"]
    assert "Next page" not in document["text"]
    assert "var a" not in document["text"]


def test_code_has_no_language(scored, documents_of) -> None:
    _, layer = scored("def f(x):\n    return x + 1\n", kind="code")
    assert documents_of(layer)[0]["language"] == "zxx"


def test_the_hits_of_a_list_are_counted_where_it_applies(scored, documents_of, tmp_path: Path) -> None:
    (tmp_path / "lexicons").mkdir()
    (tmp_path / "lexicons" / "ships.txt").write_text("ship\n", "utf-8")
    lists = [
        LexiconParams(name="ships", path="ships.txt"),
        LexiconParams(name="german", path="ships.txt", languages=["de"]),
    ]
    _, layer = scored(PROSE, params=ScoreParams(lexicons=lists))
    (document,) = documents_of(layer)
    assert document["signals"]["lexicon_ships_rate"] == pytest.approx(1000 * 5 / 100)
    assert "lexicon_german_rate" not in document["signals"]


def test_perplexity_is_low_where_text_is_like_the_trusted_one(scored, documents_of) -> None:
    trusted = [f"The ship number {n} went down with all hands in the storm of the year." for n in range(200)]
    params = ScoreParams(perplexity=PerplexityParams(trusted_sources=["docs"], minimum_words=100))
    other = "My grandmother bakes her bread with butter, sugar and cinnamon every Sunday morning."
    report, layer = scored(*trusted, other, params=params)
    by_text = {document["text"]: document["signals"]["perplexity"] for document in documents_of(layer)}
    perplexity = by_text.pop(other)
    assert max(by_text.values()) < perplexity
    assert set(report.perplexity_models) == {"en"}


def test_a_trusted_source_that_is_not_there_is_named(scored) -> None:
    params = ScoreParams(perplexity=PerplexityParams(trusted_sources=["wikipedia"]))
    with pytest.raises(StageError, match="no source `wikipedia`; there are docs"):
        scored(PROSE, params=params)


def test_a_model_that_cannot_be_read_is_named(scored, tmp_path: Path) -> None:
    params = ScoreParams(perplexity=PerplexityParams(model=str(tmp_path / "none")))
    with pytest.raises(StageError, match=r"none/config\.json: no such file"):
        scored(PROSE, params=params)


def test_perplexity_needs_trusted_sources_or_a_model() -> None:
    with pytest.raises(ValueError, match="name either `trusted_sources` or a `model`"):
        PerplexityParams()


def test_a_document_that_contains_an_evaluation_item_is_named_with_the_span(
    scored, documents_of, ledger_of, tmp_path: Path
) -> None:
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "quiz.jsonl").write_text(
        json.dumps({"q": QUESTION, "a": "The Heron"}) + "\n", "utf-8"
    )
    sets = [EvaluationSet(name="quiz", path="quiz.jsonl", question_field="q", answer_field="a")]
    report, layer = scored(PROSE + QUESTION.upper(), PROSE, params=ScoreParams(evaluation_sets=sets))
    overlaps = sorted(document["signals"]["contamination"] for document in documents_of(layer))
    assert overlaps == [0.0, 1.0]
    (entry,) = ledger_of(layer)
    assert (entry["rule"], entry["verdict"], entry["value"]) == ("contamination", "kept", 1.0)
    assert entry["detail"].startswith("quiz:1 at bytes ")
    assert "WHICH OF THE MANY SHIPS" in entry["detail"]
    assert report.contaminated == 1


def test_two_lists_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="used twice: en"):
        ScoreParams(lexicons=[LexiconParams(name="en", path="a.txt"), LexiconParams(name="en", path="b.txt")])
