from __future__ import annotations

import bz2
import gzip
import hashlib
import http.server
import io
import json
import os
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from tasks.corpus import spreading
from tasks.corpus.collect import CollectParams, CollectReport, SourceParams, collect
from tasks.parameters import ParameterError, validate
from tasks.records import record_id
from tasks.resources import Resources
from tasks.stage import StageError

Sources = Callable[..., SourceParams]
Run = Callable[..., CollectReport]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    directory = tmp_path / "corpus"
    directory.mkdir()
    return directory


@pytest.fixture
def run(tmp_path: Path, corpus: Path, resources: Resources, source: Sources) -> Run:
    """Collects sources, each given by what a test says of it, into the layer of that name."""

    def collected(
        *sources: dict[str, Any], to: str = "raw", after: str | None = None, share: float = 0.05
    ) -> CollectReport:
        watermarks = tmp_path / "watermarks.json"
        watermarks.write_text("{}")
        if after is not None:
            watermarks = tmp_path / after / "watermarks.json"
        given = [source(**{"name": f"source-{i}"} | one) for i, one in enumerate(sources)]
        params = CollectParams(sources=given, max_quarantined_share=share)
        return collect(corpus, watermarks, tmp_path / to, params, resources)

    return collected


@pytest.fixture
def origins(tmp_path: Path, documents_of) -> Callable[..., dict[str, str]]:
    """The texts of a layer by their origins."""
    return lambda name="raw": {row["origin"]: row["text"] for row in documents_of(tmp_path / name)}


def lines(texts: Iterable[str]) -> bytes:
    return b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)


