from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.corpus.crawling.report import CrawlReport
from tasks.stage import StageError
from tests.corpus.crawling.loopback_site import Site
from tests.corpus.crawling.written import responses


def test_a_crawl_in_portions_is_the_crawl_in_one(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    site.has_tree(12)
    for done in (4, 8):
        report = crawled(stop_after=4)
        assert (report.ended, report.pages) == ("stop_after", done)
        assert report.pending > 0
    report = crawled(stop_after=100)
    assert (report.ended, report.pages, report.pending, report.skipped) == ("complete", 12, 0, {"status": 1})
    assert Counter(url for url, _, _ in responses(tmp_path / "out")) == Counter(site.pages)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def crawling_process(process: subprocess.Popen[bytes]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("utf-8").split()
    return int(children[0])


def test_after_kills_every_page_is_there_exactly_once(
    site: Site, started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    site.has_tree(20)
    site.seconds = 0.05
    for whom, hits in ((crawling_process, 6), (lambda command: command.pid, 15)):
        process = started()
        wait_for(lambda hits=hits: site.hits.total() >= hits)
        os.kill(whom(process), signal.SIGKILL)
        process.communicate()
    process = started()
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert Counter(url for url, _, _ in responses(tmp_path / "out")) == Counter(site.pages)
    report = CrawlReport.read(tmp_path / "out", "docs")
    assert report is not None
    assert (report.ended, report.pages, report.skipped) == ("complete", 20, {"status": 1})
    again = sum(count - 1 for path, count in site.hits.items() if path != "/robots.txt")
    assert again <= 2  # of each kill, the page under way


def test_sigterm_stops_in_order_and_the_same_command_goes_on(
    site: Site, started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    site.has_tree(20)
    site.seconds = 0.05
    process = started()
    wait_for(lambda: site.hits.total() >= 6)
    process.terminate()
    _, errors = process.communicate()
    assert process.returncode == 130
    assert b"goes on" in errors
    report = CrawlReport.read(tmp_path / "out", "docs")
    assert report is not None
    assert report.ended == "stopped"
    assert report.pages + report.pending + sum(report.skipped.values()) <= 21
    assert not list((tmp_path / "out").glob("*.open"))
    site.seconds = 0.0
    assert started().wait() == 0
    assert Counter(url for url, _, _ in responses(tmp_path / "out")) == Counter(site.pages)


def test_a_second_crawl_of_the_same_job_is_refused(
    site: Site,
    started: Callable[..., subprocess.Popen[bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tasks.corpus.crawling import session

    site.has_tree(3)
    site.seconds = 3.0
    started()
    wait_for(lambda: site.hits.total() >= 1)
    monkeypatch.setattr(session, "LOCK_SECONDS", 0.0)
    order = session.Order(
        out=tmp_path / "out", job=tmp_path / "jobs/docs", params=site.params(), stop_after=None, fresh=False
    )
    with pytest.raises(session.Refused, match="another crawl is at work"):
        session.run(order)


def test_a_job_directory_that_is_lost_and_a_damaged_file_are_told(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    site.has_tree(6)
    crawled(stop_after=2)
    (tmp_path / "job").rename(tmp_path / "moved")
    with pytest.raises(StageError, match="unfinished crawl"):
        crawled()
    (tmp_path / "job/lock").unlink()
    (tmp_path / "job").rmdir()
    (tmp_path / "moved").rename(tmp_path / "job")
    warc = tmp_path / "out/docs-00000.warc.gz"
    whole = warc.read_bytes()
    warc.write_bytes(whole[:-100])
    with pytest.raises(StageError, match="docs-00000.warc.gz cannot be read after byte"):
        crawled()
    warc.write_bytes(whole)
    assert crawled().pages == 6


def test_a_write_that_fails_is_told_and_the_page_stays_pending(
    site: Site, started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    site.has_tree(12)
    process = started(largest_file=4000)
    _, errors = process.communicate()
    assert process.returncode == 1
    assert b"error: docs: [Errno 27] File too large" in errors
    process = started()
    process.communicate()
    assert process.returncode == 0
    assert Counter(url for url, _, _ in responses(tmp_path / "out")) == Counter(site.pages)
