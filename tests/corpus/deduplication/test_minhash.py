from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from datasketch import MinHash

from tasks.corpus.deduplication.minhash import SCHEME, band_keys, shingle_hash, signatures
from tasks.corpus.deduplication.segments import Features
from tasks.corpus.deduplication.shingles import shingle
from tasks.corpus.deduplication.similarity import similarities
from tasks.corpus.scoring.segments import segment_words

WORDS = [f"word{i}" for i in range(2000)]


def prose(seed: int, length: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def signed(*texts: str, permutations: int = 112, size: int = 5, seed: int = 1) -> np.ndarray:
    return signatures(shingle(segment_words(pa.array(texts, pa.string())), size), permutations, seed)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_signatures_are_those_of_datasketch(size: int) -> None:
    texts = [prose(1, 3000), prose(2, 4), "Straße, naïve! e.g. don't", "人工智能是工程"]
    shingles = []
    for text in texts:
        words = segment_words(pa.array([text]))
        raw = text.encode()
        found = [raw[a:b].decode() for a, b in zip(words.starts_W, words.ends_W, strict=True)]
        runs = [" ".join(found[i : i + size]) for i in range(max(1, len(found) - size + 1))]
        shingles.append(set(runs))
    for row, items in zip(signed(*texts, size=size), shingles, strict=True):
        theirs = MinHash(num_perm=112, seed=1, scheme=SCHEME, hashfunc=shingle_hash)
        for item in items:
            theirs.update(item.encode())
        assert (row == theirs.hashvalues).all()


def test_signatures_can_be_loaded_in_datasketch() -> None:
    one, two = signed(prose(1, 300), prose(1, 300) + " and more")
    left, right = (
        MinHash(num_perm=112, seed=1, scheme=SCHEME, hashfunc=shingle_hash, hashvalues=row)
        for row in (one, two)
    )
    assert left.jaccard(right) == pytest.approx((one == two).mean())


def test_signatures_estimate_the_similarity() -> None:
    words = prose(1, 2000).split()
    other = " ".join("other" if i % 60 == 59 else word for i, word in enumerate(words))
    one, two = signed(" ".join(words), other, permutations=1024)
    both = shingle(segment_words(pa.array([" ".join(words), other])), 5)
    documents = Features.back_to_back(both.hashes_S, both.offsets_D1)
    (true,) = similarities(documents, np.array([0]), np.array([1]), "jaccard")
    assert (one == two).mean() == pytest.approx(true, abs=0.05)


def test_texts_share_the_keys_of_the_bands_in_which_they_agree() -> None:
    one, two = signed(prose(1, 300), prose(1, 290))
    keys = band_keys(np.stack([one, two]), 14)
    equal = (one.reshape(14, 8) == two.reshape(14, 8)).all(axis=1)
    assert 0 < equal.sum() < 14
    assert ((keys[0] == keys[1]) == equal).all()


def test_a_key_names_its_band() -> None:
    keys = band_keys(np.full((1, 112), 7, np.uint32), 14)
    assert len(set(keys[0].tolist())) == 14