def digests(layer: Path) -> dict[str, str]:
    files = sorted(path for path in layer.rglob("*") if path.is_file())
    return {str(path.relative_to(layer)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_record_is_a_document_or_in_the_ledger(
    tmp_path: Path, corpus: Path, run: Run, origins, ledger_of
) -> None:
    (corpus / "docs.jsonl").write_bytes(lines(f"text {i}" for i in range(30)) + b'{"text": 5}')
    report = run({"path": "docs.jsonl"})
    assert (report.records_in, report.kept, report.quarantined) == (31, 30, 1)
    assert len(origins()) == 30
    (entry,) = ledger_of(tmp_path / "raw")
    assert (entry["stage"], entry["rule"], entry["verdict"]) == ("collect", "text_not_string", "quarantined")
    assert entry["detail"].startswith("docs.jsonl: byte ")


def test_a_document_says_where_it_is_from(collected: Callable[..., Path], documents_of) -> None:
    (document,) = documents_of(collected("some text", domain="legal", license="MIT"))
    assert document["id"] == record_id("docs", "docs.jsonl:0", "some text")
    assert {key: document[key] for key in ("source", "origin", "domain", "license", "collected_at")} == {
        "source": "docs",
        "origin": "docs.jsonl:0",
        "domain": "legal",
        "license": "MIT",
        "collected_at": "2026-01-01",
    }


def test_an_id_is_the_same_wherever_the_corpus_lies(
    tmp_path: Path, corpus: Path, run: Run, documents_of
) -> None:
    (corpus / "docs.jsonl").write_bytes(lines(["some text"]))
    run({"name": "docs", "path": "docs.jsonl"}, to="one")
    run({"name": "docs", "path": f"file://{corpus}/*.jsonl"}, to="two")
    (one,), (two,) = documents_of(tmp_path / "one"), documents_of(tmp_path / "two")
    parts = (b"docs", b"docs.jsonl:0", b"some text")
    known = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    assert one["id"] == two["id"] == hashlib.blake2b(known, digest_size=16).hexdigest()


def test_a_directory_of_files_is_one_document_each(corpus: Path, run: Run, origins) -> None:
    (corpus / "pages" / "deep").mkdir(parents=True)
    (corpus / "pages" / "a.txt").write_text("first", "utf-8")
    (corpus / "pages" / "deep" / "b.txt").write_text("second", "utf-8")
    (corpus / "pages" / "c.bin").write_bytes(b"\xff")
    run({"path": "pages", "files": "*.txt"})
    assert origins() == {"pages/a.txt": "first", "pages/deep/b.txt": "second"}


def test_one_source_may_hold_every_format(
    tmp_path: Path, corpus: Path, run: Run, origins, documents_of
) -> None:
    (corpus / "a.jsonl.gz").write_bytes(gzip.compress(lines(["gz"])))
    (corpus / "b.jsonl.zst").write_bytes(zstandard.compress(lines(["zst"])))
    (corpus / "c.jsonl.bz2").write_bytes(bz2.compress(lines(["bz2"])))
    (corpus / "d.csv").write_text("text,n\ncsv,1\n", "utf-8")
    pq.write_table(pa.table({"text": ["parquet"]}), corpus / "e.parquet")
    (corpus / "f.html").write_text("<html><body><p>html</p></body></html>", "utf-8")
    with zipfile.ZipFile(corpus / "g.zip", "w") as packed:
        packed.writestr("deep/page.txt", "zip")
        packed.writestr("records.jsonl", lines(["zipped record"]))
    with tarfile.open(corpus / "h.tar.gz", "w:gz") as packed:
        member = tarfile.TarInfo("page.txt")
        member.size = 3
        packed.addfile(member, io.BytesIO(b"tar"))
    run({"path": "."})
    assert origins() == {
        "a.jsonl.gz:0": "gz",
        "b.jsonl.zst:0": "zst",
        "c.jsonl.bz2:0": "bz2",
        "d.csv:7": "csv",
        "e.parquet:0": "parquet",
        "f.html": "<html><body><p>html</p></body></html>",
        "g.zip!deep/page.txt": "zip",
        "g.zip!records.jsonl!0": "zipped record",
        "h.tar.gz!page.txt": "tar",
    }
    markups = {row["origin"]: row["meta"]["markup"] for row in documents_of(tmp_path / "raw")}
    assert markups["f.html"] == "html"
    assert markups["a.jsonl.gz:0"] == "plain"


def test_a_foreign_schema_is_mapped(tmp_path: Path, corpus: Path, run: Run, documents_of) -> None:
    record = {"body": "<p>x</p>", "key": 17, "lang": "en", "other": "dropped"}
    (corpus / "docs.jsonl").write_text(json.dumps(record), "utf-8")
    given = {"text_field": "body", "id_field": "key", "keep_fields": {"lang": "language"}, "markup": "html"}
    run({"path": "docs.jsonl"} | given)
    (document,) = documents_of(tmp_path / "raw")
    assert document["text"] == "<p>x</p>"
    assert document["meta"] == {"language": "en", "markup": "html", "source_id": "17"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"path": "none.jsonl"}, "none.jsonl does not exist; `path` is relative to"),
        ({"path": ".", "files": "*.xml"}, "matches `files: *.xml`"),
        ({"path": "**/*.xml"}, "matches `path: **/*.xml`"),
    ],
)
def test_a_source_that_is_not_there_is_named(
    tmp_path: Path, corpus: Path, run: Run, given: dict[str, Any], told: str
) -> None:
    with pytest.raises(StageError, match="collect.sources: docs: ") as error:
        run({"name": "docs"} | given)
    assert told in str(error.value)
    assert not (tmp_path / "raw").exists()


