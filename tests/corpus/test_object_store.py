"""Sources on a real S3 server, and on WebHDFS, read by Spark's workers."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow.parquet as pq
import pytest
import yaml

from tasks.code import ROOT
from tasks.corpus.found_files import FoundFile
from tasks.corpus.locations import locate
from tasks.corpus.store_errors import Unreadable
from tasks.stage import StageError

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "1",
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of an S3 server with a bucket `corpus`."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _await(address)
            yield address
        finally:
            server.terminate()


def _await(address: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(address)


@pytest.fixture
def store(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts objects into the bucket `corpus`; the environment has the credentials."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    import boto3

    client = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket="corpus")

    def put(objects: dict[str, bytes]) -> None:
        for key, content in objects.items():
            client.put_object(Bucket="corpus", Key=key, Body=content)

    return put


def lines(*texts: str) -> bytes:
    return b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)


def names(url: str, options: dict[str, Any], files: str = "*") -> list[str]:
    return [found.name for found in locate(url, Path("/"), options).find(files)]


def test_a_prefix_is_a_directory_and_a_key_is_a_file(endpoint: str, store: Callable[..., None]) -> None:
    store(
        {
            "pages/a.txt": b"a",
            "pages/deep/b.txt": b"b",
            "pages/.hidden": b"",
            "pages/deep/": b"",
            "c.txt": b"c",
        }
    )
    options = {"endpoint_url": endpoint}
    assert names("s3://corpus/pages", options) == ["a.txt", "deep/b.txt"]
    assert names("s3://corpus/pages/", options, "deep/*") == ["deep/b.txt"]
    assert names("s3://corpus/pages/*.txt", options) == ["a.txt"]
    assert names("s3://corpus/pages/**/*.txt", options) == ["a.txt", "deep/b.txt"]
    assert names("s3://corpus/*/deep/b.txt", options) == ["pages/deep/b.txt"]
    assert names("s3://corpus/c.txt", options) == ["c.txt"]


def test_an_object_is_known_by_its_tag(endpoint: str, store: Callable[..., None]) -> None:
    store({"tagged/a.txt": b"first"})
    location = locate("s3://corpus/tagged", Path("/"), {"endpoint_url": endpoint})
    (before,) = location.find("*")
    store({"tagged/a.txt": b"other"})
    (after,) = locate("s3://corpus/tagged", Path("/"), {"endpoint_url": endpoint}).find("*")
    assert isinstance(before, FoundFile)
    assert isinstance(after, FoundFile)
    assert (before.identity or "").startswith("etag:")
    assert before.identity != after.identity
    assert before.size == after.size == 5


def test_a_bucket_or_key_that_is_not_there_is_told(endpoint: str, store: Callable[..., None]) -> None:
    for url in (
        "s3://no-such-bucket/a",
        "s3://no-such-bucket/*.txt",
        "s3://no-such-bucket/**",
        "s3://corpus/none.txt",
    ):
        with pytest.raises(StageError, match=f"{url.split('*')[0]}.*does not exist"):
            names(url, {"endpoint_url": endpoint})


class Refusing(http.server.BaseHTTPRequestHandler):
    """An S3 server that lets nobody in."""

    def do_GET(self) -> None:
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_a_bucket_that_lets_nobody_in_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with serving(Refusing) as port:
        options = {"endpoint_url": f"http://127.0.0.1:{port}"}
        for url in ("s3://corpus/a.txt", "s3://corpus/**"):
            with pytest.raises(StageError, match="s3://corpus/.*access is denied"):
                names(url, options)


def test_an_object_that_vanished_is_unreadable(endpoint: str, store: Callable[..., None]) -> None:
    location = locate("s3://corpus/", Path("/"), {"endpoint_url": endpoint})
    with pytest.raises(Unreadable, match="FileNotFoundError"):
        location.open(FoundFile("corpus/gone.txt", "gone.txt", 1)).read()


def test_a_store_that_is_not_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{bound.getsockname()[1]}"
    with pytest.raises(StageError, match="s3://corpus/a.*cannot be listed.*Could not connect"):
        names("s3://corpus/a", {"endpoint_url": nowhere})


class NameNode(http.server.BaseHTTPRequestHandler):
    """As much of WebHDFS as reading takes."""

    files: dict[str, bytes] = {}

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        path = address.path.removeprefix("/webhdfs/v1").rstrip("/")
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        below = [name for name in self.files if name.startswith(f"{path}/")]
        if path not in self.files and not below:
            exception = {"exception": "FileNotFoundException", "message": f"File does not exist: {path}"}
            self._answer(404, {"RemoteException": exception})
        elif query["op"] == "GETFILESTATUS":
            self._answer(200, {"FileStatus": self._status(path, "")})
        elif query["op"] == "LISTSTATUS":
            children = sorted({name.removeprefix(f"{path}/").split("/")[0] for name in below})
            statuses = [self._status(f"{path}/{child}", child) for child in children]
            self._answer(200, {"FileStatuses": {"FileStatus": statuses}})
        elif query.get("noredirect") == "true":
            self._answer(
                200, {"Location": f"http://{self.headers['Host']}{self.path}".replace("noredirect", "x")}
            )
        else:
            start, length = int(query.get("offset", 0)), int(query.get("length", 2**62))
            self._answer(200, self.files[path][start : start + length])

    def _status(self, path: str, suffix: str) -> dict[str, Any]:
        kind = "FILE" if path in self.files else "DIRECTORY"
        length = len(self.files.get(path, b""))
        return {"pathSuffix": suffix, "type": kind, "length": length, "modificationTime": 1700000000000}

    def _answer(self, status: int, content: Any) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def hdfs(files: dict[str, bytes]) -> Iterator[str]:
    """A WebHDFS server with these files; its URL."""
    with serving(type("Holding", (NameNode,), {"files": files})) as port:
        yield f"webhdfs://127.0.0.1:{port}"


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[int]:
    """A server; its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_webhdfs_is_listed_and_read_at_any_offset() -> None:
    with hdfs({"/corpus/a.txt": b"first", "/corpus/deep/b.txt": b"second"}) as url:
        location = locate(f"{url}/corpus", Path("/"), {})
        first, second = location.find("*")
        assert isinstance(first, FoundFile)
        assert isinstance(second, FoundFile)
        assert (first.name, second.name) == ("a.txt", "deep/b.txt")
        assert (second.size, second.identity) == (6, "modified:1700000000000")
        with location.open(second) as opened:
            opened.seek(3)
            assert opened.read() == b"ond"
        with pytest.raises(StageError, match=f"{url}/none does not exist"):
            names(f"{url}/none", {})


