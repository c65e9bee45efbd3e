from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tasks.layer_filter import PartFilter, count_part, layer_parts


def in_row_groups(layer: Path, rows: int) -> None:
    for path in (layer / "documents").glob("*.parquet"):
        pq.write_table(pq.read_table(path), path, row_group_size=rows)


@pytest.mark.parametrize("going", ["none", "some", "all"])
def test_rows_that_are_named_go_and_the_rest_stays_where_it_was(
    layer: Callable[..., Path], documents_of, tmp_path: Path, going: str
) -> None:
    texts = [{"text": f"text {i}", "language": "en" if i % 3 else None} for i in range(40)]
    clean, unique = layer(*texts, parts=3), tmp_path / "unique"
    in_row_groups(clean, 4)
    (unique / "documents").mkdir(parents=True)
    before = documents_of(clean)
    removed = {"none": [], "some": list(range(0, 40, 5)), "all": list(range(40))}[going]
    files = []
    for part in range(2):  # the numbers may come in several files
        files.append(tmp_path / f"removed-{part}.npy")
        np.save(files[-1], np.array(removed[part::2], np.int64))
    filtering = PartFilter(unique / "documents", files)
    counts = sum((filtering.filter(part) for part in layer_parts(clean)), Counter())
    stays = [row for number, row in enumerate(before) if number not in removed]
    assert documents_of(unique) == stays
    assert {path.name for path in (unique / "documents").iterdir()} == {
        path.name for path in (clean / "documents").iterdir()
    }
    counted = sum((count_part(path) for path in (unique / "documents").iterdir()), Counter())
    assert counted == counts == Counter((row["source"], row["language"] or "und") for row in stays)
