import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from models.hub import load_model
from tasks.corpus.encoding.tables import map_pieces
from tasks.resources import Resources, TrainingResources
from tasks.stage import StageError
from tasks.training.model_params import ModelParams
from tasks.training.pretrain import PretrainParams, PretrainReport, pretrain
from tasks.training.trainer import OptimizerParams
from tests.training.conftest import list_checksums

ROOT = Path(__file__).resolve().parents[2]
TINY = ModelParams(hidden_size=32, layers=2, heads=4, kv_heads=2, intermediate_size=64)

PARAMS = """
pretrain:
  model: {hidden_size: 32, layers: 2, heads: 4, kv_heads: 2, intermediate_size: 64}
  context: 16
  steps: 60
  batch_size: 8
  micro_batch_size: 4
  validate_every: 25
  checkpoint_every: 4
  log_every: 1
"""


def run(tokens: Path, work: Path, **params: Any) -> PretrainReport:
    settings = {"model": TINY, "context": 16, "batch_size": 8, "micro_batch_size": 8, "steps": 6} | params
    resources = Resources(work=work, training=TrainingResources(threads=1))
    return pretrain(tokens, work.parent / "base", PretrainParams(**settings), resources)


class Project:
    """A folder in which ``python -m tasks.training.pretrain`` runs as DVC would run it."""

    def __init__(self, path: Path, tokens: Path) -> None:
        self.path = path
        self.tokens = tokens
        path.mkdir()
        (path / "params.yaml").write_text(PARAMS, "utf-8")

    def start(self) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "GRISTMILL_TRAINING__THREADS": "1",
            "GRISTMILL_RUN_DIRECTORY": str(self.path / "work" / "tracking"),
        }
        with (self.path / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tasks.training.pretrain", self.tokens, "artifacts/base"],
                cwd=self.path,
                env=environment,
                stdout=log,
                stderr=log,
            )

    def finish(self) -> None:
        assert self.start().wait(300) == 0, self.log

    def kill_when(self, reached: Callable[[Path], bool]) -> None:
        """Start, freeze the process where ``reached`` holds of its checkpoint directory, and SIGKILL it."""
        process = self.start()
        try:
            while process.poll() is None:
                if any(reached(path) for path in self.checkpoints()):
                    process.send_signal(signal.SIGSTOP)
                    # It may have gone on before it froze; then let it come there once more.
                    if any(reached(path) for path in self.checkpoints()):
                        break
                    process.send_signal(signal.SIGCONT)
                time.sleep(0.0005)
            assert process.poll() is None, f"it ended before it could be killed\n{self.log}"
        finally:
            process.kill()
            process.wait()

    def stop_when(self, reached: Callable[[Path], bool]) -> int:
        """Start, send SIGTERM where ``reached`` holds of its checkpoint directory, and give the status."""
        process = self.start()
        try:
            while process.poll() is None and not any(reached(path) for path in self.checkpoints()):
                time.sleep(0.0005)
            process.terminate()
            return process.wait(60)
        finally:
            process.kill()
            process.wait()

    def checkpoints(self) -> list[Path]:
        return list((self.path / "work/checkpoints/pretrain").glob("*"))

    def results(self) -> dict[str, bytes]:
        names = ("artifacts/base/model.safetensors", "artifacts/base/history.jsonl", "reports/pretrain.json")
        return {name: (self.path / name).read_bytes() for name in names}

    @property
    def log(self) -> str:
        return (self.path / "log").read_text("utf-8")


def step_of(path: Path) -> int:
    noted = path / "reached"
    return int((noted.exists() and noted.read_text()) or 0)


def is_writing_a_checkpoint_after(step: int) -> Callable[[Path], bool]:
    def reached(path: Path) -> bool:
        return step_of(path) > step and any(path.glob(".step-*.partial/state.pt"))

    return reached


def test_a_process_that_is_killed_again_and_again_ends_with_the_same_bytes(tiny_tokens, tmp_path):
    undisturbed = Project(tmp_path / "undisturbed", tiny_tokens)
    undisturbed.finish()
    killed = Project(tmp_path / "killed", tiny_tokens)
    killed.kill_when(lambda path: step_of(path) in (2, 3))  # before the first checkpoint
    killed.kill_when(lambda path: 16 < step_of(path) < 20)  # between two
    killed.kill_when(is_writing_a_checkpoint_after(24))
    (directory,) = killed.checkpoints()
    assert any(directory.glob(".step-*.partial")), "no checkpoint was being written"
    assert not (killed.path / "artifacts/base").exists()
    assert killed.stop_when(lambda path: step_of(path) > 36) == 143
    assert "which is saved" in killed.log
    assert not (killed.path / "artifacts/base").exists()
    killed.finish()
    assert killed.results() == undisturbed.results()
    assert killed.log.count("resumed from") == 3
    assert killed.checkpoints() == undisturbed.checkpoints() == []


def test_the_output_is_a_model_that_transformers_loads_with_the_reported_loss(tiny_tokens, tmp_path):
    report = run(tiny_tokens, tmp_path / "work", steps=40, precision="fp32")
    base = tmp_path / "base"
    assert len(AutoTokenizer.from_pretrained(base)) == 320
    model = AutoModelForCausalLM.from_pretrained(base)
    tokens = torch.from_numpy(np.fromfile(tiny_tokens / "validation-00000.bin", "<u2").astype(np.int64))
    total = 0.0
    for start in range(0, 129, 16):
        window = tokens[start : start + 17]
        with torch.no_grad():
            logits = model(window[None, :-1]).logits[0]
        losses = torch.nn.functional.cross_entropy(logits, window[1:], reduction="none")
        # Token 70 is the first of the second document: nothing tells it.
        total += sum(loss for place, loss in enumerate(losses.tolist(), start + 1) if place != 70)
    assert report.validation_loss == pytest.approx(total / 128, rel=1e-5)
    assert report.validation_perplexity == pytest.approx(math.exp(total / 128), rel=1e-4)
    # The fixture's index claims four bytes of text a token.
    assert report.validation_bits_per_byte == pytest.approx(total / math.log(2) / (4 * 130), rel=1e-5)
    assert report.parameters == sum(parameter.numel() for parameter in model.parameters())


