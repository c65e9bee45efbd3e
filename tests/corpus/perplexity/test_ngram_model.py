from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tasks.corpus.perplexity.kneser_ney import train
from tasks.corpus.perplexity.ngram_model import (
    NgramModel,
    load_ngram_model,
    log_probabilities,
    save_ngram_model,
    score,
)
from tasks.corpus.perplexity.ngram_table import build_table, find_rows
from tasks.corpus.perplexity.trusted_words import TrustedWords, merge_trusted, trusted_words
from tasks.corpus.scoring.segments import Words, segment_words
from tasks.stage import StageError

PLENTY = 10**6
TEXTS = [
    "The mill grinds the grain, and the stream turns the wheel of the mill.",
    "Grain comes to the mill in the autumn; the miller grinds the grain into flour.",
    "The miller lives by the stream. The wheel turns by day and the wheel rests by night.",
    "Flour goes from the mill to the baker, and the baker bakes the bread of the town.",
    "The town eats the bread, and the miller eats the bread too.",
    "The stream freezes in the winter and the wheel of the mill rests.",
]


def words(documents: Sequence[Sequence[int]]) -> Words:
    """Documents of words that are given by their hashes."""
    offsets = np.cumsum([0, *map(len, documents)])
    hashes = np.array([word for document in documents for word in document], dtype=np.uint64)
    return Words(hashes, np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64), offsets)


def of_texts(texts: Sequence[str]) -> Words:
    return segment_words(pa.array(texts, pa.string()))


def trusted(given: Words, max_words: int = PLENTY) -> TrustedWords:
    return trusted_words(given, ["en"] * (len(given.offsets_D1) - 1), max_words=max_words)["en"]


def random_documents(seed: int, words: int = 12) -> list[list[int]]:
    """Zipf's frequencies: enough n-grams counted once, twice, thrice and four times."""
    random = np.random.default_rng(seed)
    p = 1 / np.arange(1, words + 1)
    return [(random.choice(words, 15, p=p / p.sum()) + 7).tolist() for _ in range(40)]


def log_p(model: NgramModel, context: Sequence[int], word: int) -> float:
    """ln p(word | the words from the beginning of a document)."""
    document = [*context, word]
    return float(log_probabilities(model, np.array(document, np.uint64), np.array([0, len(document)]))[-1])


