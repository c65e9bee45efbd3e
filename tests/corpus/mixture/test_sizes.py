from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.corpus.mix import MixParams, is_held_out, mix
from tasks.corpus.mixture.sizes import training_sizes, unique_sizes
from tasks.resources import Resources
from tasks.stage import StageError


def test_sizes_are_those_that_the_stage_finds(
    layer: Callable[..., Path], tmp_path: Path, resources: Resources
) -> None:
    documents = [
        {"text": f"{'é' * (n % 40)} {n}", "source": f"s{n % 2}", "language": ("en", "zh", None)[n % 3]}
        for n in range(300)
    ]
    unique = layer(*documents, name="unique", parts=3)
    params = MixParams.model_validate(
        {"levels": [{"by": "source", "weights": {"s0": 0.7}}, {"by": "language"}], "validation_share": 0.2}
    )
    report = mix(unique, tmp_path / "mixture", params, resources)
    available = {tuple(group.group): group.available_bytes for group in report.groups}
    drawn = {tuple(group.group): group.bytes for group in report.groups}
    assert ("s0", "und") in available
    assert unique_sizes(unique, params.columns, is_held_out(params)) == available
    assert training_sizes(tmp_path / "mixture", params.columns) == drawn


def test_a_group_that_is_all_held_out_has_no_bytes(layer: Callable[..., Path]) -> None:
    unique = layer({"text": "one", "domain": "law"}, {"text": "two", "domain": "code"}, name="unique")
    sizes = unique_sizes(unique, ["domain"], lambda content: True)
    assert sizes == {("code",): 0, ("law",): 0}


def test_a_file_that_is_cut_off_is_named(layer: Callable[..., Path]) -> None:
    unique = layer("one", name="unique")
    part = unique / "documents" / "part-00000.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(StageError, match=r"part-00000\.parquet cannot be read"):
        unique_sizes(unique, ["domain"], lambda content: False)
