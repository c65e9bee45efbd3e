"""Compile every loop of the data path once: `make install` does, so that no run waits for it.

python -m tasks.corpus.compile_loops
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from tasks.corpus.decontamination.contamination import find_contamination
from tasks.corpus.decontamination.evaluation_sets import EvaluationItem
from tasks.corpus.decontamination.index import OverlapParams, answer_texts, build_index, question_texts
from tasks.corpus.deduplication.arrays import mapped_array, write_array
from tasks.corpus.deduplication.buckets import bucket_pairs
from tasks.corpus.deduplication.components import contract
from tasks.corpus.deduplication.minhash_method import MinHashMethod
from tasks.corpus.deduplication.segments import Features, checksums
from tasks.corpus.encoding.packing import pack
from tasks.corpus.encoding.rows import packed_rows
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
    _deduplication(texts)
    pack(np.array([3, 9, 4]), 8)


def _deduplication(texts: pa.StringArray) -> None:
    method = MinHashMethod(5, 14, 8, 1, "jaccard", 0.8)
    made = method.measure(texts)
    with tempfile.TemporaryDirectory() as folder:
        # As tasks have them: from files that are mapped into memory.
        write_array(Path(folder, "features.npy"), made.values)
        values = mapped_array(Path(folder, "features.npy"))
        features = Features.back_to_back(values, made.offsets_D1)
        checksums(features)
        places_D = np.arange(len(texts))
        method.similarities(features, places_D, places_D)
    documents_K = np.repeat(np.arange(len(texts)), np.diff(made.key_offsets_D1))
    order = np.argsort(made.keys_K, kind="stable")
    pairs_P2 = bucket_pairs(made.keys_K[order], documents_K[order], 0, 4)
    contract([(pairs_P2[:, 0], pairs_P2[:, 1])])
    packing = pack(np.array([3, 5]), 4)
    for dtype in (np.uint16, np.uint32):
        stream_N = np.arange(8, dtype=dtype)
        stream_N.flags.writeable = False  # as a mapped file is
        list(packed_rows(packing, stream_N, np.array([0, 3]), 4, 0))


if __name__ == "__main__":
    compile_loops()