@pytest.fixture
def run_collect(tmp_path: Path) -> Callable[..., Path]:
    """Runs the stage as a command, as DVC does: Spark's workers get its environment."""

    def run(*sources: dict[str, Any], watermarks: Path | None = None, name: str = "raw") -> Path:
        usual = {"kind": "web", "license": "CC0", "collected_at": "2026-01-01"}
        params = tmp_path / "params.yaml"
        params.write_text(yaml.safe_dump({"collect": {"sources": [usual | source for source in sources]}}))
        nothing = tmp_path / "nothing.json"
        nothing.write_text("{}")
        (tmp_path / "corpus").mkdir(exist_ok=True)
        command = [sys.executable, "-m", "tasks.corpus.collect", tmp_path / "corpus", watermarks or nothing]
        command += [tmp_path / name, "--params", params, "--reports", tmp_path / "reports"]
        environment = os.environ | {
            "GRISTMILL_WORK": str(tmp_path / "work"),
            "GRISTMILL_RUN_DIRECTORY": str(tmp_path / "spool"),
            "GRISTMILL_SPARK__MASTER": "local[2]",
        }
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return tmp_path / name

    return run


def texts(layer: Path) -> dict[str, str]:
    rows = pq.read_table(layer / "documents").to_pylist()
    return {f"{row['source']}/{row['origin']}": row["text"] for row in rows}


def test_workers_collect_from_stores_and_the_next_run_only_what_is_new(
    endpoint: str, store: Callable[..., None], run_collect: Callable[..., Path]
) -> None:
    store({"crawl/a.jsonl": lines("one", "two")})
    with hdfs({"/logs/a.jsonl": lines("three")}) as url:
        sources = (
            {"name": "crawl", "path": "s3://corpus/crawl", "storage_options": {"endpoint_url": endpoint}},
            {"name": "logs", "path": f"{url}/logs/*.jsonl"},
        )
        first = run_collect(*sources)
        assert texts(first) == {
            "crawl/a.jsonl:0": "one",
            "crawl/a.jsonl:16": "two",
            "logs/a.jsonl:0": "three",
        }
        store({"crawl/b.jsonl": lines("four")})
        second = run_collect(*sources, watermarks=first / "watermarks.json", name="second")
    assert texts(second) == {"crawl/b.jsonl:0": "four"}
    marks = json.loads((second / "watermarks.json").read_bytes())
    assert list(marks["crawl"]) == ["a.jsonl", "b.jsonl"]
    assert "testing" not in (first / "lineage.json").read_text("utf-8")
