from pathlib import Path

import pytest

from tasks.code import code_hash
from tasks.training.fingerprint import content_hash, fingerprint
from tasks.training.optimizer import OptimizerParams
from tasks.training.pretrain import PretrainParams


def directory(path: Path) -> Path:
    (path / "inner").mkdir(parents=True)
    (path / "a.bin").write_bytes(b"one")
    (path / "inner" / "b.bin").write_bytes(b"two")
    return path


def test_the_hash_of_the_data_does_not_depend_on_where_it_lies(tmp_path):
    assert content_hash([directory(tmp_path / "x")]) == content_hash([directory(tmp_path / "y")])


@pytest.mark.parametrize(
    "change",
    [
        lambda path: (path / "a.bin").write_bytes(b"oNe"),
        lambda path: (path / "a.bin").rename(path / "c.bin"),
        lambda path: (path / "inner" / "b.bin").unlink(),
        lambda path: (path / "c.bin").touch(),
    ],
)
def test_any_change_of_the_data_changes_its_hash(tmp_path, change):
    changed = directory(tmp_path / "changed")
    change(changed)
    assert content_hash([changed]) != content_hash([directory(tmp_path / "as it was")])


def test_each_part_is_told_from_the_others(tmp_path):
    data = directory(tmp_path / "data")
    params = PretrainParams(precision="fp32")
    first = fingerprint("pretrain", [data], params)
    assert first.code == code_hash("tasks.training.pretrain")
    assert first == fingerprint("pretrain", [data], params)

    slower = params.model_copy(update={"optimizer": OptimizerParams(learning_rate=1e-4)})
    other = fingerprint("pretrain", [data], slower)
    assert first.differences(vars(other)) == ["parameters"]
    assert first.digest != other.digest

    (data / "a.bin").write_bytes(b"more")
    assert first.differences(vars(fingerprint("pretrain", [data], params))) == ["data"]


def test_what_precision_resolves_to_is_a_part_of_the_parameters(tmp_path):
    data = directory(tmp_path / "data")
    runs = [fingerprint("pretrain", [data], PretrainParams(precision=name)) for name in ("bf16", "fp32")]
    assert runs[0].differences(vars(runs[1])) == ["parameters"]
