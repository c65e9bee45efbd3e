"""Compile every loop of the data path once: `make install` does, so that no run waits for it.

python -m tasks.corpus.compile_loops
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tasks.corpus.decontamination.contamination import find_contamination
from tasks.corpus.decontamination.evaluation_sets import EvaluationItem
from tasks.corpus.decontamination.index import OverlapParams, answer_texts, build_index, question_texts
from tasks.corpus.perplexity.cross_fitting import load_models, save_models, score, train_languages
from tasks.corpus.perplexity.trusted_words import merge_trusted, trusted_words
from tasks.corpus.scoring.c4 import keep_lines
from tasks.corpus.scoring.measure import measure
from tasks.corpus.scoring.segments import segment_words

TEXTS = [
    f"The ship number {number} went down with all hands in the great storm of that year."
    for number in range(9)
]


def compile_loops() -> None:
    """Call each compiled function with arrays of the types that the stages give it."""
    import pyarrow as pa

    texts = pa.array(TEXTS)
    languages = ["en"] * len(TEXTS)
    measure(texts, languages)
    keep_lines(TEXTS[0], "c4_tfds")
    words = segment_words(texts)
    samples = trusted_words(words, languages, max_words=1000)
    trusted = {"en": merge_trusted([samples["en"], samples["en"]], max_words=1000)}
    with tempfile.TemporaryDirectory() as folder:
        save_models(train_languages(trusted, minimum_words=1), Path(folder))
        score(load_models(Path(folder)), words, languages)
    items = [EvaluationItem("set", 1, TEXTS[0], ("storm",))]
    questions, answers = (
        segment_words(pa.array(given)) for given in (question_texts(items), answer_texts(items))
    )
    find_contamination(build_index(items, questions, answers, OverlapParams()), words, texts)


if __name__ == "__main__":
    compile_loops()
