from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasketch import MinHash

from tasks.corpus.components import connected_components
from tasks.corpus.dedup import DedupParams, dedup
from tasks.corpus.minhash import SCHEME, bands, jaccard, shingles, signature
from tasks.records import record_id
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import StageError

WORDS = [f"word{i}" for i in range(2000)]


def prose(seed: int, length: int = 200) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def changed(text: str, every: int) -> str:
    return " ".join("other" if i % every == every - 1 else word for i, word in enumerate(text.split()))


@pytest.fixture
def deduplicated(layer: Callable[..., Path], tmp_path: Path, resources: Resources):
    def run(*documents: str | dict[str, Any], parts: int = 1, **params: Any):
        clean = layer(*documents, parts=parts)
        return dedup(clean, tmp_path / "unique", DedupParams(**params), resources), tmp_path / "unique"

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
    assert entry["value"] == pytest.approx(jaccard(shingles(prose(1), 5), shingles(longer, 5)))
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
    report, _ = deduplicated(*links, min_jaccard=0.8)
    assert (report.kept, report.near_duplicates) == (1, 7)


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


@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_the_bytes_do_not_depend_on_partitions(
    layer: Callable[..., Path], tmp_path: Path, resources: Resources, partitions: int
) -> None:
    texts = [prose(i // 2) + (" tail" if i % 2 else "") for i in range(20)]
    clean = layer(*texts, parts=partitions)
    with spark_session("tests", resources) as spark:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        try:
            dedup(clean, tmp_path / "unique", DedupParams(), resources)
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


def test_signatures_are_those_of_datasketch() -> None:
    items = shingles(prose(1, 20_000), 5)  # more than one batch
    theirs = MinHash(num_perm=112, seed=1, scheme=SCHEME)
    for item in items:
        theirs.update(item.encode())
    assert (signature(items, 112, 1) == theirs.hashvalues).all()


def test_signatures_estimate_the_similarity() -> None:
    left, right = shingles(prose(1, 2000), 5), shingles(changed(prose(1, 2000), 60), 5)
    agreeing = (signature(left, 1024, 1) == signature(right, 1024, 1)).mean()
    assert agreeing == pytest.approx(jaccard(left, right), abs=0.05)


def test_bands_cut_the_whole_signature() -> None:
    values = signature(shingles(prose(1), 5), 112, 1)
    assert b"".join(bands(values, 14, 8)) == values.tobytes()


def test_chinese_is_shingled_by_character() -> None:
    assert shingles("人工智能是工程", 5) == {
        "人 工 智 能 是",
        "工 智 能 是 工",
        "智 能 是 工 程",
    }


def _labels(
    edges: list[tuple[str, str]], tmp_path: Path, resources: Resources, rounds: int = 50
) -> dict[str, str]:
    with spark_session("tests", resources) as spark:
        frame = spark.createDataFrame(edges, "left string, right string")
        labels, _ = connected_components(frame, tmp_path, rounds)
        return {row["id"]: row["component"] for row in labels.collect()}


def test_components_have_their_smallest_node_as_label(tmp_path: Path, resources: Resources) -> None:
    edges = [("b", "a"), ("c", "b"), ("z", "y"), ("y", "x"), ("x", "z")]
    expected = {"a": "a", "b": "a", "c": "a", "x": "x", "y": "x", "z": "x"}
    assert _labels(edges, tmp_path, resources) == expected


def test_a_long_chain_takes_few_rounds(tmp_path: Path, resources: Resources) -> None:
    edges = [(f"{i:04d}", f"{i + 1:04d}") for i in range(500)]
    labels = _labels(edges, tmp_path, resources, rounds=14)
    assert len(labels) == 501
    assert set(labels.values()) == {"0000"}


def test_components_that_do_not_converge_are_an_error(tmp_path: Path, resources: Resources) -> None:
    edges = [(f"{i:04d}", f"{i + 1:04d}") for i in range(200)]
    with pytest.raises(StageError, match="did not converge in 2 rounds"):
        _labels(edges, tmp_path, resources, rounds=2)


def test_no_edges_are_no_components(tmp_path: Path, resources: Resources) -> None:
    assert _labels([], tmp_path, resources) == {}
