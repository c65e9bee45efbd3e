"""The toxicity of texts: the package's own probabilities, and their mean over passages."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.corpus import toxicity as module
from tasks.corpus.toxicity import PASSAGE_WORDS, passage_toxicity, toxicity

CALM = "The committee met on a quiet morning and wrote a letter about the harbour, the weather and new roads."
RUDE = "You are a stupid idiot, shut up, you suck!"
TEXTS = [
    "", " ", "a", "I", "ass", RUDE, CALM, RUDE.upper(), f"{CALM} {RUDE}", f"{RUDE} " * 30,
    "kill the child process", "Ünïcode ÏDIÔT İdiot", "idiot\u200bidiot", "snake_case 3_4 idiot_2",
    "你是笨蛋吗", "не ругайся, идиот", "it's don't you're", "\ud800 idiot \udfff", "\0idiot\0",
    "idiot" * 1000, "１２３ ｉｄｉｏｔ", "e\u0301tat", "🖕 idiot 🖕", "ﬁne idiots", "ẞ ß ǅ",
    "the and of to", "word " * 5000, "\r\n\tidiot\x0bidiot\x85",
]  # fmt: skip


def test_probabilities_are_those_of_the_package() -> None:
    from profanity_check import predict_prob

    assert toxicity(TEXTS) == pytest.approx(list(predict_prob(TEXTS)), abs=1e-9)


def test_real_texts_score_as_in_the_package() -> None:
    from profanity_check import predict_prob

    sample = Path(__file__).parents[2] / "sample"
    texts = sample.joinpath("README.md").read_text("utf-8").split("\n")
    assert toxicity(texts) == pytest.approx(list(predict_prob(texts)), abs=1e-9)


def test_a_text_scores_alike_alone_and_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    together = toxicity(TEXTS), passage_toxicity(TEXTS)
    monkeypatch.setattr(module, "_BATCH_WORDS", 7)
    assert (toxicity(TEXTS), passage_toxicity(TEXTS)) == together
    assert [toxicity([text])[0] for text in TEXTS] == together[0]


def test_a_text_too_long_for_a_list_of_its_words_scores_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = toxicity(TEXTS), passage_toxicity(TEXTS)
    monkeypatch.setattr(module, "_LONG", 1)
    assert (toxicity(TEXTS), passage_toxicity(TEXTS)) == expected


def test_no_texts_no_scores() -> None:
    assert toxicity([]) == passage_toxicity([]) == []


def test_a_text_of_one_passage_scores_as_a_whole() -> None:
    texts = [*TEXTS[:9], "idiot " * (PASSAGE_WORDS + PASSAGE_WORDS // 2 - 1)]
    assert passage_toxicity(texts) == toxicity(texts)


def test_a_longer_text_scores_the_mean_of_its_passages() -> None:
    passages = ["word " * PASSAGE_WORDS, "idiot " * PASSAGE_WORDS, "calm " * (PASSAGE_WORDS // 2)]
    assert passage_toxicity(["".join(passages)])[0] == pytest.approx(sum(toxicity(passages)) / 3)


def test_a_short_rest_belongs_to_the_passage_before() -> None:
    first, rest = "word " * PASSAGE_WORDS, "idiot " * (PASSAGE_WORDS // 2 - 1)
    whole = passage_toxicity([first + first + rest])[0]
    assert whole == pytest.approx(sum(toxicity([first, first + rest])) / 2)


def test_length_alone_makes_no_text_toxic() -> None:
    (once, often) = passage_toxicity([CALM * 3, CALM * 300])
    assert often == pytest.approx(once, abs=0.02)
    assert often < 0.1 < 0.9 < passage_toxicity([RUDE * 300])[0]


def test_a_megabyte_of_one_word_or_of_none_is_scored() -> None:
    assert all(0 <= score <= 1 for score in passage_toxicity(["x" * 2**20, "x " * 2**19, "," * 2**20]))


def test_scoring_does_not_import_scikit_learn() -> None:
    code = (
        "import sys; from tasks.corpus.toxicity import toxicity; "
        "toxicity(['idiot']); print('sklearn' in sys.modules, 'profanity_check' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]


def test_a_file_of_weights_that_names_another_class_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    stream = io.BytesIO()
    pickle.dump(print, stream)
    (tmp_path / "data" / "model.joblib").write_bytes(stream.getvalue())
    found = type("Spec", (), {"origin": str(tmp_path / "__init__.py")})()
    monkeypatch.setattr(module, "find_spec", lambda _: found)
    with pytest.raises(pickle.UnpicklingError, match=r"builtins.print, which no weights need"):
        module._read("model.joblib")
