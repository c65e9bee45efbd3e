"""A site to crawl and the crawl, within this process or as a command."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.corpus.crawling.crawl import crawl
from tasks.corpus.crawling.report import CrawlReport
from tests.corpus.crawling.loopback_site import Site


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def new_site() -> Iterator[Callable[[], Site]]:
    sites: list[Site] = []

    def start() -> Site:
        site = Site()
        sites.append(site)
        threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return site

    yield start
    for site in sites:
        site.shutdown()
        site.server_close()


@pytest.fixture
def site(new_site: Callable[[], Site]) -> Site:
    return new_site()


@pytest.fixture
def crawled(tmp_path: Path, site: Site) -> Callable[..., CrawlReport]:
    def run(stop_after: int | None = None, fresh: bool = False, **given: Any) -> CrawlReport:
        return crawl(
            tmp_path / "out", tmp_path / "job", site.params(**given), stop_after=stop_after, fresh=fresh
        )

    return run


@pytest.fixture
def started(site: Site, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts the crawl as a command, whose files may be so large."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(largest_file: int | None = None) -> subprocess.Popen[bytes]:
        content = {"crawl": {"sites": [site.params().model_dump(mode="json")]}}
        (tmp_path / "params.yaml").write_text(yaml.safe_dump(content), "utf-8")
        command = [sys.executable, "-m", "tasks.corpus.crawling.crawl", "docs", str(tmp_path / "out")]
        command += ["--job", str(tmp_path / "jobs"), "--params", str(tmp_path / "params.yaml")]
        if largest_file is not None:
            command = ["prlimit", f"--fsize={largest_file}", *command]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()
