from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tasks.corpus.perplexity.cross_fitting import load_models, save_models, score, train_languages
from tasks.corpus.perplexity.trusted_words import folds, priorities, trusted_words
from tasks.corpus.scoring.segments import segment_words
from tasks.stage import StageError


def sentences(seed: int, count: int = 60) -> list[str]:
    random = np.random.default_rng(seed)
    who, does = ("the old mill", "a grey heron", "the stream", "the miller"), ("turns", "sees", "follows")
    return [
        " ".join(f"{random.choice(who)} {random.choice(does)} {random.choice(who)}" for _ in range(6))
        for _ in range(count)
    ]


def words(texts):
    return segment_words(pa.array(texts, pa.string()))


def models(texts, languages=None, **given):
    trusted = trusted_words(words(texts), languages or ["en"] * len(texts), max_words=10**6)
    return train_languages(trusted, **({"minimum_words": 1} | given))


def test_a_document_is_scored_by_the_model_that_has_not_read_it():
    texts = sentences(1)
    changed = [*texts[:-1], "a stranger with an umbrella tells of whales " * 3]
    last = words(changed[-1:])
    with_it, without_it = models(changed), models(texts[:-1])
    np.testing.assert_array_equal(score(with_it, last, ["en"]), score(without_it, last, ["en"]))


def test_a_document_of_the_trusted_text_gains_nothing_by_being_in_it():
    texts, strangers = sentences(1), sentences(2)
    fitted = models(texts)
    own, other = (np.median(score(fitted, words(some), ["en"] * len(some))) for some in (texts, strangers))
    assert own == pytest.approx(other, rel=0.1)


def test_copies_of_a_document_share_a_half_however_they_are_written():
    given = words(["The Mill turns, slowly.", "the mill TURNS slowly", "the mill turns slowly!"])
    assert len(set(folds(priorities(given)).tolist())) == 1


def test_halves_are_about_even():
    assert np.mean(folds(priorities(words(sentences(3, 1000))))) == pytest.approx(0.5, abs=0.07)


def test_a_language_with_too_few_words_has_no_model_and_its_documents_no_perplexity():
    texts = [*sentences(1), "drei Wörter nur", "und noch vier Wörter"]
    languages = ["en"] * 60 + ["de"] * 2
    fitted = models(texts, languages, minimum_words=100)
    assert list(fitted) == ["en"]
    found = score(
        fitted, words(["the old mill turns", "drei Wörter", "", "the mill"]), ["en", "de", "en", None]
    )
    assert np.isfinite(found[0])
    assert np.isnan(found[1:]).all()


def test_a_language_of_one_document_has_no_model():
    assert models(["the old mill turns and turns"], minimum_words=0) == {}


def test_documents_of_several_languages_in_one_batch_are_scored_as_alone():
    texts = [*sentences(1), *(text.upper().replace("E", "Ä") for text in sentences(2))]
    languages = ["en"] * 60 + ["xx"] * 60
    fitted = models(texts, languages)
    together = score(fitted, words(texts), languages)
    alone = [score(fitted, words([text]), [name])[0] for text, name in zip(texts, languages, strict=True)]
    np.testing.assert_array_equal(together, alone)


def test_models_come_back_from_their_folder(tmp_path: Path):
    texts = sentences(1)
    fitted = models([*texts, *texts], ["en"] * 60 + ["de"] * 60)
    save_models(fitted, tmp_path / "perplexity")
    again = load_models(tmp_path / "perplexity")
    assert list(again) == ["de", "en"]
    np.testing.assert_array_equal(
        score(again, words(texts), ["en"] * 60), score(fitted, words(texts), ["en"] * 60)
    )


def test_no_models_make_an_empty_folder_and_a_missing_folder_is_named(tmp_path: Path):
    save_models({}, tmp_path / "none")
    assert load_models(tmp_path / "none") == {}
    with pytest.raises(StageError, match="missing: no such folder"):
        load_models(tmp_path / "missing")
