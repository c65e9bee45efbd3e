import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from tasks.resources import Resources
from tasks.stage import Input, Output, StageReport, stage
from tasks.training import checkpoints as module
from tasks.training.checkpoints import (
    Checkpoint,
    CheckpointDirectory,
    CheckpointError,
    discard_when_published,
)
from tasks.training.fingerprint import Fingerprint

ROOT = Path(__file__).resolve().parents[2]
RUN = Fingerprint("pretrain", data="a", code="b", parameters="c")


def checkpoint(step: int) -> Checkpoint:
    weights = {"layer.weight": torch.full((4, 4), float(step)), "norm.weight": torch.ones(4)}
    return Checkpoint(step, weights, {"progress": {"step": step, "history": [{"loss": 0.1}]}, "t": (1, None)})


def saved(work: Path, *steps: int, keep: int = 9) -> Path:
    with CheckpointDirectory(work, RUN, keep) as directory:
        for step in steps:
            directory.save(checkpoint(step))
    return directory.path


def loaded(work: Path, run: Fingerprint = RUN) -> Checkpoint | None:
    with CheckpointDirectory(work, run) as directory:
        return directory.load_newest()


def steps_in(path: Path) -> list[int]:
    return sorted(int(child.name[5:]) for child in path.glob("step-*"))


def test_what_was_saved_is_loaded(tmp_path):
    saved(tmp_path, 10)
    found = loaded(tmp_path)
    assert found is not None
    assert found.step == 10
    assert torch.equal(found.weights["layer.weight"], torch.full((4, 4), 10.0))
    assert found.state == checkpoint(10).state


def test_no_checkpoint_is_none(tmp_path):
    assert loaded(tmp_path) is None


def test_the_newest_few_are_kept(tmp_path):
    assert steps_in(saved(tmp_path, 9, 10, 100, 1000, keep=2)) == [100, 1000]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("name", ["weights.safetensors", "state.pt", "manifest.json"])
@pytest.mark.parametrize("damage", [flip, truncate, empty, Path.unlink])
def test_a_damaged_newest_one_is_reported_and_the_one_before_it_loads(tmp_path, caplog, name, damage):
    path = saved(tmp_path, 10, 20)
    damage(path / "step-00000020" / name)
    found = loaded(tmp_path)
    assert found is not None
    assert found.step == 10
    assert "step-00000020 is damaged" in caplog.text
    assert name in caplog.text


def test_a_manifest_of_another_step_is_damage(tmp_path):
    path = saved(tmp_path, 10, 20)
    shutil.copyfile(path / "step-00000010/manifest.json", path / "step-00000020/manifest.json")
    found = loaded(tmp_path)
    assert found is not None
    assert found.step == 10


def test_all_damaged_is_an_error_that_names_each_and_never_a_new_start(tmp_path):
    path = saved(tmp_path, 10, 20)
    flip(path / "step-00000010/state.pt")
    empty(path / "step-00000020/weights.safetensors")
    with pytest.raises(CheckpointError) as error:
        loaded(tmp_path)
    assert "step-00000010: state.pt does not match its checksum" in str(error.value)
    assert "step-00000020: weights.safetensors has 0 bytes" in str(error.value)
    assert f"Remove {path}" in str(error.value)


def test_a_damaged_one_is_replaced_when_its_step_comes_again(tmp_path):
    path = saved(tmp_path, 10, 20)
    flip(path / "step-00000020/state.pt")
    saved(tmp_path, 20)
    found = loaded(tmp_path)
    assert found is not None
    assert found.step == 20


@pytest.mark.parametrize("part", ["data", "code", "parameters"])
def test_a_checkpoint_of_another_run_is_refused_and_the_difference_named(tmp_path, part):
    values = {"data": "a", "code": "b", "parameters": "c"} | {part: "z"}
    other = Fingerprint("pretrain", **values)
    path = saved(tmp_path, 10)
    path.rename(path.parent / other.digest)
    with pytest.raises(CheckpointError, match=rf"belongs to another run: its {part} differ"):
        loaded(tmp_path, other)


def test_runs_of_another_fingerprint_are_told(tmp_path):
    path = saved(tmp_path, 10)
    other = CheckpointDirectory(tmp_path, Fingerprint("pretrain", data="z", code="b", parameters="z"))
    assert other.others() == [f"{path.name} (another data, parameters)"]


def test_a_second_trainer_is_refused_until_the_first_is_gone(tmp_path):
    with (
        CheckpointDirectory(tmp_path, RUN) as directory,
        pytest.raises(CheckpointError, match=f"{directory.path} is in use"),
    ):
        loaded(tmp_path)
    assert loaded(tmp_path) is None


def test_a_second_process_is_refused_and_the_lock_of_a_dead_one_is_free(tmp_path):
    path = saved(tmp_path, 10)
    code = f"import fcntl, sys, time; f = open({str(path / 'lock')!r}, 'a'); fcntl.flock(f, fcntl.LOCK_EX)\n"
    code += "print('held', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(CheckpointError, match="is in use by another training process"):
                loaded(tmp_path)
        finally:
            holder.kill()
    found = loaded(tmp_path)
    assert found is not None
    assert found.step == 10


