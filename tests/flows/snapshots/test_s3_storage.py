"""Snapshots copied to a real S3 server, and what a server that does not serve is told as."""

from __future__ import annotations

import http.server
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "1",
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of an S3 server."""
    address = free_address()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", address.rpartition(":")[2]]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(address, timeout=5).close()
                    break
                except OSError:
                    assert server.poll() is None
                    time.sleep(0.1)
            yield address
        finally:
            server.terminate()


def free_address() -> str:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch, corpus: Any):
    """Point the remote at a server, as the user's environment does."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)

    def at(address: str, url: str = "s3://snapshots/gristmill") -> None:
        from s3fs import S3FileSystem

        S3FileSystem.clear_instance_cache()  # which do not know that the environment has changed
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("GRISTMILL_STORAGE__REMOTE", url)

    return at


def make_bucket(address: str, name: str) -> None:
    import boto3

    boto3.client("s3", endpoint_url=address).create_bucket(Bucket=name)


def test_a_snapshot_goes_to_s3_and_comes_back(corpus, two, gristmill, endpoint, storage) -> None:
    storage(endpoint)
    make_bucket(endpoint, "snapshots")
    status, shown, complaint = gristmill("push", two[0])
    assert status == 0, complaint
    assert "copied to storage.remote (s3://snapshots/gristmill)" in shown
    (line,) = (line for line in gristmill("snapshot", "list")[1].splitlines() if two[0][:12] in line)
    assert line.split()[-3:] == ["-CR-"] * 3
    shutil.rmtree(corpus.folder / ".dvc/cache")
    shutil.rmtree(corpus.folder / "data")
    gristmill("pull")
    status, _, complaint = gristmill("snapshot", "restore", two[0])
    assert status == 0, complaint
    assert corpus.name == two[0]
    assert gristmill("snapshot", "verify")[0] == 0


def test_a_bucket_that_does_not_exist_is_told(corpus, two, gristmill, endpoint, storage) -> None:
    storage(endpoint, "s3://no-such-bucket/gristmill")
    status, _, complaint = gristmill("push")
    assert status == 2
    assert "storage.remote (s3://no-such-bucket/gristmill) cannot be used" in complaint


def test_a_server_that_is_not_reached_is_told(corpus, two, gristmill, storage) -> None:
    storage(free_address())
    status, _, complaint = gristmill("push")
    assert status == 2
    assert "storage.remote (s3://snapshots/gristmill) cannot be used" in complaint
    assert "check the address (for S3: AWS_ENDPOINT_URL" in complaint
    status, shown, _ = gristmill("snapshot", "list")  # which goes on without it
    assert status == 0
    assert "note: storage.remote (s3://snapshots/gristmill) cannot be used" in shown


class Refusing(http.server.BaseHTTPRequestHandler):
    """An S3 server that lets nobody in."""

    def do_GET(self) -> None:
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_PUT = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_wrong_credentials_are_told(corpus, two, gristmill, storage) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        storage(f"http://127.0.0.1:{server.server_port}")
        status, _, complaint = gristmill("push")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert status == 2
    assert "cannot be used: PermissionError" in complaint
    assert "check the credentials" in complaint
