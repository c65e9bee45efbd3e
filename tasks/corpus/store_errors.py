"""What goes wrong with a store, and whether trying again may help."""

from __future__ import annotations


class Interrupted(ConnectionError):
    """A store that does not answer as it should; trying again may help."""


class Unreadable(Exception):
    """A file that is there, or was listed, and that cannot be opened."""


def true_error(error: Exception) -> Exception:
    """fsspec tells of a missing file whatever goes wrong over HTTP; the cause says what."""
    cause = error.__cause__
    is_from_http = type(cause).__module__.startswith("aiohttp") or isinstance(cause, TimeoutError)
    return cause if isinstance(cause, Exception) and is_from_http else error


def is_final(error: Exception) -> bool:
    """Whether a store has said no, for this file, for good."""
    status = getattr(error, "status", None)
    return isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError) or (
        isinstance(status, int) and 400 <= status < 500 and status not in (408, 429)
    )


def reason_of(error: Exception) -> str:
    """An error in a few words."""
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return f"{type(error).__name__}: {said}"[:300]


def what_is_needed(url: str, error: Exception) -> str:
    """Why a URL cannot be opened here, and what its file system needs."""
    if url.startswith(("hdfs://", "viewfs://")) and isinstance(error, ImportError | OSError):
        return (
            "hdfs:// needs a Hadoop client with its native library on the driver and on every executor: set "
            "JAVA_HOME, HADOOP_HOME, ARROW_LIBHDFS_DIR (where libhdfs.so lies) and CLASSPATH (the output of "
            f"`hadoop classpath --glob`), or use webhdfs:// ({reason_of(error)})"
        )
    return reason_of(error)
