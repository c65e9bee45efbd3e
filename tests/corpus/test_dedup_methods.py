from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.dedup import DedupParams, dedup
from tasks.corpus.deduplication.semantic_method import SemanticParams, semantic_method
from tasks.records import record_id
from tasks.resources import Resources
from tasks.stage import StageError
from tests.corpus.deduplication.test_embeddings import WORDS as KNOWN
from tests.corpus.deduplication.test_embeddings import write_model

WORDS = [f"word{i}" for i in range(2000)]
TFIDF = {"tfidf": {"min_cosine": 0.9}}


def prose(seed: int, length: int = 200) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def shuffled(text: str, seed: int = 0) -> str:
    words = text.split()
    random.Random(seed).shuffle(words)
    return " ".join(words)


@pytest.fixture
def months(layer: Callable[..., Path], tmp_path: Path, resources: Resources):
    """Deduplicates the documents of a month against the index that the month before left."""
    (tmp_path / "month-0").mkdir()
    seen = iter(range(1, 99))

    def run(*documents: str, **params: Any):
        number = next(seen)
        given = [{"text": text, "origin": f"{number}:{place}"} for place, text in enumerate(documents)]
        clean = layer(*given, name=f"clean-{number}")
        out = tmp_path / f"month-{number}"
        earlier = tmp_path / f"month-{number - 1}"
        return dedup(clean, earlier, out, DedupParams.model_validate(params), resources), out

    return run


def test_documents_of_the_same_words_in_another_order_are_tfidf_duplicates(months, ledger_of) -> None:
    report, layer = months(prose(1), shuffled(prose(1)), prose(2), **TFIDF)
    assert (report.kept, report.near_duplicates) == (2, 1)
    (entry,) = ledger_of(layer)
    assert (entry["rule"], entry["threshold"]) == ("tfidf_duplicate", 0.9)
    assert entry["value"] == pytest.approx(1.0)


def test_by_shingles_alone_they_are_not(months) -> None:
    assert months(prose(1), shuffled(prose(1)), prose(2))[0].kept == 3


def test_what_stays_for_a_document_is_never_one_that_a_later_method_removes(months, ledger_of) -> None:
    texts = [prose(1), f"{prose(1)} one", f"{shuffled(prose(1))} one two"]
    report, layer = months(*texts, **TFIDF)
    assert report.removed_by_rule == {"near_duplicate": 1, "tfidf_duplicate": 1}
    kept = record_id("docs", "1:2", texts[2])
    assert {entry["detail"] for entry in ledger_of(layer)} == {kept}


def test_a_later_month_is_compared_by_words_too_which_weigh_what_they_did(months, ledger_of) -> None:
    months(prose(1), prose(2), **TFIDF)
    report, layer = months(
        shuffled(prose(1)) + " longer", *[prose(3) + f" {i}" * 60 for i in range(3)], **TFIDF
    )
    assert report.indexed_before == 2
    found = [entry for entry in ledger_of(layer) if entry["detail"] == record_id("docs", "1:0", prose(1))]
    assert [entry["rule"] for entry in found] == ["tfidf_duplicate"]
    third, _ = months(shuffled(prose(2), 5), **TFIDF)
    assert third.removed_by_rule == {"tfidf_duplicate": 1}


def test_an_index_without_the_method_is_refused(months) -> None:
    months(prose(1))
    with pytest.raises(StageError, match="has no documents indexed by tfidf, but by minhash"):
        months(prose(2), **TFIDF)


def test_an_index_of_another_bound_is_refused(months) -> None:
    months(prose(1), **TFIDF)
    with pytest.raises(StageError, match=r"made with min_cosine = 0\.9, but dedup has min_cosine = 0\.8"):
        months(prose(2), tfidf={"min_cosine": 0.8})


def test_a_damaged_table_of_words_is_named(months, tmp_path: Path) -> None:
    months(prose(1), **TFIDF)
    path = tmp_path / "month-1/index/tfidf/table.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(StageError, match=f"{path} is damaged"):
        months(prose(2), **TFIDF)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = write_model(tmp_path_factory.mktemp("model"))
    with pytest.raises(StageError) as told:
        semantic_method(SemanticParams(model=str(directory)))
    digest = str(told.value).split("has the digest ")[1].split(".")[0]
    return {"model": str(directory), "model_digest": digest, "min_cosine": 0.98}


def known(seed: int, length: int = 12) -> str:
    return " ".join(random.Random(seed).choices(KNOWN, k=length))


def test_documents_of_the_same_embedding_are_semantic_duplicates(months, ledger_of, model) -> None:
    # The model knows neither case nor the words that it has not learnt; one unknown is as good as another.
    texts = [f"qwertz uiop {known(1)} qwertz", f"asdf ghjk {known(1)} asdfgh", known(2)]
    report, layer = months(*texts, semantic=model)
    (entry,) = ledger_of(layer)
    assert (entry["rule"], report.kept) == ("semantic_duplicate", 2)
    assert entry["value"] == pytest.approx(1.0, abs=1e-5)
    again, _ = months(f"yxcv bnm {known(1)} yxcvbn", semantic=model)
    assert (again.indexed_before, again.removed_by_rule) == (2, {"semantic_duplicate": 1})


def test_a_document_that_the_model_does_not_read_to_its_end_is_not_compared(months, model) -> None:
    texts = [f"{known(1)} {known(number, 30)}" for number in (2, 3)]
    short = model | {"tokens": 8}
    assert months(*texts, semantic=short)[0].kept == 2


def test_it_is_compared_by_its_beginning_if_so_asked(months, model) -> None:
    texts = [f"{known(1)} {known(number, 30)}" for number in (2, 3)]
    asked = model | {"tokens": 8, "longer": "beginning"}
    assert months(*texts, semantic=asked)[0].kept == 1


def test_a_model_that_is_not_the_one_meant_is_refused(months, model, tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"dedup\.semantic\.model_digest is 0000, but .* has the digest"):
        months(prose(1), semantic=model | {"model_digest": "0000"})
    with pytest.raises(StageError, match="nowhere is no directory; it is to hold an embedding model"):
        semantic_method(SemanticParams.model_validate(model | {"model": str(tmp_path / "nowhere")}))


def test_repeated_lines_go_from_what_stays(months, documents_of, ledger_of) -> None:
    menu = "Home | About us | Contact | Imprint"
    texts = [f"{menu}\n\n{prose(number)}" for number in range(6)] + [menu, f"{menu}\n\n{prose(0)} more"]
    report, layer = months(*texts, repeated={"more_than": 5}, min_similarity=0.8)
    assert sorted(row["text"] for row in documents_of(layer)) == sorted(
        [*(prose(number) for number in range(1, 6)), f"{prose(0)} more"]
    )
    assert report.repeated is not None
    assert (report.repeated.passages, report.repeated.changed, report.repeated.removed) == (1, 6, 1)
    assert report.removed_by_rule == {"near_duplicate": 1, "repeated_passages": 1}
    assert {entry["rule"] for entry in ledger_of(layer)} == {"near_duplicate", "repeated_passages"}
    assert (layer / "repeated.parquet").exists()
