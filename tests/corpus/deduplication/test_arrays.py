from __future__ import annotations

import errno
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tasks.corpus.deduplication.arrays import (
    bounded_runs,
    equal_ranges,
    mapped_array,
    places_of_runs,
    run_starts,
    write_array,
)
from tasks.corpus.deduplication.ids import hexadecimal, numbers_of
from tasks.corpus.deduplication.segments import grouped


@pytest.mark.parametrize("array", [np.arange(5), np.empty((0, 2), np.int64)], ids=["some", "none"])
def test_an_array_is_read_as_it_was_written(tmp_path: Path, array: np.ndarray) -> None:
    write_array(tmp_path / "a.npy", array)
    found = mapped_array(tmp_path / "a.npy")
    assert found.tolist() == array.tolist()
    assert (found.dtype, found.shape) == (array.dtype, array.shape)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_array(tmp_path / "a.npy", np.arange(3))

    def full(file, array) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tasks.corpus.deduplication.arrays.save_array", full)
    with pytest.raises(OSError, match="No space left"):
        write_array(tmp_path / "a.npy", np.arange(9))
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]
    assert mapped_array(tmp_path / "a.npy").tolist() == [0, 1, 2]


@pytest.mark.parametrize("samples", [[[]], [[3, 3, 3]], [[1, 5, 9], [2, 2**40]], [[0] * 50 + [7]]], ids=str)
@pytest.mark.parametrize("ranges", [1, 2, 5])
def test_ranges_are_all_numbers_once(samples: list[list[int]], ranges: int) -> None:
    found = equal_ranges([np.array(each, np.int64) for each in samples], ranges)
    assert found[0][0] == 0
    assert found[-1][1] == 2**63 - 1
    assert len(found) <= ranges
    assert all(one[1] + 1 == two[0] for one, two in itertools.pairwise(found))


def test_ranges_have_about_as_many_samples_each() -> None:
    samples = np.random.default_rng(0).integers(0, 10**6, 9000)
    found = equal_ranges([samples], 3)
    counts = [((samples >= first) & (samples <= last)).sum() for first, last in found]
    assert all(2900 < count < 3100 for count in counts)


def test_groups_are_found_with_their_places() -> None:
    found = {group: places.tolist() for group, places in grouped(np.array([5, 2, 5, 5, 0]))}
    assert found == {0: [4], 2: [1], 5: [0, 2, 3]}
    assert list(grouped(np.empty(0, np.int64))) == []


def test_runs_start_where_a_column_changes() -> None:
    starts = run_starts(np.array([1, 1, 1, 2]), np.array([3, 3, 4, 4]))
    assert starts.tolist() == [True, False, True, True]


def test_ids_are_numbers_in_the_same_order() -> None:
    names = ["00" * 16, "0123456789abcdef" * 2, "ff" * 16]
    numbers = numbers_of(pa.array(names))
    assert numbers[1].tolist() == [0x0123456789ABCDEF] * 2
    assert hexadecimal(numbers).to_pylist() == names
    assert hexadecimal(np.empty((0, 2), np.uint64)).to_pylist() == []


@pytest.mark.parametrize(
    ("sizes", "runs"),
    [
        ([3, 3, 3, 3], [(0, 3), (3, 4)]),
        ([4, 9, 2], [(0, 1), (1, 2), (2, 3)]),
        ([4, 9, 1], [(0, 1), (1, 3)]),
        ([99, 99, 1], [(0, 1), (1, 2), (2, 3)]),
        ([10, 0, 0, 1], [(0, 3), (3, 4)]),
        ([], []),
    ],
    ids=["several", "bounded", "just-fits", "too-large", "empty-documents", "none"],
)
def test_what_is_large_is_taken_in_runs_of_bounded_size(
    sizes: list[int], runs: list[tuple[int, int]]
) -> None:
    assert list(bounded_runs(np.array(sizes, np.int64), 10)) == runs


def test_the_places_of_runs_are_one_run_after_the_other() -> None:
    assert places_of_runs(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
    assert places_of_runs(np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []
