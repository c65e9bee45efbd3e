from __future__ import annotations

import contextlib
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from flows import cli

SCORED = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "text", "source", "kind", "language")),
        ("language_score", pa.float64()),
        ("signals", pa.map_(pa.string(), pa.float64())),
    ]
)
LEDGER = pa.schema([("id", pa.string()), ("rule", pa.string()), ("verdict", pa.string())])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with rules, without documents; commands are given from a folder within it."""
    project = tmp_path / "project"
    (project / "within").mkdir(parents=True)
    (project / "dvc.yaml").write_text("stages: {}\n")
    (project / "params.yaml").write_text(
        "clean:\n  presets: []\n  rules: [{name: short, signal: words, minimum: 50}]\n"
    )
    (project / "resources.yaml").write_text(
        "spark: {master: 'local[1]', partitions: 1, driver_memory: 512m,\n"
        "        java_options: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC}\n"
    )
    monkeypatch.chdir(project / "within")
    return project


def main(arguments: list[str]) -> int:
    """The command as a shell gives it: the current folder is what it was before."""
    with contextlib.chdir(Path.cwd()):
        return cli.main(arguments)


def write_scored(project: Path, *words: float) -> None:
    rows = [
        {"id": f"{n:032x}", "text": f"{count} words", "source": "docs", "kind": "book", "language": "en",
         "language_score": 1.0, "signals": {"words": count, "characters": 10.0}}
        for n, count in enumerate(words)
    ]  # fmt: skip
    (project / "data" / "scored" / "documents").mkdir(parents=True)
    path = project / "data" / "scored" / "documents" / "part-00000.parquet"
    pq.write_table(pa.Table.from_pylist(rows, SCORED), path)


def write_clean(layer: Path, rules: dict[str, str | None], minimum: int) -> Path:
    """A clean layer: for each document the rule that removed it."""
    removed = [{"id": id, "rule": rule, "verdict": "removed"} for id, rule in rules.items() if rule]
    kept = pa.table({"id": pa.array([id for id in rules if not rules[id]], pa.string())})
    for part, table in (("documents", kept), ("ledger", pa.Table.from_pylist(removed, LEDGER))):
        (layer / part).mkdir(parents=True)
        pq.write_table(table, layer / part / "part-00000.parquet")
    (layer / "lineage.json").write_text(json.dumps([{"stage": "clean", "parameters": {"minimum": minimum}}]))
    return layer


def change(before: str, after: str, *examples: str) -> dict[str, Any]:
    return {"before": before, "after": after, "documents": len(examples), "examples": examples}


def test_sweep_prints_a_table_and_leaves_a_page_with_its_figures(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_scored(folder, 10, 49, 60)
    assert main(["sweep", "short", "--kinds", "book", "--examples", "1"]) == 0
    shown = capsys.readouterr().out
    assert ["*", "50", "33.3", "%"] in [line.split()[:4] for line in shown.splitlines()]
    page = folder / "reports" / "sweeps" / "short.html"
    assert str(page) in shown
    assert "49 words" in page.read_text("utf-8")
    assert "10 words" not in page.read_text("utf-8")
    (curve,) = json.loads(page.with_suffix(".json").read_text("utf-8"))["curves"]
    assert [example["value"] for example in curve["just_removed"]] == [49]
    assert sorted(path.name for path in page.parent.iterdir()) == ["short.html", "short.json"]


def test_sweep_takes_a_signal_a_value_and_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_scored(folder, 10, 49, 60)
    assert main(["sweep", "words", "--at", "55", "--out", "here"]) == 0
    assert "other rules on this signal: short" in capsys.readouterr().out
    assert (folder / "within" / "here" / "words.html").exists()
    assert not (folder / "reports").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["shrot"], "no rule `shrot`, and there is no signal of that name; did you mean `short`?"),
        (["short", "--sources", "docs", "dosc"], "no document has the source dosc; did you mean `docs`?"),
        (["short", "--examples", "-1"], "--examples -1: it must be 0 or more"),
        (["short", "--at", "nan"], "examples can be shown at a number, not at nan"),
    ],
)
def test_sweep_says_what_is_wrong(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    write_scored(folder, 10)
    assert main(["sweep", *arguments]) == 2
    assert complaint in capsys.readouterr().err
    assert not (folder / "reports").exists()


def test_sweep_needs_scored_documents_and_a_valid_policy(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "short"]) == 2
    assert "has no documents: `gristmill run corpus`" in capsys.readouterr().err
    (folder / "params.yaml").write_text("clean: {ruels: []}\n")
    assert main(["sweep", "short"]) == 2
    assert "`ruels` is not a known key; did you mean `rules`?" in capsys.readouterr().err


def test_verdicts_tells_what_clean_noted_of_the_last_change(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = {"a" * 32: None, "b" * 32: "short"}
    write_clean(folder / "data" / "clean", rules, minimum=2)
    assert main(["verdicts"]) == 0
    assert "no change of rules is known yet" in capsys.readouterr().out

    work = folder / "work" / "kept" / "clean"
    write_clean(work / "before", rules, minimum=2)  # as clean leaves it: the layer that it has just made
    told = {"documents": 2, "changed": 1, "changes": [change("kept", "short", "b" * 32)]}
    (work / "changes.json").write_text(json.dumps(told))
    assert main(["verdicts"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("1 of 2 documents changed verdict\n")
    assert ["kept", "short", "1", "b" * 12] in [line.split() for line in shown.splitlines()]
    assert "`gristmill explain ID`" in shown


def test_verdicts_reads_a_changes_file_of_another_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = folder / "within" / "changes.json"
    told.write_text(json.dumps({"documents": 7, "changed": 0, "changes": []}))
    assert main(["verdicts", "changes.json"]) == 0
    assert capsys.readouterr().out == "0 of 7 documents changed verdict\n"
    assert main(["verdicts", "changes.json", "elsewhere"]) == 2
    assert "tells of two layers by itself" in capsys.readouterr().err
    told.write_text("{}")
    assert main(["verdicts", "changes.json"]) == 2
    assert "changes.json is not what clean writes" in capsys.readouterr().err


def test_verdicts_compares_layers_of_runs_and_what_a_checkout_brought_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strict = write_clean(folder / "data" / "clean", {"a": "short", "b": None}, minimum=2)
    other = folder / "work" / "runs" / "mild"
    write_clean(other / "data" / "clean", {"a": None, "b": None}, minimum=1)
    assert main(["verdicts", "../work/runs/mild"]) == 0
    assert ["kept", "short", "1", "a"] in [line.split() for line in capsys.readouterr().out.splitlines()]
    assert main(["verdicts", str(strict), "../work/runs/mild"]) == 0
    assert ["short", "kept", "1", "a"] in [line.split() for line in capsys.readouterr().out.splitlines()]

    # The last run of clean was another's than the one that data/clean is of now: what was noted is stale.
    write_clean(folder / "work" / "kept" / "clean" / "before", {"a": "lines", "b": None}, minimum=3)
    (folder / "work" / "kept" / "clean" / "changes.json").write_text("stale")
    assert main(["verdicts"]) == 0
    assert ["lines", "short", "1", "a"] in [line.split() for line in capsys.readouterr().out.splitlines()]


def test_verdicts_names_what_is_no_layer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verdicts"]) == 2
    missing = folder / "data" / "clean"
    assert f"{missing} is no layer with documents and ledger" in capsys.readouterr().err
    assert main(["verdicts", "nowhere"]) == 2
    assert f"{folder / 'within' / 'nowhere'} is no layer" in capsys.readouterr().err


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        links = "".join(f'<a href="/{n}.html">{n}</a>' for n in range(3))
        body = b"" if self.path == "/robots.txt" else f"<p>{self.path}</p>{links}".encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    """Four pages on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    thread.join()
    server.server_close()


