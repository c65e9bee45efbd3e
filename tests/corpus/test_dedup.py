from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.dedup import DedupParams, dedup
from tasks.records import record_id
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import StageError

WORDS = [f"word{i}" for i in range(2000)]


def prose(seed: int, length: int = 200) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def jaccard(left: str, right: str, size: int = 5) -> float:
    one, other = (
        {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}
        for words in (left.split(), right.split())
    )
    return len(one & other) / len(one | other)


def changed(text: str, every: int) -> str:
    return " ".join("other" if i % every == every - 1 else word for i, word in enumerate(text.split()))


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    folder = tmp_path / "earlier"
    folder.mkdir()
    return folder


@pytest.fixture
def deduplicated(layer: Callable[..., Path], earlier: Path, tmp_path: Path, resources: Resources):
    def run(*documents: str | dict[str, Any], parts: int = 1, **params: Any):
        clean = layer(*documents, parts=parts)
        return dedup(
            clean, earlier, tmp_path / "unique", DedupParams(**params), resources
        ), tmp_path / "unique"

    return run


def kept_texts(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(row["text"] for row in rows)


def test_short_texts_are_one_shingle(deduplicated, documents_of) -> None:
    report, layer = deduplicated("cat", "dog", "cat")
    assert kept_texts(documents_of(layer)) == ["cat", "dog"]
    assert report.exact_duplicates == 1


def test_texts_without_words_are_not_alike(deduplicated) -> None:
    assert deduplicated("!!!", "???", "")[0].kept == 3


def test_case_and_white_space_do_not_hide_an_exact_duplicate(deduplicated, ledger_of) -> None:
    report, layer = deduplicated("Some  Text\n", "some text", parts=2)
    assert report.kept == 1
    (entry,) = ledger_of(layer)
    assert (entry["rule"], entry["value"], entry["detail"]) == (
        "exact_duplicate",
        1.0,
        record_id("docs", "docs.jsonl:1", "Some  Text\n"),
    )


def test_of_near_duplicates_the_longest_stays_and_the_ledger_has_the_true_similarity(
    deduplicated, documents_of, ledger_of
) -> None:
    longer = prose(1) + " " + prose(2, 20)
    report, layer = deduplicated(prose(1), longer, prose(3))
    assert kept_texts(documents_of(layer)) == sorted([longer, prose(3)])
    (entry,) = ledger_of(layer)
    assert entry["rule"] == "near_duplicate"
    assert entry["value"] == pytest.approx(jaccard(prose(1), longer))
    assert entry["detail"] == record_id("docs", "docs.jsonl:2", longer)
    assert report.verified_pairs == 1


def test_a_candidate_below_the_threshold_is_not_removed(deduplicated) -> None:
    # One row a band makes candidates of whatever shares a minimum.
    report, _ = deduplicated(prose(1), changed(prose(1), 20), bands=50, rows=1)
    assert report.candidate_pairs == 1
    assert report.kept == 2


def test_a_chain_is_one_group_and_one_of_it_is_kept(deduplicated) -> None:
    words = prose(1, 400).split()
    links = [" ".join(words[i * 10 : i * 10 + 300]) for i in range(8)]
    report, _ = deduplicated(*links, min_similarity=0.8)
    assert (report.kept, report.near_duplicates) == (1, 7)


def test_what_a_longer_document_contains_is_a_duplicate_by_containment(deduplicated, documents_of) -> None:
    longer = prose(1) + " " + prose(2, 100)
    assert 0.6 < jaccard(prose(1), longer) < 0.7
    report, layer = deduplicated(prose(1), longer, bands=28, rows=4, measure="containment")
    assert kept_texts(documents_of(layer)) == [longer]
    assert report.near_duplicates == 1


def test_a_second_run_to_the_same_place_compares_its_own_documents(
    layer: Callable[..., Path], earlier: Path, tmp_path: Path, resources: Resources
) -> None:
    # Workers outlive a run: what they held of the first must not be taken for the second's.
    for number in range(2):
        texts = [
            prose(10 * number + i // 2, 200 + 50 * number) + (" tail" if i % 2 else "") for i in range(8)
        ]
        clean = layer(*texts, name=f"clean-{number}")
        report = dedup(clean, earlier, tmp_path / "unique", DedupParams(), resources)
        assert (report.kept, report.verified_pairs) == (4, 4)
        shutil.rmtree(tmp_path / "unique")


def test_a_hot_bucket_costs_a_star_and_not_all_pairs(deduplicated) -> None:
    texts = [prose(1) + "!" * i for i in range(60)]  # the same words, hence the same buckets
    report, _ = deduplicated(*texts, all_pairs_up_to=2, max_cluster_share=1.0, max_source_loss=1.0)
    assert report.kept == 1
    assert report.candidate_pairs == 59


def test_a_source_that_is_eaten_stops_the_stage(deduplicated, tmp_path: Path) -> None:
    boilerplate = prose(1)
    texts = [f"{boilerplate} {WORDS[i]}" for i in range(60)]
    other = [{"text": prose(100 + i), "source": "other"} for i in range(60)]
    with pytest.raises(StageError, match="source docs would lose 59 of its 60 documents"):
        deduplicated(*texts, *other, max_cluster_share=1.0)
    assert not (tmp_path / "unique").exists()


def test_a_cluster_that_is_the_corpus_stops_the_stage(deduplicated) -> None:
    texts = [f"{prose(1)} {WORDS[i]}" for i in range(60)] + [prose(100 + i) for i in range(60)]
    with pytest.raises(StageError, match="60 of 120 documents are one cluster"):
        deduplicated(*texts, max_source_loss=1.0)


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_the_bytes_do_not_depend_on_partitions(
    layer: Callable[..., Path], earlier: Path, tmp_path: Path, resources: Resources, partitions: int
) -> None:
    texts = [prose(i // 2) + (" tail" if i % 2 else "") for i in range(20)]
    clean = layer(*texts, parts=3)
    with spark_session("tests", resources) as spark:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        try:
            dedup(clean, earlier, tmp_path / "unique", DedupParams(), resources)
        finally:
            spark.conf.set("spark.sql.shuffle.partitions", "2")
    found = {path.name: path.read_bytes() for path in sorted((tmp_path / "unique").rglob("*.parquet"))}
    expected = tmp_path.parent / "expected-dedup"
    if expected.exists():
        assert {name: (expected / name).read_bytes() for name in found} == found
    else:
        expected.mkdir()
        for name, content in found.items():
            (expected / name).write_bytes(content)