def reference(documents: list[list[int]], order: int, minimum: int) -> Callable[[Sequence[int]], list[float]]:
    """Chen and Goodman's interpolated modified Kneser-Ney, as the paper defines it."""
    seen = Counter(itertools.chain.from_iterable(documents))
    known = {word for word, count in seen.items() if count >= minimum}
    rare = max(1, len(seen) - len(known))
    raw: list[Counter] = [Counter() for _ in range(order + 1)]
    for document in documents:
        tokens = ["<s>", *(word if word in known else "<unk>" for word in document), "</s>"]
        for n in range(1, order + 1):
            raw[n].update(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
    counts: list[Counter] = [Counter() for _ in range(order + 1)]
    counts[order] = raw[order]
    for n in range(1, order):
        for gram in raw[n]:
            before = {longer[0] for longer in raw[n + 1] if longer[1:] == gram}
            counts[n][gram] = len(before) if gram[0] != "<s>" else raw[n][gram]
    del counts[1][("<s>",)]
    discounts = []
    for n in range(1, order + 1):
        n1, n2, n3, n4 = (sum(count == k for count in counts[n].values()) for k in (1, 2, 3, 4))
        d = [0.0, 0.5, 1.0, 1.5]
        if n1 and n2 and n3:
            y = n1 / (n1 + 2 * n2)
            found = [0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
            if all(0 < found[k] <= k for k in (1, 2, 3)):
                d = found
        discounts.append(d)
    followers: list[dict] = [defaultdict(dict) for _ in range(order + 1)]
    for n in range(1, order + 1):
        for gram, count in counts[n].items():
            followers[n][gram[:-1]][gram[-1]] = count

    def p(word, context: tuple) -> float:
        n = len(context) + 1
        lower = p(word, context[1:]) if context else 1 / (len(known) + 2)
        after = followers[n].get(context)
        if not after:
            return lower
        d = discounts[n - 1]
        total, count = sum(after.values()), after.get(word, 0)
        saved = sum(d[min(3, other)] for other in after.values())
        return (count - d[min(3, count)]) / total + saved / total * lower

    def of_document(document: Sequence[int]) -> list[float]:
        tokens = ["<s>", *(word if word in known else "<unk>" for word in document)]
        return [
            p(tokens[i], tuple(tokens[max(0, i - order + 1) : i])) / (rare if tokens[i] == "<unk>" else 1)
            for i in range(1, len(tokens))
        ]

    return of_document


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("minimum_count", [1, 2, 30])
def test_probabilities_are_those_of_the_paper(order, minimum_count):
    documents = random_documents(1)
    model = train(trusted(words(documents)), order=order, minimum_count=minimum_count)
    of_document = reference(documents, order, minimum_count)
    for document in [documents[3], *random_documents(2)[:5], [7, 99, 99, 7, 8, 99], [1]]:
        found = log_probabilities(model, np.array(document, np.uint64), np.array([0, len(document)]))
        assert np.exp(found) == pytest.approx(of_document(document), rel=1e-5)


def test_a_text_too_small_for_estimated_discounts_has_fixed_ones():
    documents = [[1, 2, 3], [1, 2, 4]]
    model = train(trusted(words(documents)), order=3, minimum_count=1)
    assert model.header.discounts[2] == [0.5, 1.0, 1.5]
    assert log_p(model, [1, 2], 3) == pytest.approx(
        math.log(reference(documents, 3, 1)([1, 2, 3])[-1]), abs=1e-5
    )


@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize("minimum_count", [1, 3])
@pytest.mark.parametrize(
    "context", [[], [7], [7, 8], [9, 7, 7, 8], [99], [7, 99], [99, 98, 97], [8, 7, 99, 7]]
)
def test_probabilities_of_all_that_may_follow_sum_to_1(order, minimum_count, context):
    documents = random_documents(3, words=30)
    model = train(trusted(words(documents)), order=order, minimum_count=minimum_count)
    seen = Counter(itertools.chain.from_iterable(documents))
    following = [math.exp(log_p(model, context, word)) for word in seen]
    if minimum_count == 1:
        following.append(math.exp(log_p(model, context, 10**9)))  # the unknown word
    assert len(following) == model.vocabulary - 1
    assert min(following) > 0
    end = 1 - sum(following)
    assert 0 < end < 0.5
    assert end == pytest.approx(end_probability(model, context), rel=1e-3)


def end_probability(model: NgramModel, context: Sequence[int]) -> float:
    """exp of what the tables say of the end, which is no word that a document can hold."""
    marks = len(model.levels[0]) - 3
    levels = list(model.levels)
    tokens = [marks, *(find_rows(levels[0], marks - 1, np.array(context, np.uint64), marks + 2))]
    log_p, suffix = float(levels[0]["log_probability"][marks + 1]), marks + 1
    for n in range(2, model.header.order + 1):
        if len(tokens) < n - 1:
            break
        row = tokens[-(n - 1)]
        for k, token in enumerate(tokens[len(tokens) - n + 2 :], 2):
            row = look_up(levels[k - 1], row, token) if row >= 0 else -1
        if row < 0:
            break
        suffix = look_up(levels[n - 1], row, marks + 1)
        log_p = (
            float(levels[n - 1]["log_probability"][suffix])
            if suffix >= 0
            else log_p + float(levels[n - 2]["log_backoff"][row])
        )
    return math.exp(log_p)


def look_up(level: np.ndarray, row: int, token: int) -> int:
    key = np.array([((int(row) + 1) << 32) | int(token)], dtype=np.uint64)
    return int(find_rows(level, len(level) - 1, key, -1)[0])


def test_perplexity_is_per_word_and_of_each_document_alone():
    model = train(trusted(of_texts(TEXTS)))
    given = of_texts([TEXTS[0], "", "The wheel.", "…!"])
    log_p_W = log_probabilities(model, given.hashes_W, given.offsets_D1).astype(np.float64)
    first = given.offsets_D1[1]
    expected = [np.exp(-log_p_W[:first].mean()), np.nan, np.exp(-log_p_W[first:].mean()), np.nan]
    np.testing.assert_allclose(score(model, given), expected)
    assert score(model, of_texts(["The wheel."]))[0] == score(model, given)[2]
    assert len(score(model, of_texts([]))) == 0


def test_trusted_like_text_scores_better_than_shuffled_words_and_those_better_than_unknown_words():
    model = train(trusted(of_texts(TEXTS * 3)), minimum_count=4)
    like, shuffled, unknown = score(
        model,
        of_texts(
            [
                "the miller grinds the grain and the wheel of the mill turns",
                "wheel grain the the and miller turns mill of the grinds the",
                "xq zzv qqp brrt xq zzv fnord blarg qqp wub wub wub",
            ]
        ),
    )
    assert like < shuffled < unknown


def test_the_order_and_the_parts_in_which_trusted_documents_come_do_not_show(tmp_path: Path):
    documents = random_documents(4)
    documents.append(documents[0])
    whole = trusted(words(documents), max_words=200)
    assert whole.words == 200
    random = np.random.default_rng(0)
    for attempt in range(5):
        shuffled = [documents[i] for i in random.permutation(len(documents))]
        cut = int(random.integers(1, len(documents)))
        parts = [trusted(words(part), max_words=200) for part in (shuffled[:cut], shuffled[cut:])]
        merged = merge_trusted(parts, max_words=200)
        save_ngram_model(train(merged), tmp_path / str(attempt))
        for name in ("model.json", "1.npy", "2.npy", "3.npy"):
            assert (tmp_path / str(attempt) / name).read_bytes() == (tmp_path / "0" / name).read_bytes()
        np.testing.assert_array_equal(merged.hashes_W, whole.hashes_W)


def test_copies_of_one_document_that_parts_cut_differently_make_the_same_sample():
    document, other = list(range(1, 60)), [70, 71]
    whole = trusted(words([document, document, document, other]), max_words=100)
    parts = [trusted(words(part), max_words=100) for part in ([document, document], [other, document])]
    np.testing.assert_array_equal(merge_trusted(parts[::-1], max_words=100).hashes_W, whole.hashes_W)


def test_one_document_longer_than_the_bound_is_cut():
    sample = trusted(words([list(range(1, 500))]), max_words=100)
    assert sample.words == 100
    assert train(sample, minimum_count=1).header.words == 100


def test_languages_are_kept_apart_and_documents_without_one_or_without_words_left_out():
    found = trusted_words(
        words([[1, 2], [3], [4], [], [5]]), ["en", "de", None, "fr", "en"], max_words=PLENTY
    )
    assert {language: sorted(sample.hashes_W.tolist()) for language, sample in found.items()} == {
        "en": [1, 2, 5],
        "de": [3],
    }


def test_a_word_whose_hash_is_0_is_a_word_like_any_other():
    model = train(trusted(words([[0, 5, 0, 5], [0, 5]])), minimum_count=1)
    assert model.header.known_words == 2
    assert log_p(model, [0], 5) > log_p(model, [0], 0)


def test_a_text_whose_words_are_all_rare_still_makes_a_model():
    model = train(trusted(words([list(range(1, 10))])), minimum_count=2)
    assert (model.header.known_words, model.header.rare_words) == (0, 9)
    assert np.isfinite(score(model, words([[1, 2, 77]])))[0]


def test_no_words_make_no_model():
    empty = TrustedWords(np.empty(0, np.uint64), np.empty(0, np.uint64), np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="at least one word"):
        train(empty)


def test_a_model_comes_back_from_its_files_mapped_and_scores_the_same(tmp_path: Path):
    model = train(trusted(of_texts(TEXTS)), order=4)
    save_ngram_model(model, tmp_path / "en")
    again = load_ngram_model(tmp_path / "en")
    assert again.header == model.header
    assert not again.levels[0].flags.owndata
    np.testing.assert_array_equal(score(again, of_texts(TEXTS)), score(model, of_texts(TEXTS)))


@pytest.mark.parametrize("name", ["model.json", "1.npy", "3.npy"])
@pytest.mark.parametrize("damage", ["missing", "empty", "torn", "other"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, damage: str):
    save_ngram_model(train(trusted(of_texts(TEXTS))), tmp_path)
    path = tmp_path / name
    if damage == "missing":
        path.unlink()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "torn":
        path.write_bytes(path.read_bytes()[:-7])
    elif name == "model.json":
        path.write_text("{}")
    else:
        np.save(path, np.zeros(16))
    with pytest.raises(StageError, match=name):
        load_ngram_model(tmp_path)


def test_a_look_up_in_a_table_without_an_empty_row_ends():
    full = build_table(np.arange(1, 5, dtype=np.uint64))
    full["key"] = 3
    assert find_rows(full, len(full) - 1, np.array([9], dtype=np.uint64), -1)[0] == -1


def test_a_header_says_what_the_model_was_made_of():
    header = train(trusted(words([[1, 2, 1, 2], [1, 3]])), order=2, minimum_count=2).header
    assert replace_discounts(header) == {
        "order": 2,
        "minimum_count": 2,
        "documents": 2,
        "words": 6,
        "known_words": 2,
        "rare_words": 1,
        "ngrams": [5, 6],
    }


def replace_discounts(header) -> dict:
    return {key: value for key, value in header.model_dump().items() if key != "discounts"}