NameSites = Callable[..., None]


@pytest.fixture
def name_sites(folder: Path) -> NameSites:
    def write(**seeds: str) -> None:
        sites = [
            {"name": name, "seeds": [seed], "contact": "me@example.org", "delay": 0.0, "autothrottle": False}
            for name, seed in seeds.items()
        ]
        (folder / "params.yaml").write_text(yaml.safe_dump({"crawl": {"sites": sites}}))

    return write


def test_crawl_goes_on_and_begins_anew(
    folder: Path, site: str, name_sites: NameSites, capsys: pytest.CaptureFixture[str]
) -> None:
    name_sites(manuals=site)
    assert main(["crawl", "--stop-after", "2"]) == 0
    assert "manuals: 2 pages" in capsys.readouterr().out
    out = folder / "data" / "crawl"
    assert (folder / "work" / "crawl" / "manuals").is_dir()
    assert main(["crawl", "manuals"]) == 0
    assert "manuals: 4 pages" in capsys.readouterr().out
    saved = b"".join(gzip.decompress(path.read_bytes()) for path in sorted(out.glob("manuals-*.warc.gz")))
    assert all(f"WARC-Target-URI: {site}{n}.html".encode() in saved for n in range(3))
    assert main(["crawl", "--fresh", "--stop-after", "1"]) == 0
    assert "manuals: 1 pages" in capsys.readouterr().out


def test_crawl_writes_where_it_is_told(folder: Path, site: str, name_sites: NameSites) -> None:
    name_sites(one=site, two=site)
    assert main(["crawl", "two", "--out", "here"]) == 0
    assert (folder / "within" / "here" / "two.json").exists()
    assert not (folder / "data").exists()


def test_crawl_without_a_section_says_how_to_write_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["crawl"]) == 2
    said = capsys.readouterr().err
    assert f"{folder / 'params.yaml'} names no site to crawl; write\ncrawl:\n  sites:\n" in said
    example = said.partition("write\n")[2].partition("docs/crawling.md")[0]
    (folder / "params.yaml").write_text(example)
    assert main(["crawl", "manals"]) == 2
    assert "no site named manals; did you mean `manuals`?" in capsys.readouterr().err


def test_crawl_asks_which_of_several_sites(
    folder: Path, name_sites: NameSites, capsys: pytest.CaptureFixture[str]
) -> None:
    name_sites(one="http://127.0.0.1:9/", two="http://127.0.0.1:9/")
    assert main(["crawl"]) == 2
    assert "which site? `crawl.sites` has one, two" in capsys.readouterr().err


def test_crawl_refuses_a_section_that_is_not_valid(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "params.yaml").write_text("crawl: {stes: []}\n")
    assert main(["crawl"]) == 2
    assert "`stes` is not a known key; did you mean `sites`?" in capsys.readouterr().err
