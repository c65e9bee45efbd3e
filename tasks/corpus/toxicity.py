"""How toxic a text reads: a linear classifier over words, as a signal for rules.

The weights are those that alt-profanity-check brings along: scikit-learn's TF-IDF and the mean of five linear
support vector machines, each with a sigmoid (Platt, 1999), trained on English comments of Wikipedia and on
tweets. They are scored here over arrays, without scikit-learn, whose import alone takes two seconds.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

LANGUAGES = frozenset(("en", "und"))
"""What the classifier was trained for, and texts too short to tell; elsewhere there is no signal."""

PASSAGE_WORDS = 50
"""Words of a passage, about as many as the comments have that the classifier learnt from."""

_WORD = re.compile(r"\w\w+")  # CountVectorizer's token_pattern; its \b hold wherever this matches
_BATCH_WORDS = 2**20
_LONG = 2**22


def toxicity(texts: Sequence[str]) -> list[float]:
    """The probability in [0, 1] that each text, taken as a whole, is toxic.

    The same numbers as ``profanity_check.predict_prob``. It is meant for texts of the length of a comment: in
    a long one every word weighs little.
    """
    return [float(values[0]) for values in _scores(texts, None)]


def passage_toxicity(texts: Sequence[str]) -> list[float]:
    """For each text the mean of `toxicity` over its passages of 50 words: comparable between all lengths.

    Words are those of two characters or more. What is left at the end makes a passage if it has at least half
    as many words, or if it is all there is; else it belongs to the one before.
    """
    return [float(values.mean()) for values in _scores(texts, PASSAGE_WORDS)]


@dataclass(frozen=True)
class _Weights:
    vocabulary: dict[str, int]
    idf: np.ndarray
    coefficients: np.ndarray  # one row for each of the machines
    intercepts: np.ndarray
    slopes: np.ndarray
    offsets: np.ndarray


def _scores(texts: Sequence[str], passage: int | None) -> Iterator[np.ndarray]:
    """For each text the probabilities of its passages, or of its whole if ``passage`` is None."""
    import numpy as np

    weights = _weights()
    find, number = weights.vocabulary.get, repeat(-1)
    batch: list[np.ndarray] = []
    size = 0
    for text in texts:
        # A list of all words is quicker and takes fifty times the memory of the text.
        lowered = text.lower()
        words = _WORD.findall(lowered) if len(text) < _LONG else (m[0] for m in _WORD.finditer(lowered))
        batch.append(np.fromiter(map(find, words, number), np.int32))
        size += len(batch[-1])
        if size >= _BATCH_WORDS:
            yield from _batch_scores(batch, passage, weights)
            batch, size = [], 0
    if batch:
        yield from _batch_scores(batch, passage, weights)


def _batch_scores(batch: list[np.ndarray], passage: int | None, weights: _Weights) -> list[np.ndarray]:
    import numpy as np

    lengths = np.array([len(words) for words in batch])
    if passage is None:
        counts = np.ones(len(batch), np.int64)
    else:
        counts = np.maximum(1, (lengths + passage // 2) // passage)
    first = np.cumsum(counts) - counts
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    if passage is None:
        within[:] = 0
    else:
        within = np.minimum(within // passage, np.repeat(counts - 1, lengths))
    places = np.repeat(first, lengths) + within
    scores = _probabilities(np.concatenate(batch), places, int(counts.sum()), weights)
    return np.split(scores, first[1:])


def _probabilities(words: np.ndarray, places: np.ndarray, count: int, weights: _Weights) -> np.ndarray:
    """The probability of each of ``count`` bags, given each word's number (-1: unknown) and bag."""
    import numpy as np

    known = words >= 0
    size = len(weights.idf)
    keys, times = np.unique(places[known] * size + words[known], return_counts=True)
    places, words = np.divmod(keys, size)
    values = times * weights.idf[words]
    norms = np.sqrt(np.bincount(places, values * values, count))
    norms[norms == 0] = 1
    total = np.zeros(count)
    for row, intercept, slope, offset in zip(
        weights.coefficients, weights.intercepts, weights.slopes, weights.offsets, strict=True
    ):
        distance = np.bincount(places, values * row[words], count) / norms + intercept
        total += 1 / (1 + np.exp(slope * distance + offset))
    return total / len(weights.coefficients)


@cache
def _weights() -> _Weights:
    import numpy as np

    vectorizer, model = _read("vectorizer.joblib"), _read("model.joblib")
    machines = model.calibrated_classifiers_
    return _Weights(
        vectorizer.vocabulary_,
        vectorizer._tfidf.idf_,
        np.stack([machine.estimator.coef_[0] for machine in machines]),
        np.array([machine.estimator.intercept_[0] for machine in machines]),
        np.array([machine.calibrators[0].a_ for machine in machines]),
        np.array([machine.calibrators[0].b_ for machine in machines]),
    )


class _Fields:
    """Stands for any class of scikit-learn: what was pickled of it, and nothing of what it does."""


_ALLOWED = {
    ("joblib.numpy_pickle", "NumpyArrayWrapper"),
    ("numpy", "dtype"),
    ("numpy", "float64"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "scalar"),
}


def _read(name: str) -> Any:
    """Read one of the package's pickles; classes other than arrays and scikit-learn's are refused.

    Raises:
        pickle.UnpicklingError: if the file names another class.
    """
    from joblib.numpy_pickle import NumpyUnpickler

    class Unpickler(NumpyUnpickler):
        def find_class(self, module: str, name: str) -> Any:
            if module.startswith("sklearn."):
                return _Fields
            if (module, name) in _ALLOWED:
                return super().find_class(module, name)
            raise pickle.UnpicklingError(f"{path} wants {module}.{name}, which no weights need")

    # Found, not imported: the package loads its models with scikit-learn when it is imported.
    package = find_spec("profanity_check")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "data" / name
    with path.open("rb") as stream:
        return Unpickler(str(path), stream, True).load()
