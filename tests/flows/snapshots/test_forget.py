"""gristmill forget, and what gristmill explain says afterwards."""

from __future__ import annotations

import json


def lines(corpus) -> list[dict]:
    content = (corpus.folder / "forgotten.jsonl").read_text()
    return [json.loads(line) for line in content.splitlines() if line]


def test_it_tells_what_a_document_has_reached(corpus, two, gristmill) -> None:
    status, shown, _ = gristmill("forget", corpus.document(2), "--reason", "letter of 3 May")
    assert status == 0
    (entry,) = lines(corpus)
    assert (entry["id"], entry["reason"]) == (corpus.document(2), "letter of 3 May")
    assert len(entry["contents"]) == 2  # as scored, and as cleaned
    assert "ships" not in json.dumps(entry)
    assert "collected from: docs, source.txt:2" in shown
    for name in two:
        assert f"snapshot {name[:12]} (" in shown
    assert shown.count("copy 0 (train)") == 2
    assert shown.count("train-0000") == 2
    assert "model artifacts/base" in shown
    assert shown.count("model artifacts/release toy 1.0.0") == 2
    assert "remove it from the source too" in shown
    for name in two:
        assert f"gristmill snapshot prune {name[:12]} --without-copy --from-remotes" in shown


def test_the_range_of_tokens_is_the_documents_own(corpus, two, gristmill) -> None:
    shown = gristmill("forget", corpus.document(2))[1]
    import pyarrow.parquet as pq

    name = corpus.document(2)
    for file in ("train-00000", "train-00001"):
        rows = pq.read_table(corpus.folder / f"data/tokens/{file}.documents.parquet").to_pylist()
        start = 0
        for row in rows:
            if row["id"] == name:
                assert f"{file}.bin: tokens {start} to {start + row['tokens'] - 1}" in shown
            start += row["tokens"]


def test_the_next_snapshot_is_without_it_and_explain_says_so(corpus, two, gristmill) -> None:
    name = corpus.document(2)
    assert gristmill("forget", name)[0] == 0
    assert "forgotten on" in gristmill("explain", name)[1]
    third = corpus.run(commit="third")
    status, shown, _ = gristmill("snapshot", "diff", two[1], third)
    assert status == 0
    assert "6 → 5: 0 added, 1 removed, 0 changed" in shown
    shown = gristmill("explain", name[:12])[1]
    assert "clean: removed by forgotten" in shown
    assert "forgotten on" in shown
    assert "document number 2" not in (
        corpus.folder / "data/clean/ledger/part-00000.parquet"
    ).read_bytes().decode("latin-1")


def test_a_document_is_forgotten_once(corpus, two, gristmill) -> None:
    gristmill("forget", corpus.document(2), "--reason", "first")
    before = (corpus.folder / "forgotten.jsonl").read_bytes()
    status, shown, _ = gristmill("forget", corpus.document(2)[:10], "--reason", "again")
    assert status == 0
    assert "was forgotten on" in shown
    assert "(first); nothing was changed" in shown
    assert (corpus.folder / "forgotten.jsonl").read_bytes() == before


def test_an_unknown_id_is_refused(corpus, two, gristmill) -> None:
    status, _, complaint = gristmill("forget", "0" * 32)
    assert status == 2
    assert "no document's id begins with" in complaint
    assert "nor is there one in a snapshot" in complaint
    assert lines(corpus) == []


def test_a_document_that_is_only_in_an_older_snapshot_is_found(corpus, two, gristmill) -> None:
    name = corpus.document(7)  # the second snapshot has six lines
    status, shown, _ = gristmill("forget", name)
    assert status == 0
    assert f"snapshot {two[0][:12]}" in shown
    assert f"snapshot {two[1][:12]}" not in shown
    assert lines(corpus)[0]["contents"]


def test_near_duplicates_are_told_and_forgotten_with_it(corpus, two, gristmill) -> None:
    assert gristmill("snapshot", "restore", two[0], "--params")[0] == 0
    kept, dropped = corpus.document(8), corpus.document(9)
    status, shown, _ = gristmill("forget", kept)
    assert status == 0
    assert "1 documents say nearly the same (not forgotten: one of them takes its place" in shown
    assert dropped in shown
    status, shown, _ = gristmill("forget", kept, "--with-duplicates")
    assert status == 0
    assert "(forgotten as well)" in shown
    assert {entry["id"] for entry in lines(corpus)} == {kept, dropped}


def test_a_dropped_duplicate_names_the_one_that_was_kept(corpus, two, gristmill) -> None:
    assert gristmill("snapshot", "restore", two[0], "--params")[0] == 0
    shown = gristmill("forget", corpus.document(9))[1]
    assert "not forgotten" in shown
    assert corpus.document(8) in shown


def test_a_pruned_snapshot_is_not_passed_over_in_silence(corpus, two, gristmill) -> None:
    assert gristmill("snapshot", "prune", two[0], "--without-copy")[0] == 0
    shown = gristmill("forget", corpus.document(2))[1]
    assert f"snapshot {two[0][:12]}" in shown
    assert "its documents are not on this machine" in shown


def test_a_bad_line_in_the_file_is_named(corpus, two, gristmill) -> None:
    (corpus.folder / "forgotten.jsonl").write_text("\nno json\n")
    for command in (("forget", corpus.document(2)), ("explain", corpus.document(2))):
        status, _, complaint = gristmill(*command)
        assert status == 2
        assert "forgotten.jsonl, line 2 is no entry of a forgotten document" in complaint
