"""`gristmill rebalance --dry-run`, and what the command refuses."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows import cli

Capture = pytest.CaptureFixture[str]

PARENT = "1" * 64
"""Digits alone: as a parameter it must not become a number."""


@pytest.fixture
def corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_domains: Callable[[Path, dict[str, int]], None]
) -> Path:
    """A project with 90 kB of general text and 10 kB of law, and a snapshot; commands are given within it."""
    folder = tmp_path / "project"
    (folder / "within").mkdir(parents=True)
    (folder / "dvc.yaml").write_text("stages: {}\n")
    (folder / "params.yaml").write_text("mix:\n  validation_share: 0.0\nsnapshot:\n  parent: null\n")
    write_domains(folder / "data" / "unique", {"general": 900, "law": 100})
    (folder / "data" / "snapshot").mkdir()
    manifest = {"snapshot": PARENT, "parent": None, "note": "", "files": [], "columns": {}, "lineage": []}
    (folder / "data" / "snapshot" / "manifest.json").write_text(json.dumps(manifest | {"counts": {}}))
    monkeypatch.chdir(folder / "within")
    return folder


def main(arguments: str) -> int:
    """The command as a shell gives it: the current folder is what it was before."""
    with contextlib.chdir(Path.cwd()):
        return cli.main(["rebalance", *arguments.split()])


def told(capsys: Capture, arguments: str) -> str:
    """What the command says, and that it did not fail."""
    status = main(arguments)
    shown = capsys.readouterr()
    assert status == 0, shown.err
    return shown.out


def refused(capsys: Capture, arguments: str) -> str:
    assert main(arguments) == 2
    return capsys.readouterr().err


def test_a_dry_run_says_what_would_be_given_and_writes_nothing(corpus: Path, capsys: Capture) -> None:
    before = sorted(corpus.rglob("*"))
    shown = told(capsys, "--by domain --weight law=0.6 --weight general=0.4 --dry-run")
    law = next(" ".join(line.split()) for line in shown.splitlines() if line.startswith("law"))
    assert law == "law – 60.0 % 40.0 % 4.00 10 kB it would be seen 6.0 times, and maximum_epochs is 4"
    assert f'snapshot.parent="{PARENT}"' in shown
    assert [path for path in sorted(corpus.rglob("*")) if path not in before] == []


def test_a_dry_run_tells_of_a_size_that_the_cap_does_not_allow(corpus: Path, capsys: Capture) -> None:
    shown = told(capsys, "--by domain --temperature 1 --maximum-epochs 2 --tokens 100000 --dry-run")
    assert "asked 400 kB, given 200 kB (all that can be given is seen maximum_epochs = 2 times)" in shown


def test_a_dry_run_compares_with_the_mixture_that_there_is(corpus: Path, capsys: Capture) -> None:
    mixture = corpus / "data" / "mixture" / "documents"
    mixture.mkdir(parents=True)
    drawn = [("law", 20, "train"), ("general", 60, "train"), ("law", 99, "validation")]
    rows = [{"text": "x" * size, "domain": domain, "split": split} for domain, size, split in drawn]
    pq.write_table(pa.Table.from_pylist(rows), mixture / "part-00000.parquet")
    shown = told(capsys, "--by domain --weight law=0.3 --dry-run").splitlines()
    assert [line.split()[:3] for line in shown[1:3]] == [["general", "75.0", "%"], ["law", "25.0", "%"]]


def test_levels_that_are_there_stay(corpus: Path, capsys: Capture) -> None:
    params = (corpus / "params.yaml").read_text()
    levels = "  levels: [{by: domain, weights: {law: 0.2}}, {by: language, temperature: 3.3}]\n"
    (corpus / "params.yaml").write_text(params.replace("snapshot:", levels + "snapshot:", 1))
    shown = told(capsys, "--by domain --weight law=0.3 --dry-run")
    assert (
        'mix.levels=[{"by": "domain", "weights": {"law": 0.3}}, {"by": "language", "temperature": 3.3}]'
        in shown
    )
    shown = told(capsys, "--maximum-epochs 9 --dry-run")
    assert "mix.levels" not in shown
    assert "mix.maximum_epochs=9.0" in shown
    assert "general · en" in shown
    assert "says this already" in refused(capsys, "--by domain --weight law=0.2 --dry-run")


def test_a_reference_gives_what_it_has_and_tells_what_it_lacks(corpus: Path, capsys: Capture) -> None:
    counts = {"domain": {"law": 30, "medicine": 70}}
    (corpus / "within" / "before.json").write_text(json.dumps({"snapshot": "00ff", "counts": counts}))
    shown = told(capsys, "--by domain --like before.json --dry-run")
    assert "there is none here: medicine 70.0 %; the others share it" in shown
    assert "not in the reference, so left out: general" in shown
    assert '"weights": {"general": 0.0, "law": 1.0}' in shown


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--by domain --weight lwa=0.3", "no documents of domain `lwa`; there are general, law"),
        ("--by domain --weight law=0.8 --weight general=0.3", "more than 1 together, but are 1.1"),
        ("--by domain --weight law=-0.3", "the weight of law must be from 0 to 1, not -0.3"),
        ("--by domain --weight law=a-third", "the share must be a number from 0 to 1, not a-third"),
        ("--by domain --weight law", "--weight law: write it as VALUE=SHARE"),
        ("--by domain --weight law=0.1 --weight law=0.2", "law has a weight already (0.1)"),
        ("--by colour --weight red=1", "--by: Input should be 'source', 'kind', 'domain', 'language'"),
        ("--weight law=0.3", "need the level that they are for"),
        ("--by domain --like shares.json --weight law=0.3", "not both"),
        ("--by domain --like shares.json", "shares.json is not valid JSON"),
        ("--by domain --like few.json", "few.json: mix.levels: no documents of domain `lwa`"),
        ("--by domain --like much.json", "much.json: the weight of law must be from 0 to 1, not 3"),
        ("--by domain --like nowhere", "nor a run in"),
        ("--tokens 5", "mix.levels is empty"),
        ("--by domain --weight law=0.3 --name a/b", "--name: String should match pattern"),
    ],
    ids=[
        "unknown-value", "too-much", "negative", "no-number", "no-share", "twice", "unknown-level",
        "no-level", "like-and-weights", "broken-json", "unknown-value-in-file", "counts-for-shares",
        "unknown-reference", "no-levels", "name",
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(corpus: Path, capsys: Capture, arguments: str, complaint: str) -> None:
    (corpus / "within" / "shares.json").write_text('{"law": 0.3, "gen')
    (corpus / "within" / "few.json").write_text('{"lwa": 0.3}')
    (corpus / "within" / "much.json").write_text('{"law": 3, "general": 7}')
    assert complaint in refused(capsys, f"{arguments} --dry-run")


def test_without_unique_documents_it_says_what_makes_them(corpus: Path, capsys: Capture) -> None:
    shutil.rmtree(corpus / "data" / "unique")
    complaint = refused(capsys, "--by domain --weight law=0.3 --dry-run")
    assert f"no unique documents yet ({corpus / 'data' / 'unique'}): `gristmill run corpus`" in complaint


def test_epochs_of_sources_are_not_given_up_silently(corpus: Path, capsys: Capture) -> None:
    params = (corpus / "params.yaml").read_text()
    (corpus / "params.yaml").write_text(params.replace("mix:", "mix:\n  epochs: {web: 0.5}"))
    assert "mix.epochs (web: 0.5) and shares exclude each other" in refused(
        capsys, "--by domain --weight law=0.3 --dry-run"
    )
