from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tasks.corpus.dedup import DedupParams, dedup
from tasks.corpus.deduplication.minhash import signatures
from tasks.corpus.deduplication.shingles import shingle
from tasks.corpus.scoring.segments import segment_words
from tasks.records import record_id
from tasks.resources import Resources
from tasks.stage import StageError

# Whatever shares a fifth of its shingles is compared.
WIDE: dict[str, Any] = {"bands": 60, "rows": 2, "min_similarity": 0.6}
WORDS = [f"word{i}" for i in range(2000)]


def prose(seed: int, length: int = 200) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


@pytest.fixture
def months(layer: Callable[..., Path], tmp_path: Path, resources: Resources):
    """Deduplicates the documents of a month against the index that the month before left."""
    (tmp_path / "month-0").mkdir()
    seen = iter(range(1, 99))

    def run(*documents: str | dict[str, Any], parts: int = 1, **params: Any):
        number = next(seen)
        clean = layer(*documents, name=f"clean-{number}", parts=parts)
        out = tmp_path / f"month-{number}"
        return dedup(clean, tmp_path / f"month-{number - 1}", out, DedupParams(**params), resources), out

    return run


def texts_of(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(row["text"] for row in rows)


def test_what_an_earlier_month_kept_stays_and_what_is_like_it_goes(months, documents_of, ledger_of) -> None:
    first, exact = prose(1), prose(2)
    months(first, exact, prose(3))
    longer = {"text": f"{first} and a little more", "origin": "later"}
    report, layer = months(longer, {"text": exact.upper(), "origin": "again"}, prose(4))
    assert texts_of(documents_of(layer)) == [prose(4)]
    assert report.indexed_before == 3
    entries = {entry["rule"]: entry["detail"] for entry in ledger_of(layer)}
    assert entries == {
        "near_duplicate": record_id("docs", "docs.jsonl:1", first),
        "exact_duplicate": record_id("docs", "docs.jsonl:2", exact),
    }


def test_a_third_month_is_compared_with_both_before(months, documents_of) -> None:
    months(prose(1), prose(2))
    months(prose(3), prose(4))
    report, layer = months(prose(1) + " x", prose(3) + " x", prose(5))
    assert texts_of(documents_of(layer)) == [prose(5)]
    assert report.indexed_before == 4


def test_a_new_document_that_joins_two_earlier_ones_removes_neither(months, ledger_of) -> None:
    words = prose(1, 260).split()
    ends = [" ".join(words[:200]), " ".join(words[60:260])]  # half of their shingles are shared
    months(*ends, **WIDE)
    report, layer = months(" ".join(words[30:230]), **WIDE)
    assert (report.removed, report.verified_pairs) == (1, 2)
    (entry,) = ledger_of(layer)
    assert entry["detail"] in {record_id("docs", f"docs.jsonl:{i + 1}", ends[i]) for i in range(2)}
    again, _ = months("something else entirely", **WIDE)
    assert again.indexed_before == 2


def test_months_keep_as_many_as_one_run_over_all_of_them(months, layer, tmp_path, resources) -> None:
    texts = [prose(i // 3) + [" a b c", " d e f", " g h i"][i % 3] for i in range(90)]
    random.Random(0).shuffle(texts)
    kept = [months(*texts[start : start + 30], parts=2)[0].kept for start in (0, 30, 60)]
    whole = layer(*texts, name="whole")
    report = dedup(whole, tmp_path / "month-0", tmp_path / "all", DedupParams(), resources)
    assert sum(kept) == report.kept == 30


def test_documents_that_went_are_not_in_the_index(months) -> None:
    report, layer = months(prose(1), prose(1) + " x", prose(2))
    (entry,) = json.loads((layer / "index/index.json").read_text())["methods"]["minhash"]["segments"]
    assert entry["documents"] == report.kept == 2
    rows = np.load(layer / f"index/minhash/{entry['name']}.rows.npy")
    assert np.bincount(rows).tolist() == [15, 15]  # 14 bands, and the content as a whole


def test_signatures_of_the_index_are_those_of_its_documents(months, documents_of) -> None:
    _, layer = months(prose(1), prose(1) + " x", prose(2))
    (path,) = (layer / "index/minhash").glob("*.signatures.npy")
    texts = pa.array([row["text"] for row in documents_of(layer)])
    assert np.load(path).tolist() == signatures(shingle(segment_words(texts), 5), 112, 1).tolist()


def test_no_index_is_written_if_none_is_asked_for(months) -> None:
    _, layer = months(prose(1), keep_index=False)
    assert not (layer / "index").exists()


@pytest.mark.parametrize(
    ("name", "value"), [("shingle_words", 4), ("bands", 20), ("rows", 7), ("seed", 2)], ids=str
)
def test_an_index_of_other_parameters_is_refused(months, name: str, value: int) -> None:
    months(prose(1))
    message = f"was made with {name} = {getattr(DedupParams(), name)}, but dedup has {name} = {value}"
    with pytest.raises(StageError, match=message):
        months(prose(2), **{name: value})


def test_an_index_of_another_version_is_refused(months, tmp_path: Path) -> None:
    months(prose(1))
    path = tmp_path / "month-1/index/index.json"
    content = json.loads(path.read_text())
    content["methods"]["minhash"]["probe"] = "0" * 16
    path.write_text(json.dumps(content))
    with pytest.raises(StageError, match="by a version that cuts or hashes texts otherwise"):
        months(prose(2))


def damaged(path: Path, how: str) -> None:
    if how == "missing":
        path.unlink()
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-8])
    else:
        content = bytearray(path.read_bytes())
        content[-5] ^= 1
        path.write_bytes(content)


@pytest.mark.parametrize("how", ["missing", "cut", "flipped"])
@pytest.mark.parametrize("what", ["documents", "keys", "rows", "features"])
def test_a_damaged_file_of_the_index_is_named(months, tmp_path: Path, what: str, how: str) -> None:
    months(prose(1))
    (path,) = (tmp_path / "month-1/index/minhash").glob(f"*.{what}.npy")
    damaged(path, how)
    with pytest.raises(StageError, match=f"{path} is {'missing' if how == 'missing' else 'damaged'}"):
        months(prose(1) + " x")
    assert not (tmp_path / "month-2").exists()


def test_a_broken_manifest_is_named(months, tmp_path: Path) -> None:
    months(prose(1))
    (tmp_path / "month-1/index/index.json").write_text('{"methods": 3}')
    with pytest.raises(StageError, match=r"index\.json is no index of documents: methods"):
        months(prose(2))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"documents": 7}, r"says that segment 0000-000000 has 7 documents, but its files have 1"),
        ({"documents": -1}, r"is no index of documents: methods\.minhash\.segments\.0\.documents"),
        ({"bytes": {}}, r"does not tell of its documents, features, keys, rows"),
        ({"sha256": {}}, r"does not tell of its documents, keys, rows"),
        ({"name": "../../0"}, r"is no index of documents: methods\.minhash\.segments\.0\.name"),
    ],
    ids=["too many", "less than none", "no sizes", "no hashes", "elsewhere"],
)
def test_a_manifest_that_does_not_fit_its_files_is_refused(
    months, tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    months(prose(1))
    path = tmp_path / "month-1/index/index.json"
    content = json.loads(path.read_text())
    content["methods"]["minhash"]["segments"][0] |= change
    path.write_text(json.dumps(content))
    with pytest.raises(StageError, match=told):
        months(prose(1) + " x")


def test_an_index_that_is_tracked_but_not_there_is_not_passed_over(months, tmp_path: Path) -> None:
    months(prose(1))
    shutil.rmtree(tmp_path / "month-1/index")
    (tmp_path / "month-1/index.dvc").write_text("outs: []\n")
    with pytest.raises(StageError, match="dvc checkout"):
        months(prose(2))
