"""The profile of five small layers, as Spark makes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.corpus.profile import ProfileParams, ProfileReport, profile
from tasks.corpus.profiling.results import Profile
from tasks.resources import Resources

LAYERS = ("raw", "scored", "clean", "unique", "mixture")
Made = Callable[..., Path]

TALES: list[dict[str, Any]] = [
    {"text": "the mill by the river", "source": "tales", "language": "en", "domain": "literature"},
    {"text": "le moulin au bord", "source": "tales", "language": "fr", "domain": "literature"},
    {"text": "x = 1", "source": "programs", "language": "zxx", "domain": "technical", "kind": "code"},
    {"text": "水车", "source": "tales", "language": "und", "domain": "literature"},
]


@pytest.fixture
def layers(tmp_path: Path, layer: Made) -> Callable[..., dict[str, Path]]:
    """Write all five layers, each of the documents given for it (those of `clean` where none are), with an
    empty ledger or the entries given as (text of the document, rule, verdict)."""

    def write(ledgers: dict[str, list[tuple[str, str, str]]] | None = None, parts: int = 1, **documents: Any):
        made = {}
        for name in LAYERS:
            chosen = documents.get(name, documents["clean"])
            made[name] = layer(*chosen, name=name, parts=parts)
            table = pq.read_table(made[name] / "documents")
            _ledger(made[name] / "ledger", made, (ledgers or {}).get(name, []))
            assert table.num_rows == len(chosen)
        return made

    return write


def _ledger(directory: Path, made: dict[str, Path], entries: list[tuple[str, str, str]]) -> None:
    directory.mkdir()
    ids = {
        row["text"]: row["id"]
        for path in made.values()
        for row in pq.read_table(path / "documents").to_pylist()
    }
    rows = [{"id": ids[text], "rule": rule, "verdict": verdict} for text, rule, verdict in entries]
    types = pa.schema([("id", pa.string()), ("rule", pa.string()), ("verdict", pa.string())])
    pq.write_table(pa.Table.from_pylist(rows, types), directory / "part-00000.parquet")


def run_profile(made: dict[str, Path], out: Path, resources: Resources, **params: Any) -> ProfileReport:
    raw, scored, clean, unique, mixture = (made[name] for name in LAYERS)
    return profile(raw, scored, clean, unique, mixture, out, ProfileParams(**params), resources)


@pytest.fixture
def profiled(tmp_path: Path, resources: Resources) -> Callable[..., Profile]:
    """Profile layers and read what was written."""

    def run(made: dict[str, Path], name: str = "profile.json", **params: Any) -> Profile:
        out = tmp_path / name
        run_profile(made, out, resources, **params)
        return Profile.model_validate_json(out.read_bytes())

    return run


def test_what_a_stage_let_go_is_counted_by_rule_and_once_in_all(layers, profiled):
    made = layers(
        clean=TALES[:2], scored=TALES, raw=TALES,
        ledgers={
            "clean": [
                ("x = 1", "too_short", "removed"), ("x = 1", "symbols", "removed"),
                ("水车", "too_short", "removed"), ("le moulin au bord", "email", "kept"),
            ],
        },
    )  # fmt: skip
    lost = profiled(made).losses["clean"]
    assert (lost.before, lost.total.documents, lost.total.characters) == ("scored", 2, 7)
    assert (lost.total.document_share, lost.total.character_share) == (0.5, round(7 / 45, 6))
    assert {rule: (loss.documents, loss.characters) for rule, loss in lost.rules.items()} == {
        "symbols": (1, 5), "too_short": (2, 7),
    }  # fmt: skip
    assert lost.trimmed_characters == 0


def test_what_extraction_takes_out_of_a_text_is_trimmed_not_lost(layers, profiled):
    lost = profiled(layers(clean=["mill"], raw=["<p>mill</p>"])).losses["score"]
    assert (lost.total.documents, lost.trimmed_characters) == (0, 7)


def test_an_empty_layer_is_all_zero(layers, profiled):
    found = profiled(layers(clean=TALES, mixture=[])).layers["mixture"]
    assert found.total.documents == 0
    assert found.sources == {}
    assert found.coverage["sources"].effective == 0
    assert found.diversity.topic_spread is None
    assert found.diversity.ngrams[1].distinct_share is None


def test_partitions_and_order_do_not_show(layers, profiled, tmp_path, layer):
    documents = [
        {"text": " ".join(f"w{(i * j) % 97}" for j in range(60)), "source": f"s{i % 3}",
         "signals": {"toxicity": i / 40, "words": 60.0}}
        for i in range(40)
    ]  # fmt: skip
    made = layers(clean=documents)
    profiled(made, sketch_size=32)
    turned = {}
    for name in LAYERS:
        turned[name] = layer(*documents, name=f"turned-{name}", parts=5)
        for part in sorted((turned[name] / "documents").glob("*.parquet")):
            table = pq.read_table(part)
            pq.write_table(table.take(list(reversed(range(len(table))))), part)
        (turned[name] / "ledger").symlink_to(made[name] / "ledger")
    profiled(turned, "turned.json", sketch_size=32)
    assert (tmp_path / "turned.json").read_bytes() == (tmp_path / "profile.json").read_bytes()


def test_the_report_has_the_main_numbers_of_every_layer(layers, resources, tmp_path):
    made = layers(clean=TALES)
    report = run_profile(made, tmp_path / "out.json", resources)
    assert report.documents == dict.fromkeys(LAYERS, 4)
    assert set(report.lost_document_share) == {"score", "clean", "dedup", "mix"}
    assert json.loads(report.model_dump_json())["words"]["raw"] == 13
