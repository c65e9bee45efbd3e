from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows import cli
from tasks.corpus.token_documents import documents_path, write_token_documents
from tasks.corpus.tokenizer import train_tokenizer
from tasks.training.chat import SPECIAL_TOKENS, ChatTokenizer

TEXTS = ["The mill grinds the grain of the valley.", "A river turns the wheel of the mill, day and night."]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose two documents are encoded; one batch of one sequence holds all of the first."""
    tokens, documents = tmp_path / "data" / "tokens", tmp_path / "data" / "snapshot" / "documents"
    for folder in (tokens, documents):
        folder.mkdir(parents=True)
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    (tmp_path / "params.yaml").write_text("pretrain: {context: 24, batch_size: 2, steps: 3, seed: 1}\n")
    (tmp_path / "resources.yaml").write_text("{}\n")
    train_tokenizer(iter(TEXTS), 300, list(SPECIAL_TOKENS)).save(str(tokens / "tokenizer.json"))
    tokenizer = ChatTokenizer(tokens)
    rows = [[tokenizer.bos_id, *tokenizer.encode(text), tokenizer.eos_id] for text in TEXTS]
    np.array([token for row in rows for token in row], "<u2").tofile(tokens / "train-00000.bin")
    held = [(f"{number:032x}", 0, len(row)) for number, row in enumerate(rows)]
    write_token_documents(documents_path(tokens, "train-00000.bin"), held)
    size = sum(map(len, rows))
    index = {
        "dtype": "uint16", "vocab_size": tokenizer.vocab_size, "snapshot": "5eed",
        "special_tokens": {"bos": tokenizer.bos_id, "eos": tokenizer.eos_id, "pad": tokenizer.pad_id},
        "splits": {"train": [{"file": "train-00000.bin", "tokens": size, "documents": 2, "bytes": 91,
                              "sha256": "0"}]},
    }  # fmt: skip
    (tokens / "index.json").write_text(json.dumps(index), "utf-8")
    columns = {"id": [name for name, _, _ in held], "copy": [0, 0], "text": TEXTS}
    pq.write_table(pa.table(columns), documents / "part-00000.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def main(arguments: list[str]) -> int:
    """The command as a shell gives it: the current folder is what it was before."""
    with contextlib.chdir(Path.cwd()):
        return cli.main(arguments)


def test_trace_tells_the_documents_of_a_step(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "1"]) == 0
    whole = capsys.readouterr().out
    assert f"{0:032x}" in whole
    assert "The mill" in whole
    assert main(["trace", "1", "--sequence", "0"]) == 0
    one = [line for line in capsys.readouterr().out.splitlines() if line.lstrip()[:1].isdigit()]
    assert {line.split()[0] for line in one} == {"0"}
    assert sum(int(line.split()[2]) for line in one) == 25  # the context and the last target


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trace", "4"], "3 steps (pretrain.steps): there is no step 4"),
        (["trace", "0"], "there is no step 0"),
        (["trace", "1", "--sequence", "2"], "2 sequences (pretrain.batch_size), 0 to 1"),
    ],
    ids=["beyond", "zero", "sequence"],
)
def test_what_trace_cannot_show_is_said(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_trace_before_there_are_tokens_names_the_stage(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "data" / "tokens" / "index.json").unlink()
    assert main(["trace", "1"]) == 2
    assert "the stage encode writes it" in capsys.readouterr().err
