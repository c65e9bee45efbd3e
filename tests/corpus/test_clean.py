"""The stage that decides: rules on signals, masks on what is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.corpus.clean import CleanReport, clean
from tasks.corpus.lexicons.lists import LexiconParams
from tasks.corpus.policies.policy import CleanParams, LexiconAction
from tasks.corpus.policies.rules import Rule
from tasks.corpus.score import ScoreParams, score
from tasks.corpus.scoring.trusted import PerplexityParams
from tasks.layer_files import read_documents
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import StageError

PROSE = "The ship went down with all hands, and that was the end of what they have told to the children. " * 5
LISTS = [LexiconParams(name="ships", path="ships.txt")]


@pytest.fixture
def cleaned(collected: Callable[..., Path], tmp_path: Path, resources: Resources):
    """Collect, score and clean texts; another policy on the same scores with ``again``."""
    lexicons = tmp_path / "lexicons"
    lexicons.mkdir()
    (lexicons / "ships.txt").write_text("ship\n", "utf-8")
    forgotten = tmp_path / "forgotten.jsonl"
    forgotten.touch()

    def run(
        *texts: str, params: CleanParams | None = None, scoring: ScoreParams | None = None, **given
    ) -> tuple[CleanReport, Path]:
        if texts:
            scoring = scoring or ScoreParams(lexicons=LISTS)
            score(collected(*texts, **given), lexicons, lexicons, tmp_path / "scored", scoring, resources)
        here = resources.model_copy(update={"work": tmp_path / "work"})
        params = params or CleanParams(presets=[])
        layer = tmp_path / "clean"
        return clean(tmp_path / "scored", lexicons, forgotten, layer, params, here), layer

    return run


def test_every_rule_that_a_document_fails_is_in_the_ledger(cleaned, ledger_of) -> None:
    rules = [
        Rule(name="too_short", signal="words", minimum=50),
        Rule(name="stop_words", signal="stop_words", minimum=2),
        Rule(name="long_words", signal="mean_word_length", maximum=10),
    ]
    report, layer = cleaned(
        PROSE, "Antidisestablishmentarian internationalists", params=CleanParams(presets=[], rules=rules)
    )
    assert (report.kept, report.removed, report.removed_by_rule) == (1, 1, {"too_short": 1})
    told = {entry["rule"]: (entry["value"], entry["threshold"]) for entry in ledger_of(layer)}
    assert told == {"too_short": (2.0, 50.0), "stop_words": (0.0, 2.0), "long_words": (21.0, 10.0)}


def test_another_threshold_decides_anew_on_the_same_scores(cleaned, tmp_path: Path) -> None:
    strict = CleanParams(presets=[], rules=[Rule(name="short", signal="words", minimum=101)])
    assert cleaned(PROSE, params=strict)[0].removed == 1
    before = (tmp_path / "scored" / "documents" / "part-00000.parquet").stat()
    loose = CleanParams(presets=[], rules=[Rule(name="short", signal="words", minimum=100)])
    assert cleaned(params=loose)[0].kept == 1
    assert (tmp_path / "scored" / "documents" / "part-00000.parquet").stat() == before


def test_documents_that_changed_verdict_are_told_by_rule(cleaned, tmp_path: Path) -> None:
    short = Rule(name="short", signal="words", minimum=101)
    cleaned(PROSE, PROSE + PROSE, params=CleanParams(presets=[]))
    cleaned(params=CleanParams(presets=[], rules=[short]))
    changes = json.loads((tmp_path / "work" / "kept" / "clean" / "changes.json").read_text())
    assert (changes["documents"], changes["changed"]) == (2, 1)
    (change,) = changes["changes"]
    assert (change["before"], change["after"], change["documents"]) == ("kept", "short", 1)


def test_a_value_is_masked_alike_wherever_it_stands(cleaned, documents_of, ledger_of) -> None:
    report, layer = cleaned(
        PROSE + "Write to Ann@example.org or bob@example.org.", PROSE + "ann@example.org answered."
    )
    assert report.masked == {"pii_email": 3}
    texts = [document["text"] for document in documents_of(layer)]
    assert not any("example.org" in text for text in texts)
    tags = [[word.strip(".") for word in text.split() if word.startswith("<email-")] for text in texts]
    (shared,) = set(tags[0]) & set(tags[1])
    assert sum(tag.count(shared) for tag in tags) == 2
    assert {(entry["rule"], entry["verdict"]) for entry in ledger_of(layer)} == {("pii_email", "kept")}
    assert not any("example.org" in str(entry["detail"]) for entry in ledger_of(layer))


def test_kinds_of_personal_data_that_are_not_masked_stay(cleaned, documents_of) -> None:
    _, layer = cleaned(PROSE + "Write to ann@example.org.", params=CleanParams(presets=[], mask=["phone"]))
    assert "ann@example.org" in documents_of(layer)[0]["text"]


@pytest.mark.parametrize(
    ("action", "kept", "text"),
    [
        (LexiconAction(lexicon="ships", action="tag"), 1, "The ship went"),
        (LexiconAction(lexicon="ships", action="mask"), 1, "The <word-ships> went"),
        (LexiconAction(lexicon="ships", action="drop"), 0, None),
        (LexiconAction(lexicon="ships", action="drop", minimum_rate=60), 1, "The ship went"),
        (LexiconAction(lexicon="ships", action="mask", minimum_rate=60), 1, "The ship went"),
        (LexiconAction(lexicon="ships", action="mask", minimum_rate=40), 1, "The <word-ships> went"),
    ],
)
def test_listed_words_are_tagged_masked_or_drop_the_document(
    cleaned, documents_of, action, kept, text
) -> None:
    report, layer = cleaned(PROSE, params=CleanParams(presets=[], lexicons=[action]))
    assert report.kept == kept
    if text:
        assert documents_of(layer)[0]["text"].startswith(text)
    else:
        assert report.removed_by_rule == {"lexicon_ships": 1}


@pytest.mark.parametrize("off", [True, False])
def test_a_rule_for_a_source_that_is_none_is_refused(cleaned, off: bool) -> None:
    rule = Rule(name="r", signal="words", off=off, minimum=None if off else 1, only_sources=["dcos"])
    with pytest.raises(StageError, match="no source `dcos` in collect.sources; did you mean `docs`?"):
        cleaned(PROSE, params=CleanParams(presets=[], rules=[rule]))


def test_a_layer_that_was_not_scored_is_refused(
    collected: Callable[..., Path], tmp_path: Path, resources: Resources
) -> None:
    with pytest.raises(StageError, match="run the stage `score` first"):
        clean(collected(PROSE), tmp_path, tmp_path, tmp_path / "clean", CleanParams(), resources)


def test_a_document_that_is_cleaned_again_stays_as_it_is(
    cleaned, documents_of, tmp_path: Path, resources: Resources
) -> None:
    texts = [f"{PROSE} Write to ann{i}@example.org, says number {i}." for i in range(10)]
    scoring = ScoreParams(
        lexicons=LISTS, perplexity=PerplexityParams(trusted_sources=["docs"], minimum_words=10)
    )
    params = CleanParams(presets=[], lexicons=[LexiconAction(lexicon="ships", action="mask")])
    _, layer = cleaned(*texts, params=params, scoring=scoring)
    inputs = (layer, tmp_path / "lexicons", tmp_path / "forgotten.jsonl")
    clean(*inputs, tmp_path / "again", params, resources)
    before = documents_of(layer)
    assert all("perplexity_bucket" in document["meta"] for document in before)
    assert documents_of(tmp_path / "again") == before


def test_an_action_for_a_list_that_was_not_counted_is_refused(cleaned) -> None:
    params = CleanParams(presets=[], lexicons=[LexiconAction(lexicon="boats")])
    with pytest.raises(StageError, match="no list `boats` in score.lexicons; there are: ships"):
        cleaned(PROSE, params=params)


def test_a_preset_that_edits_lines_edits_what_is_kept_but_for_code(cleaned, documents_of) -> None:
    text = PROSE.replace(". ", ".\n") + "short line\nUse cookies to see this page of the many pages.[3]"
    params = CleanParams(presets=["c4_tfds"])
    _, layer = cleaned(text, params=params)
    assert documents_of(layer)[0]["text"] == PROSE.replace(". ", ".\n").strip()
    _, layer = cleaned(params=CleanParams(presets=["c4_tfds"], edit_lines=False))
    assert documents_of(layer)[0]["text"] == text


def test_a_subscript_in_code_is_no_citation(cleaned, documents_of) -> None:
    code = "def first(list):\n    return list[3] + list[0] if list else None.\n" * 5
    _, layer = cleaned(code, kind="code", params=CleanParams(presets=["c4_tfds"], rules=[
        Rule(name="c4_sentences", off=True), Rule(name="c4_curly_bracket", off=True),
    ]))  # fmt: skip
    assert documents_of(layer)[0]["text"] == code.strip()


def test_code_is_spared_the_rules_of_prose(cleaned) -> None:
    code = "def f(x):\n    return x + 1\n\n" * 12
    report, _ = cleaned(code, kind="code", params=CleanParams(presets=["multilingual"]))
    assert report.kept == 1


def test_only_the_languages_asked_for_are_kept(cleaned) -> None:
    german = "Das Schiff ging mit der ganzen Mannschaft unter, und damit war die Geschichte zu Ende. " * 5
    report, _ = cleaned(PROSE, german, params=CleanParams(presets=[], languages=["de"]))
    assert report.kept_by_language == {"de": 1}
    assert report.removed_by_rule == {"language": 1}


def test_documents_are_in_thirds_by_perplexity(cleaned, documents_of) -> None:
    texts = [f"The ship number {n} went down with all hands in the storm of the year." for n in range(120)]
    scoring = ScoreParams(
        lexicons=LISTS, perplexity=PerplexityParams(trusted_sources=["docs"], minimum_words=100)
    )
    params = CleanParams(presets=[], keep_buckets=["head", "middle"])
    bread = ["rye", "wheat", "corn", "barley", "oats", "spelt"]
    odd = [
        f"My grandmother bakes her bread from {one} and {two} every Sunday." for one in bread for two in bread
    ]
    report, layer = cleaned(*texts, *odd, scoring=scoring, params=params)
    assert {document["meta"]["perplexity_bucket"] for document in documents_of(layer)} <= {"head", "middle"}
    assert report.removed_by_rule == {"perplexity_bucket": 36}
    assert not any("bread" in document["text"] for document in documents_of(layer))


def test_an_empty_layer_is_cleaned(cleaned) -> None:
    report, _ = cleaned(" ", params=CleanParams(presets=["fineweb_code"]))
    assert report.records_in == 0


def test_a_folder_that_is_no_layer_is_named(tmp_path: Path, resources: Resources) -> None:
    with spark_session("tests", resources) as spark, pytest.raises(StageError, match="is no layer"):
        read_documents(spark, tmp_path)
