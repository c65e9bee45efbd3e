import socket
import subprocess
import sys

import pytest

from tasks import python_daemon


def test_a_worker_whose_spark_has_gone_ends_without_a_traceback(monkeypatch, capsys) -> None:
    ours, theirs = socket.socketpair()

    def says_goodbye(sock: socket.socket, _authenticated: bool) -> int:
        sock.sendall(b"bye")
        return 0

    monkeypatch.setattr(python_daemon, "_worker", says_goodbye)
    theirs.close()
    with ours:
        assert python_daemon.worker(ours, False) == 1
    assert capsys.readouterr().err == ""


def test_other_errors_of_a_worker_are_not_swallowed(monkeypatch) -> None:
    def fails(_sock: socket.socket, _authenticated: bool) -> int:
        raise ConnectionResetError("not an idle worker")

    monkeypatch.setattr(python_daemon, "_worker", fails)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ConnectionResetError, match="not an idle worker"):
        python_daemon.worker(ours, False)


def test_the_daemon_that_spark_starts_uses_it() -> None:
    started = subprocess.run(
        [
            sys.executable,
            "-c",
            "import runpy; from pyspark import daemon\n"
            "daemon.manager = lambda: print(daemon.worker.__module__)\n"
            "runpy.run_module('tasks.python_daemon', run_name='__main__')",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert started.stdout.strip() == "__main__"
