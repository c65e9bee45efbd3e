"""The page of a run: whole, safe, and showing what the run left behind."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tasks.corpus.policies.verdict_changes import VerdictChange, VerdictChanges
from tasks.parameters import validate
from tasks.release.circumstances import Circumstances, StageTiming, TrackedRun, look_around
from tasks.release.evidence import Evidence, gather
from tasks.release.page import render
from tasks.release.report import ReportParams, report
from tasks.resources import Resources
from tasks.stage import StageError, Tracker

LINK = "http://127.0.0.1:5000/#/experiments/1/runs/abc"
RUN = Circumstances(
    name="the-run",
    written_at="2026-01-02 03:04 UTC",
    host="here",
    commit="c" * 40,
    dirty=True,
    tracked=TrackedRun("abc", "sqlite:///work/mlflow.db", LINK, "mlflow ui"),
    timings={"pretrain": StageTiming(75.2, 812.0)},
    parameters={"ppo": {"kl": {"coefficient": 0.125}, "note": "<b>bold</b>"}},
)


class Page(HTMLParser):
    """Tags, their attributes, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.text = re.sub(r"\s+", " ", self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.text += " " if tag in ("td", "th", "p", "li", "caption") else ""

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def evidence(finished) -> Evidence:
    return gather(*finished, examples=2, excerpt=420)


@pytest.fixture(scope="module")
def html(evidence) -> str:
    return render("Gristmill", evidence, RUN)


@pytest.fixture(scope="module")
def page(html) -> Page:
    return Page(html)


def test_nothing_outside_the_page_is_referred_to_but_the_tracked_run(html, page):
    references = [
        value
        for _, attributes in page.tags
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "data", "action", "poster", "xlink:href") and value is not None
    ]
    assert {value for value in references if not value.startswith("#")} == {LINK, "data:,"}
    style = html[html.index("<style>") : html.index("</style>")]
    assert not re.search(r"url\(|@import|https?:", style)
    assert not page.named("script")


def test_the_text_of_documents_and_models_is_never_markup(html, page):
    assert "alert(1)" in page.text
    assert "https://example.org/x.png" in page.text
    assert "<script" not in html
    assert not page.named("img")
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert "&lt;b&gt;bold&lt;/b&gt;" in html


def test_the_funnel_has_every_rule_with_its_count_and_a_document(evidence, page):
    for counts in evidence.counts.values():
        for rule, number in counts.removed_by_rule.items():
            assert re.search(rf"{re.escape(rule)} {number:,} ", page.text), rule
    ids = re.findall(r"gristmill explain ([0-9a-f]{32})", page.text)
    assert len(ids) == 9  # eight rules that drop, one that changes
    for example in (rule.example for found in evidence.ledgers.values() for rule in found.rules):
        assert example in ids


def test_what_was_changed_and_kept_is_told_apart(page):
    assert "email 38 kept with 76 changes" in page.text


def test_what_was_asked_of_the_mixture_stands_beside_what_came_out(page):
    assert "law 30.0 % 18.8 % 4 75 300" in page.text


def test_duplicates_stand_side_by_side_with_their_differences_marked(html, page):
    assert "near_duplicate similarity 0.830" in page.text
    assert "<mark>cat</mark>" in html
    assert "<mark>daughter</mark>" in html


def test_every_check_is_stated_with_its_verdict_and_figure(evidence, page):
    assert evidence.results is not None
    for check in evidence.results.checks.values():
        verdict = "✓ passed" if check.passed else "✗ failed"
        assert f"{verdict} {check.statement}" in page.text
    assert "12.06, required ≥ 3" in page.text
    assert "−0.02, required > 0" in page.text


def test_the_loss_curve_is_drawn_against_the_unigram_baseline(page):
    described = [attributes["aria-label"] or "" for attributes in page.named("svg")]
    labels = [label for label in described if re.search(" at (step|update) ", label)]
    assert re.search(r"training from 8\.\d+ at step 5 to .*; unigram baseline at 6\.61", labels[0])
    assert len(labels) == 7


def test_the_run_is_identified(evidence, page):
    for fact in ("the-run", "c" * 40, "with uncommitted changes", "mlflow ui", "1 min 15 s", "812 MiB"):
        assert fact in page.text
    assert evidence.manifest is not None
    assert evidence.manifest.snapshot in page.text
    assert "kl.coefficient 0.125" in page.text


def test_a_screen_reader_finds_headings_captions_and_labels(page):
    tags = [tag for tag, _ in page.tags]
    assert tags.count("h1") == 1
    assert tags.count("table") == tags.count("caption")
    assert all(attributes.get("aria-label") for attributes in page.named("svg"))
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert page.named("html")[0]["lang"] == "en"
    assert any(meta.get("name") == "viewport" for meta in page.named("meta"))


