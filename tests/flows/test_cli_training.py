from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows import cli
from tasks.corpus.encoding.index import SpecialTokens, TokenIndex, write_index
from tasks.corpus.encoding.parts import encode_part
from tasks.corpus.encoding.slices import SLICE_CHARACTERS
from tasks.corpus.encoding.splits import GROUPS, Layout
from tasks.corpus.encoding.token_bytes import token_bytes
from tasks.corpus.fertility import token_kinds
from tasks.corpus.tokenizer import train_tokenizer
from tasks.training.chat import SPECIAL_TOKENS, ChatTokenizer

TEXTS = ["The mill grinds the grain of the valley.", "A river turns the wheel of the mill, day and night."]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose two documents are encoded and packed, each longer than a sequence."""
    tokens, documents = tmp_path / "data" / "tokens", tmp_path / "data" / "snapshot" / "documents"
    for folder in (tokens, documents):
        folder.mkdir(parents=True)
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    (tmp_path / "params.yaml").write_text("pretrain: {context: 15, batch_size: 2, steps: 3, seed: 1}\n")
    (tmp_path / "resources.yaml").write_text("{}\n")
    train_tokenizer(iter(TEXTS), 300, list(SPECIAL_TOKENS)).save(str(tokens / "tokenizer.json"))
    chat = ChatTokenizer(tokens)
    columns = {"id": [f"{number:032x}" for number in range(2)], "copy": [0, 0], "text": TEXTS}
    columns |= {"split": ["train"] * 2} | {group: ["en"] * 2 for group in GROUPS}
    pq.write_table(pa.table(columns), documents / "part-00000.parquet")
    content = {"parent": None, "note": "", "files": [], "columns": {}, "lineage": [], "counts": {}}
    (documents.parent / "manifest.json").write_text(json.dumps(content | {"snapshot": "5eed"}))
    layout = Layout(
        dtype="uint16", sequence_tokens=16, bos=chat.bos_id, eos=chat.eos_id, pad=chat.pad_id,
        slice_characters=SLICE_CHARACTERS, kinds=token_kinds(chat), bytes_V=token_bytes(tokens),
    )  # fmt: skip
    part = "documents/part-00000.parquet"
    (written,) = encode_part(0, documents.parent / part, part, chat, tokens, layout)
    index = TokenIndex(
        dtype="uint16", vocab_size=chat.vocab_size, context=15, snapshot="5eed", begins=True, ends=True,
        special_tokens=SpecialTokens(bos=chat.bos_id, eos=chat.eos_id, pad=chat.pad_id), tokenizer=[],
        splits={"train": [written.file]},
    )  # fmt: skip
    write_index(tokens, index)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def main(arguments: list[str]) -> int:
    """The command as a shell gives it: the current folder is what it was before."""
    with contextlib.chdir(Path.cwd()):
        return cli.main(arguments)


def test_trace_tells_the_documents_of_a_step(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "1"]) == 0
    whole = capsys.readouterr().out
    lines = [line.split() for line in whole.splitlines() if line.lstrip()[:1].isdigit()]
    assert {line[3] for line in lines} <= {f"{number:032x}" for number in range(2)}
    for line in lines:
        start, end = map(int, line[5].split("–"))
        assert TEXTS[int(line[3], 16)][start:end].strip() == whole.split(line[5])[1].splitlines()[0].strip()
    assert main(["trace", "1", "--sequence", "0"]) == 0
    one = [line for line in capsys.readouterr().out.splitlines() if line.lstrip()[:1].isdigit()]
    assert {line.split()[0] for line in one} == {"0"}
    assert 0 < sum(int(line.split()[2]) for line in one) <= 16  # the context and the last target


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


def test_plan_tells_parameters_memory_and_time_of_this_machine(project, capsys):
    assert main(["plan", "--set", "pretrain.model.layers=3"]) == 0
    told = capsys.readouterr().out
    assert "parameters" in told
    assert "measured just now" in told
    assert "no price_per_hour" in told
    assert "\nsingle" in told
    assert "zero3" not in told


def test_plan_takes_devices_and_prices_of_the_table(project, capsys):
    table = "accelerators: {rented: {memory_gib: 80, teraflops: {bf16: 300}, price_per_hour: 2.5}}\n"
    (project / "resources.yaml").write_text(table)
    assert main(["plan", "--on", "rented", "--devices", "8", "--vocabulary", "32000"]) == 0
    told = capsys.readouterr().out
    assert "8 × rented" in told
    assert "with a vocabulary of 32,000" in told
    assert "zero3 + offload" in told
    assert "no price_per_hour" not in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--on", "abacus"], "resources.yaml has no accelerators.abacus; known are here"),
        (["--devices", "0"], "--devices 0 is not a number from 1 up"),
        (["--set", "pretrain.model.heads=7"], "hidden_size 256 is not a multiple of num_attention_heads 7"),
        (["--set", "pretrain.model.head=7"], "`model.head` is not a known key"),
    ],
)
def test_plan_says_what_is_wrong(project, capsys, arguments, message):
    assert main(["plan", *arguments]) == 2
    assert message in capsys.readouterr().err
