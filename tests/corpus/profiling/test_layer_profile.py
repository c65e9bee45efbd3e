"""The profile of one small layer, counted by hand."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from tasks.corpus.profiling.distinct import standard_error
from tasks.corpus.profiling.histograms import LENGTH_EDGES
from tasks.corpus.profiling.results import LayerProfile
from tasks.corpus.profiling.sketch import Sketch, add_batch
from tasks.corpus.profiling.summary import layer_profile
from tasks.records import arrow_schema, content_hash

TALES: list[dict[str, Any]] = [
    {"text": "the mill by the river", "source": "tales", "language": "en", "domain": "literature"},
    {"text": "le moulin au bord", "source": "tales", "language": "fr", "domain": "literature"},
    {"text": "x = 1", "source": "programs", "language": "zxx", "domain": "technical", "kind": "code"},
    {"text": "水车", "source": "tales", "language": "und", "domain": "literature"},
]


def profiled(
    *documents: str | dict[str, Any], size: int = 4096, minimum_share: float = 0.01, batches: int = 1
) -> LayerProfile:
    """The profile of documents, each given as text or as columns."""
    rows = []
    for document in documents:
        given = {"text": document} if isinstance(document, str) else document
        usual = {"source": "docs", "kind": "book", "domain": "general", "language": "en", "signals": {}}
        rows.append({**usual, "content": content_hash(given["text"]), **given})
    known: dict[str, Sketch] = {}
    for number in range(batches):
        add_batch(known, pa.RecordBatch.from_pylist(rows[number::batches], arrow_schema()), size)
    return layer_profile(known, size, minimum_share)


def test_amounts_are_those_of_the_text():
    found = profiled(*TALES)
    assert found.total.model_dump() == {"documents": 4, "characters": 45, "words": 13, "bytes": 49}
    assert found.sources["tales"].model_dump() == {
        "documents": 3, "characters": 40, "words": 11, "bytes": 44,
        "document_share": 0.75, "character_share": 0.888889,
    }  # fmt: skip
    assert {kind: part.documents for kind, part in found.kinds.items()} == {"book": 3, "code": 1}
    assert {name: part.words for name, part in found.domains.items()} == {
        "literature": 11,
        "technical": 2,
    }
    assert {name: part.documents for name, part in found.languages.items()} == {
        "en": 1, "fr": 1, "und": 1, "zxx": 1,
    }  # fmt: skip
    assert list(found.sources_by_language["tales"]) == ["en", "fr", "und"]
    assert found.sources_by_language["programs"]["zxx"].words == 2


def test_coverage_is_the_evenness_of_characters_and_names_what_is_rare():
    found = profiled(*TALES, minimum_share=0.12).coverage
    entropy = -sum(part / 45 * math.log(part / 45) for part in (40, 5))
    assert found["sources"].entropy == pytest.approx(entropy, abs=1e-4)
    assert found["sources"].effective == pytest.approx(math.exp(entropy), abs=1e-4)
    assert found["languages"].rare == ["und", "zxx"]


def test_lengths_are_binned_by_kind():
    found = profiled(*TALES, "").lengths
    assert {LENGTH_EDGES[i]: n for i, n in enumerate(found["book"]) if n} == {0: 1, 2: 1, 10: 1, 18: 1}
    assert sum(found["code"]) == 1


def test_ngrams_are_counted_within_documents():
    found = profiled("the mill the mill", "the mill").diversity.ngrams
    assert {n: (found[n].distinct, found[n].total) for n in (1, 2, 3)} == {1: (2, 6), 2: (2, 4), 3: (2, 2)}
    assert found[2].distinct_share == 0.5
    assert found[3].single_share == 1.0
    assert found[1].distinct_of_100k is None


def test_ngrams_that_sources_share_are_counted_once_in_the_layer():
    found = profiled({"text": "the old mill", "source": "a"}, {"text": "the new mill", "source": "b"})
    assert found.diversity.ngrams[1].distinct == 4
    assert [found.diversity_by_source[name].ngrams[1].distinct for name in "ab"] == [3, 3]


@pytest.mark.parametrize("batches", [1, 3])
def test_distinct_ngrams_beyond_the_sketch_are_within_its_error(batches: int):
    texts = [" ".join(f"w{i}" for i in range(start, start + 2_000)) for start in (0, 1_000, 2_000)]
    estimate = profiled(*texts, size=512, batches=batches).diversity.ngrams[1].distinct
    assert estimate != 4_000
    assert abs(estimate / 4_000 - 1) < 4 * standard_error(512)


def test_batches_do_not_show():
    texts = [" ".join(f"w{i * j % 301}" for j in range(200)) for i in range(30)]
    documents = [
        {"text": text, "source": f"s{i % 3}", "signals": {"toxicity": i / 30}} for i, text in enumerate(texts)
    ]
    whole = profiled(*documents, size=64)
    assert profiled(*documents, size=64, batches=7) == whole
    assert profiled(*reversed(documents), size=64, batches=4) == whole


def test_topics_spread_from_one_text_to_texts_without_a_word_in_common():
    apart = [" ".join(f"{topic}{i}" for i in range(200)) for topic in ("river", "grain", "stone", "wheel")]
    assert profiled(*apart).diversity.topic_spread == pytest.approx(1, abs=0.05)
    assert profiled(*[apart[0]] * 4).diversity.topic_spread == pytest.approx(0, abs=0.001)
    assert profiled(apart[0], "").diversity.topic_spread is None


def test_noise_that_is_left_is_told():
    documents = [
        {"text": "a mill", "signals": {"replaced_characters": 3.0}},
        {"text": "a mill", "origin": "elsewhere"},
        {"text": "", "language": "und"},
        {"text": "unknown", "language": None},
    ]
    noise = profiled(*documents).noise
    assert noise.replaced_characters == 3
    assert noise.empty_share == 0.25
    assert noise.undetermined_share == round(1 / 3, 6)
    assert noise.duplicate_share == 0.25


def test_quantiles_of_signals_are_those_of_the_documents_that_have_them():
    documents = [{"text": f"mill {i}", "signals": {"toxicity": i / 100}} for i in range(1, 21)]
    found = profiled(*documents, "no signals").signals
    assert found["toxicity"].model_dump() == {"documents": 20, "p5": 0.01, "p50": 0.1, "p95": 0.19}
    assert "perplexity" not in found


def test_a_layer_that_was_not_scored_has_amounts_and_no_signals():
    raw = [{"text": "the mill", "language": None, "language_score": None}] * 2
    found = profiled(*raw)
    assert found.total.words == 4
    assert list(found.languages) == ["unknown"]
    assert found.signals == {}
    assert found.noise.undetermined_share == 0
    assert found.coverage["languages"].effective == 0


def test_a_document_without_language_is_counted_as_unknown():
    found = profiled({"text": "the mill", "language": None}, "two")
    assert {name: part.documents for name, part in found.languages.items()} == {"en": 1, "unknown": 1}
    assert found.coverage["languages"].effective == 1


def test_nothing_is_all_zero():
    found = profiled(batches=0)
    assert found.total.documents == 0
    assert found.sources == {}
    assert found.coverage["sources"].effective == 0
    assert found.diversity.ngrams[1].distinct_share is None


def test_a_document_of_nothing_but_a_letter_a_million_times_over_is_counted():
    found = profiled("a" * 2**20, "a " * 2**20)
    assert found.total.words == 2**20 + 1
    assert found.diversity.ngrams[3].distinct == 1
