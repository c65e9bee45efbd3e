"""The process that starts Spark's Python workers, silent when Spark closes one that has been idle.

Spark's own ends such a worker with a traceback if it talks by Unix sockets: the worker says good-bye to whom
has gone.
"""

from __future__ import annotations

import socket

from pyspark import daemon

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Spark's own, whose return value is the status of the worker; 1 if nobody listens any more."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
