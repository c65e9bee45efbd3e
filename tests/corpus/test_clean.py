from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.corpus.clean import CleanParams, clean
from tasks.corpus.policy import Rule
from tasks.resources import Resources

PROSE = "The ship went down with all hands, and that was the end of what they have told to the children. " * 5


@pytest.fixture
def cleaned(collected: Callable[..., Path], tmp_path: Path, resources: Resources):
    def run(*texts: str, params: CleanParams | None = None, **given):
        raw = collected(*texts, **given)
        return clean(raw, tmp_path / "clean", params or CleanParams(), resources), tmp_path / "clean"

    return run


def test_every_rule_that_a_document_fails_is_in_the_ledger(cleaned, ledger_of) -> None:
    rules = [
        Rule(name="too_short", signal="words", minimum=50),
        Rule(name="stop_words", signal="stop_words", minimum=2),
        Rule(name="long_words", signal="mean_word_length", maximum=10),
    ]
    report, layer = cleaned(PROSE, "antidisestablishmentarianism", params=CleanParams(rules=rules))
    assert (report.kept, report.removed, report.removed_by_rule) == (1, 1, {"too_short": 1})
    told = {entry["rule"]: (entry["value"], entry["threshold"]) for entry in ledger_of(layer)}
    assert told == {"too_short": (1.0, 50.0), "stop_words": (0.0, 2.0), "long_words": (28.0, 10.0)}


def test_an_empty_text_is_removed_with_its_reason(cleaned, ledger_of) -> None:
    report, layer = cleaned(PROSE, " \n\t ")
    assert report.removed_by_rule == {"empty": 1}
    assert {entry["rule"] for entry in ledger_of(layer)} == {"empty"}


def test_html_loses_its_navigation_and_keeps_its_text(cleaned, documents_of) -> None:
    page = (
        '<?xml version="1.0" encoding="UTF-8"?><html><head><title>T</title><script>var a = 1;</script></head>'
        "<body><nav><a href='/'>Home</a> <a href='/x'>Next page</a></nav>"
        f"<article><p>{PROSE}</p></article></body></html>"
    )
    _, layer = cleaned(page, markup="html")
    (document,) = documents_of(layer)
    assert PROSE.strip() in document["text"]
    assert "Next page" not in document["text"]
    assert "var a" not in document["text"]


def test_an_address_is_masked_alike_wherever_it_stands(cleaned, documents_of, ledger_of) -> None:
    report, layer = cleaned(
        PROSE + "Write to Ann@example.org or bob@example.org.", PROSE + "ann@example.org answered."
    )
    assert report.emails_masked == 3
    texts = [document["text"] for document in documents_of(layer)]
    assert not any("example.org" in text for text in texts)
    tags = [[word.strip(".") for word in text.split() if word.startswith("<email-")] for text in texts]
    (shared,) = set(tags[0]) & set(tags[1])
    assert sum(tag.count(shared) for tag in tags) == 2
    assert {(entry["rule"], entry["verdict"]) for entry in ledger_of(layer)} == {("email", "kept")}


def test_code_has_no_language_and_is_spared_the_rules_of_prose(cleaned, documents_of) -> None:
    rules = [Rule(name="stop_words", signal="stop_words", minimum=2, except_kinds=["code"])]
    code = "def f(x):\n    return x + 1\n\n" * 5
    report, layer = cleaned(code, kind="code", params=CleanParams(rules=rules))
    assert report.kept == 1
    assert documents_of(layer)[0]["language"] == "zxx"


def test_only_the_languages_asked_for_are_kept(cleaned) -> None:
    german = "Das Schiff ging mit der ganzen Mannschaft unter, und damit war die Geschichte zu Ende. " * 5
    report, _ = cleaned(PROSE, german, params=CleanParams(languages=["de"]))
    assert report.kept_by_language == {"de": 1}
    assert report.removed_by_rule == {"language": 1}


def test_a_rule_on_a_signal_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no signal `wrods`"):
        CleanParams(rules=[Rule(name="short", signal="wrods", minimum=1)])


def test_a_rule_without_a_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a minimum or a maximum"):
        Rule(name="short", signal="words")