def test_what_cannot_be_read_is_in_the_ledger_and_the_run_goes_on(
    tmp_path: Path, corpus: Path, run: Run, origins, ledger_of
) -> None:
    (corpus / "a.txt").write_text("kept", "utf-8")
    os.mkfifo(corpus / "pipe.txt")
    (corpus / "nowhere.txt").symlink_to(corpus / "gone")
    (corpus / "round").symlink_to(corpus)
    (corpus / "memory.txt").symlink_to("/proc/self/mem")  # a file whose first byte cannot be read
    report = run({"path": "."}, share=0.7)
    assert origins() == {"a.txt": "kept"}
    told = {entry["detail"].split(":")[0]: entry["rule"] for entry in ledger_of(tmp_path / "raw")}
    assert told == {
        "pipe.txt": "not_a_file",
        "nowhere.txt": "unreadable",
        "round": "not_a_file",
        "memory.txt": "unreadable",
    }
    assert (report.kept, report.quarantined) == (1, 4)
    marks = json.loads((tmp_path / "raw" / "watermarks.json").read_bytes())
    assert list(marks["source-0"]) == ["a.txt"]


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a directory; of a file whose name has ``cut`` the second half never comes."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        outputfile.write(content[: len(content) // 2] if "cut" in self.path else content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Where the directory `served` is served."""
    (tmp_path / "served").mkdir()
    handler = partial(Server, directory=str(tmp_path / "served"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_web_server_is_a_source_and_what_it_has_had_is_skipped(
    tmp_path: Path, run: Run, url: str, origins
) -> None:
    (tmp_path / "served" / "a.jsonl").write_bytes(lines(["one", "two"]))
    (tmp_path / "served" / "b.txt").write_text("three", "utf-8")
    report = run({"path": f"{url}/a.jsonl"}, {"path": f"{url}/"}, to="one")
    assert sorted(origins("one")) == ["a.jsonl:0", "a.jsonl:16", "b.txt"]
    assert report.records_in == 5
    report = run({"path": f"{url}/a.jsonl"}, {"path": f"{url}/"}, to="two", after="one")
    assert (report.records_in, report.files_skipped) == (0, {"source-0": 1, "source-1": 2})


def test_a_connection_that_breaks_stops_the_stage_and_loses_no_record_in_silence(
    tmp_path: Path, run: Run, url: str
) -> None:
    (tmp_path / "served" / "cut.jsonl").write_bytes(lines(["one", "two"]))
    with pytest.raises(ConnectionError, match=r"cut\.jsonl.*run again"):
        run({"path": f"{url}/cut.jsonl"})
    assert not (tmp_path / "raw").exists()


def test_what_is_no_file_does_not_stop_a_run_with_nothing_new(corpus: Path, run: Run) -> None:
    (corpus / "a.txt").write_text("kept", "utf-8")
    os.mkfifo(corpus / "pipe.txt")
    run({"path": "."})
    report = run({"path": "."}, to="again", after="raw")
    assert (report.kept, report.quarantined) == (0, 1)


def test_a_source_that_is_mostly_unreadable_stops_the_stage(
    collected: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(StageError, match="2 of 3 records cannot be read"):
        collected("good", 1, None)
    assert not (tmp_path / "raw").exists()


def test_how_work_is_cut_and_spread_does_not_show(
    tmp_path: Path, corpus: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"text {i} " + "é\n" * (i % 40) for i in range(60)]
    (corpus / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + lines(texts))
    (corpus / "b.jsonl").write_bytes(lines(texts).replace(b"\n", b"\r\n").rstrip())
    (corpus / "c.csv").write_text(
        "text,n\n" + "".join(f'"{i}, ""x""\n{i}",{i}\n' for i in range(300)), "utf-8"
    )
    (corpus / "d.txt").write_text("\n".join(texts), "utf-8")
    pq.write_table(pa.table({"text": texts}), corpus / "e.parquet", row_group_size=17)
    sources = [{"path": name} for name in ("a.jsonl", "b.jsonl", "c.csv", "e.parquet")]
    sources.append({"path": "d.txt", "format": "lines"})
    whole = run(*sources, to="whole")
    monkeypatch.setattr(spreading, "SPLIT_BYTES", 701)
    assert run(*sources, to="cut") == whole
    assert digests(tmp_path / "cut") == digests(tmp_path / "whole")
    assert whole.kept >= 4 * 60


def test_the_next_run_collects_only_the_new_file_and_the_appended_lines(
    tmp_path: Path, corpus: Path, run: Run, origins
) -> None:
    (corpus / "old.jsonl").write_bytes(lines(["old"]))
    (corpus / "log.jsonl").write_bytes(lines(["first"]))
    (corpus / "rewritten.jsonl").write_bytes(lines(["before"]))
    first = run({"path": "."}, to="one")
    assert first.files_read == {"source-0": 3}
    (corpus / "new.jsonl").write_bytes(lines(["new"]))
    with (corpus / "log.jsonl").open("ab") as log:
        log.write(lines(["second"]))
    (corpus / "rewritten.jsonl").write_bytes(lines(["after", "more"]))
    second = run({"path": "."}, to="two", after="one")
    start = len(lines(["first"]))
    assert origins("two") == {
        "new.jsonl:0": "new",
        f"log.jsonl:{start}": "second",
        "rewritten.jsonl:0": "after",
        f"rewritten.jsonl:{len(lines(['after']))}": "more",
    }
    assert (second.files_read, second.files_skipped) == ({"source-0": 3}, {"source-0": 1})
    read = lines(["new", "second", "after", "more"])
    assert second.bytes_read == {"source-0": len(read)}


def test_a_record_has_the_same_id_whether_it_was_appended_or_not(
    tmp_path: Path, corpus: Path, run: Run, documents_of
) -> None:
    (corpus / "log.jsonl").write_bytes(lines(["one"]))
    run({"path": "."}, to="one")
    (corpus / "log.jsonl").write_bytes(lines(["one", "two"]))
    run({"path": "."}, to="two", after="one")
    run({"path": "."}, to="both")
    parts = documents_of(tmp_path / "one") + documents_of(tmp_path / "two")
    assert sorted(row["id"] for row in parts) == [row["id"] for row in documents_of(tmp_path / "both")]


def test_a_line_caught_while_it_was_written_is_read_whole_afterwards(
    tmp_path: Path, corpus: Path, run: Run, origins
) -> None:
    content = lines(["one", "two"])
    (corpus / "log.jsonl").write_bytes(content[:-4])
    assert run({"path": "."}, to="one", share=1.0).quarantined == 1
    (corpus / "log.jsonl").write_bytes(content)
    run({"path": "."}, to="two", after="one")
    assert list(origins("two").values()) == ["two"]


def test_a_compressed_file_that_grew_is_read_again_whatever_its_name(corpus: Path, run: Run, origins) -> None:
    (corpus / "log.jsonl").write_bytes(gzip.compress(lines(["one"])))
    run({"path": "."}, to="one")
    with (corpus / "log.jsonl").open("ab") as log:
        log.write(gzip.compress(lines(["two"])))
    run({"path": "."}, to="two", after="one")
    assert list(origins("two").values()) == ["one", "two"]


def test_nothing_new_is_an_empty_layer_that_says_so(tmp_path: Path, corpus: Path, run: Run, origins) -> None:
    (corpus / "a.jsonl").write_bytes(lines(["one"]))
    run({"path": "."}, to="one")
    report = run({"path": "."}, to="two", after="one")
    assert (report.records_in, report.files_read, report.files_skipped) == (
        0,
        {"source-0": 0},
        {"source-0": 1},
    )
    assert origins("two") == {}
    assert (tmp_path / "two" / "watermarks.json").read_bytes() == (
        tmp_path / "one" / "watermarks.json"
    ).read_bytes()


def test_a_file_that_is_gone_and_a_source_that_is_no_more_stay_in_the_watermarks(
    tmp_path: Path, corpus: Path, run: Run
) -> None:
    (corpus / "a.jsonl").write_bytes(lines(["one"]))
    (corpus / "b.jsonl").write_bytes(lines(["two"]))
    run({"name": "first", "path": "a.jsonl"}, {"name": "second", "path": "."}, to="one")
    (corpus / "a.jsonl").unlink()
    run({"name": "second", "path": "."}, to="two", after="one")
    assert digests(tmp_path / "two")["watermarks.json"] == digests(tmp_path / "one")["watermarks.json"]


def test_watermarks_that_are_none_are_told(tmp_path: Path, corpus: Path, run: Run) -> None:
    (corpus / "a.jsonl").write_bytes(lines(["one"]))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "watermarks.json").write_text("[]")
    with pytest.raises(StageError, match="watermarks.json holds no watermarks"):
        run({"path": "."}, after="broken")


def test_two_sources_of_one_name_are_refused(source: Sources) -> None:
    with pytest.raises(ValueError, match="used twice: docs"):
        CollectParams(sources=[source(), source()])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"format": "word"}, "no such format; known are: auto, .*jsonl"),
        ({"path": "a**/b"}, "`\\*\\*` stands for folders"),
        ({"keep_fields": {"m": "markup"}}, "`markup` in `meta` says how"),
        ({"keep_fields": {"m": "source_id"}}, "`source_id` in `meta` holds"),
        ({"keep_fields": {"m": "perplexity_bucket"}}, "`perplexity_bucket` in `meta` says which"),
        ({"keep_fields": {"a": "m", "b": "m"}}, "two fields are kept by one name"),
        ({"encoding": "cp9999"}, "no encoding of text"),
        ({"encoding": "base64"}, "no encoding of text"),
        ({"encoding": ""}, "no encoding of text"),
        ({"delimiter": "::"}, "must be one character"),
        ({"delimiter": ""}, "must be one character"),
        ({"delimiter": '"'}, "must be one character"),
        ({"delimiter": "\n"}, "must be one character"),
        ({"collected_at": "2026-02-30"}, "day is out of range"),
    ],
)
def test_what_a_source_cannot_be_is_told(source: Sources, given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        source(**given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"storage_options": {"secret": "HIDDEN"}}, "`secret` in `storage_options`"),
        ({"storage_options": {"aws_access_KEY_id": "HIDDEN"}}, "`aws_access_KEY_id` in"),
        ({"storage_options": {"client_kwargs": {"headers": {"Authorization": "HIDDEN"}}}}, "`Authorization`"),
        ({"storage_options": {"endpoint_url": "http://me:HIDDEN@host"}}, "`endpoint_url`"),
        ({"path": "s3://id:HIDDEN@bucket/a"}, "the user in `path`"),
        ({"path": "webhdfs://me:HIDDEN@host/a"}, "the password in `path`"),
        ({"path": "https://host/a?X-Amz-Signature=HIDDEN"}, "the query in `path`"),
    ],
)
def test_a_secret_is_refused_and_not_told(given: dict[str, Any], told: str) -> None:
    usual = {
        "name": "docs",
        "path": "s3://bucket/a",
        "kind": "web",
        "license": "CC0",
        "collected_at": "2026-01-01",
    }
    with pytest.raises(ParameterError, match=told) as error:
        validate({"sources": [usual | given]}, CollectParams, "params.yaml: collect")
    assert "AWS_SECRET_ACCESS_KEY" in str(error.value)
    assert "HIDDEN" not in str(error.value)


def test_a_user_without_a_password_is_no_secret(source: Sources) -> None:
    assert source(path="webhdfs://me@host/a", storage_options={"anon": True}).path == "webhdfs://me@host/a"


def test_lots_weigh_about_the_same_and_hold_everything() -> None:
    weights = [100, 1, 1, 1, 50, 50, 1, 1]
    assigned = spreading.balanced(weights, 3)
    loads = [sum(weight for weight, lot in zip(weights, assigned, strict=True) if lot == n) for n in range(3)]
    assert max(loads) <= 102
    assert spreading.balanced([1] * 10, 3).count(0) in (3, 4)