def test_only_the_circumstances_change_the_page(finished, evidence, html):
    assert render("Gristmill", gather(*finished, examples=2, excerpt=420), RUN) == html
    other = dataclasses.replace(RUN, host="elsewhere", written_at="2027-01-01 00:00 UTC")
    changed = render("Gristmill", evidence, other)
    assert changed != html
    restored = changed.replace("elsewhere", "here").replace("2027-01-01 00:00 UTC", "2026-01-02 03:04 UTC")
    assert restored == html


def test_a_run_that_left_nothing_is_a_page_without_data(tmp_path):
    names = ("data", "artifacts", "reports", "reviews")
    data, artifacts, reports, reviews = (tmp_path / name for name in names)
    for directory in (data, artifacts, reports, reviews):
        directory.mkdir()
    summary = report(
        data,
        artifacts,
        reports,
        reviews,
        tmp_path / "index.html",
        params=ReportParams(),
        resources=validate({"work": str(tmp_path / "work")}, Resources, "resources.yaml"),
        tracker=Tracker(),
    )
    page = Page((tmp_path / "index.html").read_text("utf-8"))
    assert page.text.count("no data") >= 10
    assert page.text.count("restored from cache, or not run") == 14
    assert summary.checks_passed == summary.checks_failed == 0
    assert {"reports/clean.json", "assessment", "release", "history of ppo"} <= set(summary.absent)


def test_the_stage_counts_the_checks_and_writes_the_page(finished, tmp_path):
    data, artifacts, reports = finished
    summary = report(
        data,
        artifacts,
        reports,
        data.parent / "reviews",
        tmp_path / "reports" / "index.html",
        params=ReportParams(title="Mill & Co"),
        resources=validate({"work": str(tmp_path / "work")}, Resources, "resources.yaml"),
        tracker=Tracker(),
    )
    assert (summary.checks_passed, summary.checks_failed, summary.checks_without_data) == (2, 1, 0)
    assert summary.absent == []
    assert "<h1>Mill &amp; Co</h1>" in (tmp_path / "reports" / "index.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("broken", "content"),
    [
        ("reports/clean.json", '{"records_in": "many"}'),
        ("reports/encode.json", "{"),
        ("data/profile.json", '{"layers": 3}'),
        ("artifacts/base/history.jsonl", '{"step": 1, "loss": 2}\n{"loss"\n'),
        ("artifacts/assessment/results.json", "[]"),
        ("artifacts/assessment/samples.jsonl", '{"prompt": 3}\n'),
        ("data/snapshot/manifest.json", "{}"),
    ],
)
def test_a_broken_file_is_an_error_that_names_it(finished, tmp_path, broken, content):
    for directory in finished:
        shutil.copytree(directory, tmp_path / directory.name)
    (tmp_path / broken).write_text(content)
    with pytest.raises(StageError, match=re.escape(str(tmp_path / broken))):
        gather(*(tmp_path / directory.name for directory in finished), examples=1, excerpt=100)


def test_the_tracked_run_is_found_through_the_spool(tmp_path, monkeypatch):
    monkeypatch.delenv("GRISTMILL_RUN_DIRECTORY", raising=False)
    spool = tmp_path / "tracking" / "quiet-wheel"
    spool.mkdir(parents=True)
    state = {"experiment": "7", "uri": "http://mlflow:5000/", "run": "r1"}
    (spool / "mlflow.json").write_text(json.dumps(state))
    timing = {"seconds": 3.25, "peak_memory_mib": 99.5, "started": 1.0}
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "clean.json").write_text(json.dumps(timing))
    found = look_around(validate({"work": str(tmp_path)}, Resources, "resources.yaml"), Path(tmp_path))
    assert found.name == "quiet-wheel"
    assert found.tracked is not None
    assert found.tracked.link == "http://mlflow:5000/#/experiments/7/runs/r1"
    assert found.timings == {"clean": StageTiming(3.25, 99.5)}
    assert found.commit is None  # the directory is under no version control


def test_the_last_change_of_rules_is_shown_with_the_documents_that_changed_verdict(evidence, tmp_path):
    change = VerdictChange(before="kept", after="short", documents=7, examples=["a" * 32])
    changes = VerdictChanges(documents=100, changed=7, changes=[change])
    (tmp_path / "kept" / "clean").mkdir(parents=True)
    (tmp_path / "kept" / "clean" / "changes.json").write_text(changes.model_dump_json())
    found = look_around(validate({"work": str(tmp_path)}, Resources, "resources.yaml"), tmp_path)
    page = Page(render("Mill", evidence, dataclasses.replace(RUN, verdict_changes=found.verdict_changes)))
    assert "7 of 100 documents changed verdict" in page.text
    assert f"kept short 7 {'a' * 32}" in page.text
    assert "changed verdict" not in Page(render("Mill", evidence, RUN)).text


def test_a_broken_file_of_changed_verdicts_is_named(tmp_path):
    (tmp_path / "kept" / "clean").mkdir(parents=True)
    (tmp_path / "kept" / "clean" / "changes.json").write_text("{}")
    with pytest.raises(StageError, match="changes.json is not what clean writes"):
        look_around(validate({"work": str(tmp_path)}, Resources, "resources.yaml"), tmp_path)
