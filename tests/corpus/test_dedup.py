from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
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


def test_one_document_stays(deduplicated) -> None:
    report, _ = deduplicated("alone")
    assert (report.kept, report.largest_cluster, report.candidate_pairs) == (1, 1, 0)


def test_a_layer_without_documents_is_one_without_documents(deduplicated, documents_of) -> None:
    report, layer = deduplicated()
    assert (report.records_in, report.kept) == (0, 0)
    assert documents_of(layer) == []


def test_of_equal_documents_the_one_with_the_smallest_id_stays(deduplicated, documents_of) -> None:
    report, layer = deduplicated(*[prose(1)] * 40, parts=3)
    assert (report.kept, report.exact_duplicates, report.candidate_pairs) == (1, 39, 0)
    (kept,) = documents_of(layer)
    assert kept["id"] == min(record_id("docs", f"docs.jsonl:{i + 1}", prose(1)) for i in range(40))


def test_copies_do_not_hide_what_is_near_to_them(deduplicated) -> None:
    # A bucket of many copies is not a large one: the best of them stands for all.
    texts = [prose(1)] * 20 + [f"{prose(1)} {WORDS[i]} {WORDS[i + 1]}" for i in range(3)]
    report, _ = deduplicated(*texts, all_pairs_up_to=4)
    assert (report.kept, report.candidate_pairs) == (1, 6)


def test_an_id_that_is_none_is_named(layer: Callable[..., Path], earlier, tmp_path, resources) -> None:
    clean = layer("text")
    (path,) = (clean / "documents").glob("*.parquet")
    rows = pq.read_table(path).to_pylist()
    pq.write_table(pa.Table.from_pylist([rows[0] | {"id": "seven"}], pq.read_schema(path)), path)
    with pytest.raises(StageError, match="'seven' is no id or content hash of a document"):
        dedup(clean, earlier, tmp_path / "unique", DedupParams(), resources)


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
    unique = tmp_path / "unique"
    digests = {
        str(path.relative_to(unique)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in unique.rglob("*.*")
        if path.is_file()
    }
    assert {Path(name).parts[0] for name in digests} == {"documents", "ledger", "index", "lineage.json"}
    expected = tmp_path.parent / "expected-dedup.json"
    if expected.exists():
        assert json.loads(expected.read_text()) == digests
    else:
        expected.write_text(json.dumps(digests))