def test_the_report_counts_targets_and_epochs(tiny_tokens, tmp_path):
    report = run(tiny_tokens, tmp_path / "work", steps=9, precision="bf16")
    assert report.steps == 9
    pieces = sum(len(map_pieces(path)["first"]) for path in tiny_tokens.glob("*.arrow"))
    assert report.tokens_seen == 1201 - pieces  # 72 sequences, each once
    assert report.epochs == 1
    assert report.precision == "bf16"
    assert report.snapshot == "5eed"


def test_the_history_falls_and_holds_no_times(tiny_tokens, tmp_path):
    run(tiny_tokens, tmp_path / "work", steps=60, optimizer=OptimizerParams(learning_rate=1e-2))
    entries = [json.loads(line) for line in (tmp_path / "base/history.jsonl").read_text().splitlines()]
    training = [entry for entry in entries if "loss" in entry]
    assert training[-1]["loss"] < training[0]["loss"] - 1
    assert {key for entry in entries for key in entry} == {
        "step",
        "loss",
        "learning_rate",
        "gradient_norm",
        "validation_loss",
    }


def test_two_runs_give_the_same_bytes_and_another_seed_others(tiny_tokens, tmp_path):
    weights = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / name).mkdir()
        run(tiny_tokens, tmp_path / name / "work", seed=seed)
        weights.append((tmp_path / name / "base/model.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


def test_an_overfit_of_1_2_3_predicts_the_next_token_not_the_one_after(tiny_tokens, tmp_path):
    for path in tiny_tokens.glob("*.bin"):
        (np.arange(len(np.fromfile(path, "<u2"))) % 3 + 1).astype("<u2").tofile(path)
    list_checksums(tiny_tokens)
    run(tiny_tokens, tmp_path / "work", steps=60, optimizer=OptimizerParams(learning_rate=3e-2))
    model = load_model(tmp_path / "base")
    logits_BTV = model(torch.tensor([[1, 2, 3, 1, 2, 3]]))
    assert logits_BTV[0, 1:].argmax(-1).tolist() == [3, 1, 2, 3, 1]


def test_a_flipped_byte_of_the_tokens_is_named_before_the_first_step(tiny_tokens, tmp_path):
    path = tiny_tokens / "train-00001.bin"
    content = bytearray(path.read_bytes())
    content[400] ^= 1
    path.write_bytes(content)
    with pytest.raises(StageError, match=r"train-00001.bin is not the file that index.json lists"):
        run(tiny_tokens, tmp_path / "work")
    assert not (tmp_path / "work" / "checkpoints").exists()


def test_a_tokenizer_larger_than_the_embedding_is_an_error_before_training(tiny_tokens, tmp_path):
    index = json.loads((tiny_tokens / "index.json").read_text()) | {"vocab_size": 310}
    (tiny_tokens / "index.json").write_text(json.dumps(index))
    with pytest.raises(
        StageError, match=r"tokenizer.json gives ids up to 319, but the embedding has 310 rows"
    ):
        run(tiny_tokens, tmp_path / "work")
    assert not (tmp_path / "base").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "does not exist"), ("[]", "is not a tokenizer"), ("{", "is not a tokenizer")],
)
def test_a_tokenizer_that_is_none_is_named(tiny_tokens, tmp_path, content, message):
    path = tiny_tokens / "tokenizer.json"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(StageError, match=rf"tokenizer.json {message}"):
        run(tiny_tokens, tmp_path / "work")


def test_another_context_than_that_of_the_sequences_is_an_error_before_training(tiny_tokens, tmp_path):
    with pytest.raises(StageError, match=r"pretrain.context is 2000, but .* encode.context = 16"):
        run(tiny_tokens, tmp_path / "work", context=2000)


def test_sizes_that_do_not_fit_together_are_named(tiny_tokens, tmp_path):
    with pytest.raises(StageError, match=r"hidden_size 32 is not a multiple of num_attention_heads 5"):
        run(tiny_tokens, tmp_path / "work", model=TINY.model_copy(update={"heads": 5}))


def test_a_checkpoint_that_was_damaged_does_not_change_the_result(tiny_tokens, tmp_path, monkeypatch, caplog):
    results = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        if name == "b":
            # The weights cannot be written at first: what stays are the checkpoints of a finished run.
            monkeypatch.setattr("tasks.training.model_directory.write_model", _refuse)
            with pytest.raises(OSError, match="no output today"):
                run(tiny_tokens, tmp_path / name / "work", checkpoint_every=2)
            monkeypatch.undo()
            (newest,) = (tmp_path / name / "work").glob("checkpoints/*/*/step-00000006/weights.safetensors")
            newest.write_bytes(newest.read_bytes()[:-7])
        run(tiny_tokens, tmp_path / name / "work", checkpoint_every=2)
        results.append((tmp_path / name / "base/model.safetensors").read_bytes())
    assert "step-00000006 is damaged" in caplog.text
    assert results[0] == results[1]


def _refuse(*_: Any, **__: Any) -> None:
    raise OSError("no output today")
