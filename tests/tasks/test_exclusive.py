from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from tasks.exclusive import exclusive


def test_one_at_a_time_holds_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with exclusive(lock) as first:
        with exclusive(lock) as second:
            assert (first, second) == (True, False)
        assert lock.exists()
    assert not lock.exists()
    with exclusive(lock) as third:
        assert third


def test_a_lock_whose_process_ended_is_free(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with exclusive(tmp_path / "lock") as taken:
        assert taken


def test_where_there_are_no_locks_nothing_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with exclusive(tmp_path / "lock") as taken:
        assert taken