def test_what_a_killed_writer_left_is_cleared_and_not_loaded(tmp_path):
    path = saved(tmp_path, 10)
    shutil.copytree(path / "step-00000010", path / ".step-00000020.partial")
    found = loaded(tmp_path)
    assert found is not None
    assert found.step == 10
    assert sorted(child.name for child in path.iterdir()) == ["lock", "step-00000010"]


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The kernel cuts short what is written beyond ``size`` bytes of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("where", ["weights", "state"])
def test_a_write_cut_short_leaves_the_old_ones_and_nothing_else(tmp_path, where):
    path = saved(tmp_path, 10)
    big = {"big": torch.zeros(2**20)}
    too_big = Checkpoint(20, big, {}) if where == "weights" else Checkpoint(20, {}, big)
    too_large = pytest.raises(OSError, match="File too large|unexpected pos")  # safetensors, torch
    with CheckpointDirectory(tmp_path, RUN) as directory, largest_file(2**20), too_large:
        directory.save(too_big)
    assert sorted(child.name for child in path.iterdir()) == ["lock", "step-00000010"]
    found = loaded(tmp_path)
    assert found is not None
    assert found.step == 10


FULL_DISK = """
import errno, subprocess, sys
from pathlib import Path
import torch
from tasks.training.checkpoints import Checkpoint, CheckpointDirectory
from tasks.training.fingerprint import Fingerprint

work = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", work], check=True)
# Another program takes the space between the check and the writing.
CheckpointDirectory._check_space = lambda *_: None
small, big = {"w": torch.ones(8)}, {"w": torch.ones(2**20)}
with CheckpointDirectory(work, Fingerprint("pretrain", "a", "b", "c")) as directory:
    directory.save(Checkpoint(10, small, {}))
    for weights, state in ((big, {}), (small, big)):
        try:
            directory.save(Checkpoint(20, weights, state))
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
        else:
            raise AssertionError("4 MiB went onto a disk of 1 MiB")
        assert sorted(path.name for path in directory.path.iterdir()) == ["lock", "step-00000010"]
        assert directory.load_newest().step == 10
print("the old checkpoint stands")
"""


@pytest.mark.skipif(
    subprocess.run(["unshare", "--map-root-user", "--mount", "true"], capture_output=True).returncode != 0,
    reason="a file system of its own needs mount namespaces",
)
def test_a_disk_that_fills_up_while_writing_is_told_as_such_and_leaves_the_old_ones(tmp_path):
    child = subprocess.run(
        ["unshare", "--map-root-user", "--mount", sys.executable, "-c", FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    assert child.stdout == "the old checkpoint stands\n", child.stderr


def test_too_little_space_is_noticed_before_anything_is_written(tmp_path, monkeypatch):
    path = saved(tmp_path, 10)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(2**30, 2**30 - 1000, 1000))
    monkeypatch.setattr(module, "_write_checkpoint", lambda *_: pytest.fail("written all the same"))
    with pytest.raises(OSError, match="a checkpoint needs 1 MiB, 0 MiB are free") as error:
        saved(tmp_path, 20)
    assert error.value.errno == errno.ENOSPC
    assert steps_in(path) == [10]


def test_the_state_loads_without_unpickling_code(tmp_path):
    path = saved(tmp_path, 10)
    target = path / "step-00000010"
    torch.save({"progress": Path("x")}, target / "state.pt")
    manifest = json.loads((target / "manifest.json").read_text())
    manifest.pop("sha256")
    manifest["files"]["state.pt"] = module._describe(target / "state.pt")
    manifest["sha256"] = module._digest_of(manifest)
    (target / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(Exception, match="Weights only load failed"):
        loaded(tmp_path)


class Report(StageReport):
    steps: int = 1


@discard_when_published
@stage
def pretrain(tokens: Input, base: Output, resources: Resources) -> Report:
    with CheckpointDirectory(resources.work, RUN) as directory:
        directory.save(checkpoint(10))
        if (tokens / "interrupt").exists():
            raise KeyboardInterrupt
        directory.mark_finished()
    assert steps_in(directory.path) == [10]
    if (tokens / "fail").exists():
        raise OSError("cannot write the weights")
    base.mkdir()
    return Report()


def test_checkpoints_of_a_finished_run_go_when_the_output_stands_and_those_of_others_stay(tmp_path):
    work, tokens = tmp_path / "work", tmp_path / "tokens"
    tokens.mkdir()
    unfinished = Fingerprint("pretrain", data="other", code="b", parameters="c")
    with CheckpointDirectory(work, unfinished) as other:
        other.save(checkpoint(5))
    pretrain(tokens, tmp_path / "base", Resources(work=work))
    assert (tmp_path / "base").is_dir()
    assert list((work / "checkpoints/pretrain").iterdir()) == [other.path]


@pytest.mark.parametrize(("mark", "error"), [("interrupt", KeyboardInterrupt), ("fail", OSError)])
def test_checkpoints_stay_as_long_as_the_output_does_not_stand(tmp_path, mark, error):
    work, tokens = tmp_path / "work", tmp_path / "tokens"
    tokens.mkdir()
    (tokens / mark).touch()
    with pytest.raises(error):
        pretrain(tokens, tmp_path / "base", Resources(work=work))
    found = loaded(work)
    assert found is not None
    assert found.step == 10


def test_checkpoints_that_another_trainer_uses_are_left_alone(tmp_path):
    work, tokens = tmp_path / "work", tmp_path / "tokens"
    tokens.mkdir()
    other = Fingerprint("pretrain", data="other", code="b", parameters="c")
    with CheckpointDirectory(work, other) as busy:
        busy.save(checkpoint(5))
        busy.mark_finished()
        pretrain(tokens, tmp_path / "base", Resources(work=work))
        assert steps_in(busy.path) == [5]
