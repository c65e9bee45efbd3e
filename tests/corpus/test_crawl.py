from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.corpus.crawling.crawl import crawl, main
from tasks.corpus.crawling.parameters import SiteParams
from tasks.corpus.crawling.report import CrawlReport
from tasks.corpus.reading.reading import read
from tasks.corpus.reading.records import RawRecord, ReadOptions
from tasks.stage import StageError

HTML = {"Content-Type": "text/html; charset=utf-8"}


class Site(ThreadingHTTPServer):
    """A site on loopback: what it has, and what it was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.hits: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.seconds = 0.0
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def has(self, path: str, body: str | bytes = "", status: int = 200, **headers: str) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.answers[path] = (status, HTML | {k.replace("_", "-"): v for k, v in headers.items()}, content)

    def links(self, path: str, *targets: str) -> None:
        self.has(path, f"<p>{path}</p>" + "".join(f'<a href="{target}">x</a>' for target in targets))

    @property
    def pages(self) -> set[str]:
        return {f"{self.url}{path}" for path in self.answers}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        site = self.server
        assert isinstance(site, Site)
        site.hits[self.path] += 1
        site.headers.append(dict(self.headers.items()))
        site.times.append(time.monotonic())
        time.sleep(site.seconds)
        status, headers, body = site.answers.get(self.path, (404, HTML, b"not found"))
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:  # a killed crawler hangs up
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


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


def params_of(site: Site, **given: Any) -> SiteParams:
    usual = {
        "name": "docs",
        "seeds": [f"{site.url}/"],
        "contact": "mill@example.org",
        "delay": 0.0,
        "autothrottle": False,
        "retries": 0,
        "timeout": 10.0,
    }
    return SiteParams.model_validate(usual | given)


@pytest.fixture
def crawled(tmp_path: Path, site: Site) -> Callable[..., CrawlReport]:
    def run(stop_after: int | None = None, fresh: bool = False, **given: Any) -> CrawlReport:
        return crawl(
            tmp_path / "out", tmp_path / "job", params_of(site, **given), stop_after=stop_after, fresh=fresh
        )

    return run


def responses(out: Path) -> list[tuple[str, Any, bytes]]:
    """URL, HTTP headers and body of every response, in order, with digests checked by warcio."""
    from warcio.archiveiterator import ArchiveIterator

    found = []
    for path in sorted(out.glob("docs-*.warc.gz")):
        with path.open("rb") as file:
            archive = ArchiveIterator(file, check_digests=True)
            for record in archive:
                body = record.content_stream().read()
                if record.rec_type == "response":
                    found.append(
                        (record.rec_headers.get_header("WARC-Target-URI"), record.http_headers, body)
                    )
    return found


def ledger(out: Path) -> dict[str, dict[str, Any]]:
    lines = (out / "docs.ledger.jsonl").read_text("utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    assert len({entry["url"] for entry in entries}) == len(entries)
    return {entry["url"]: entry for entry in entries}


def test_the_pages_of_a_site_are_saved_once_however_often_they_are_linked(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    site.links("/", "/a", "/b", "/a#part", "/q?x=1&y=2")
    site.links("/a", "/", "/b")
    site.links("/b", "/a", "/b", "/q?y=2&x=1")
    site.links("/q?x=1&y=2", "/")
    report = crawled()
    saved = responses(tmp_path / "out")
    assert sorted(url for url, _, _ in saved) == sorted(site.pages)
    assert {url.removeprefix(site.url): body for url, _, body in saved} == {
        path: body for path, (_, _, body) in site.answers.items()
    }
    assert (report.ended, report.pages, report.pending, report.skipped) == ("complete", 4, 0, {})
    assert report.bytes == sum(len(body) for _, _, body in saved)
    assert all(count == 1 for count in site.hits.values())


def test_every_url_that_is_not_saved_is_in_the_ledger_with_the_reason(
    site: Site, new_site: Callable[[], Site], crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    elsewhere = new_site()
    elsewhere.has("/", "secret")
    site.has("/robots.txt", "User-agent: *\nDisallow: /private\n", Content_Type="text/plain")
    targets = [
        "/private/x", "/gone", "/picture", "/photo.jpg", "/big", "/away", "/one", "/loop", "/bomb", "/later",
        f"{elsewhere.url}/", "ftp://example.org/x", "file:///etc/passwd", "/denied", "mailto:a@example.org",
    ]  # fmt: skip
    site.links("/", *targets)
    site.links("/private/x")
    site.has("/picture", b"\x89PNG", Content_Type="image/png")
    site.has("/photo.jpg", b"\xff\xd8", Content_Type="image/jpeg")
    site.has("/big", "x" * 20_001)
    site.has("/bomb", gzip.compress(b"x" * 20_001), Content_Encoding="gzip")
    site.has("/away", status=302, Location=f"{elsewhere.url}/")
    site.has("/loop", status=302, Location="/loop2")
    site.has("/loop2", status=301, Location="/loop")
    site.has("/later", status=503)
    site.links("/one", "/two")
    site.links("/denied")
    report = crawled(depth=1, max_page_bytes=20_000, deny=["denied$"])
    reasons = {url.removeprefix(site.url): entry["reason"] for url, entry in ledger(tmp_path / "out").items()}
    assert reasons == {
        "/private/x": "robots",
        "/gone": "status",
        "/later": "status",
        "/picture": "type",
        "/photo.jpg": "type",
        "/big": "size",
        "/bomb": "size",
        "/away": "redirect",
        "/loop": "redirect",
        "/loop2": "redirect",
        "/two": "depth",
        "/denied": "pattern",
        f"{elsewhere.url}/": "off_site",
        "ftp://example.org/x": "scheme",
        "file:///etc/passwd": "scheme",
    }
    assert [url for url, _, _ in responses(tmp_path / "out")] == [f"{site.url}/", f"{site.url}/one"]
    assert report.skipped == dict(Counter(reasons.values()))
    assert elsewhere.hits == {}
    assert not {"/private/x", "/photo.jpg", "/denied", "/two"} & set(site.hits)


def test_the_stored_response_is_what_the_server_sent_and_its_headers_are_true_of_it(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    text = "<p>Straße</p>" * 50
    site.links("/", "/latin", "/zipped", "/text")
    site.has("/latin", "<p>Straße</p>".encode("latin-1"), Content_Type="text/html; charset=ISO-8859-1")
    site.has("/zipped", gzip.compress(text.encode()), Content_Encoding="gzip", X_Title="M\xfchle")
    site.has("/text", "plain", Content_Type="text/plain")
    crawled()
    saved = {url.removeprefix(site.url): (http, body) for url, http, body in responses(tmp_path / "out")}
    http, body = saved["/latin"]
    assert body == "<p>Straße</p>".encode("latin-1")
    assert http.get_header("Content-Type") == "text/html; charset=ISO-8859-1"
    http, body = saved["/zipped"]
    assert body.decode() == text
    assert http.get_header("Content-Encoding") is None
    assert http.get_header("X-Crawler-Content-Encoding") == "gzip"
    assert http.get_header("Content-Length") == str(len(text.encode()))
    assert http.get_statuscode() == "200"
    assert saved["/text"][1] == b"plain"


def test_the_server_sees_who_crawls_and_is_asked_for_robots_first(
    site: Site, crawled: Callable[..., CrawlReport]
) -> None:
    site.links("/", "/a")
    crawled()
    assert next(iter(site.hits)) == "/robots.txt"
    assert {headers["User-Agent"] for headers in site.headers} == {params_of(site).agent}
    assert "(+mill@example.org)" in params_of(site).agent
    assert {headers["From"] for headers in site.headers} == {"mill@example.org"}
    assert not any("Cookie" in headers or "Referer" in headers for headers in site.headers)


def test_robots_rules_for_this_crawler_win_and_can_be_switched_off_only_explicitly(
    site: Site, crawled: Callable[..., CrawlReport]
) -> None:
    site.has("/robots.txt", "User-agent: gristmill\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n")
    site.links("/", "/a")
    site.links("/a")
    assert crawled().skipped == {"robots": 1}
    assert crawled(robots_txt=False, fresh=True).pages == 2


def test_a_crawl_delay_is_kept_whatever_the_throttle_thinks(
    site: Site, crawled: Callable[..., CrawlReport]
) -> None:
    site.has("/robots.txt", "User-agent: *\nCrawl-delay: 0.3\n")
    chain(site, 5)
    assert crawled(autothrottle=True).pages == 5
    # Not each gap: a request may arrive late, and the next one in time. Unthrottled all five take no time.
    assert site.times[-1] - site.times[0] > 0.6 * 5 * 0.3


def test_a_site_whose_robots_txt_cannot_be_read_is_not_crawled(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    site.has("/robots.txt", status=500)
    site.links("/")
    report = crawled()
    assert (report.pages, report.skipped) == (0, {"robots": 1})
    assert "status 500" in ledger(tmp_path / "out")[f"{site.url}/"]["detail"]


def test_the_page_limit_holds_and_the_rest_is_named(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    site.links("/", *(f"/{number}" for number in range(9)))
    for number in range(9):
        site.links(f"/{number}")
    report = crawled(max_pages=4, concurrency=3)
    assert (report.ended, report.pages, report.skipped) == ("complete", 4, {"page_limit": 6})
    assert len(responses(tmp_path / "out")) == 4


def test_a_page_is_as_deep_as_its_shortest_way(site: Site, crawled: Callable[..., CrawlReport]) -> None:
    site.links("/", "/long1", "/short")
    site.links("/long1", "/long2")
    site.links("/long2", "/goal")
    site.links("/short", "/goal")
    site.links("/goal", "/beyond")
    report = crawled(depth=2)
    assert (report.pages, report.skipped) == (5, {"depth": 1})


def test_sitemaps_give_seeds(site: Site, crawled: Callable[..., CrawlReport]) -> None:
    site.links("/")
    site.links("/hidden")
    index = f"<sitemapindex><sitemap><loc>{site.url}/map.xml.gz</loc></sitemap></sitemapindex>"
    urls = (
        f"<urlset><url><loc>{site.url}/hidden</loc></url><url><loc>http://example.org/</loc></url></urlset>"
    )
    site.has("/index.xml", index, Content_Type="application/xml")
    site.has("/map.xml.gz", gzip.compress(urls.encode()), Content_Type="application/gzip")
    report = crawled(sitemaps=[f"{site.url}/index.xml"], depth=0)
    assert (report.pages, report.skipped) == (2, {"off_site": 1, "sitemap": 2})


def test_files_are_rotated_by_size_and_have_their_final_names(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    site.links("/", "/a", "/b")
    site.links("/a")
    site.links("/b")
    report = crawled(max_file_bytes=1)
    assert report.files == [f"docs-0000{number}.warc.gz" for number in range(3)]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        [*report.files, "docs.json", "docs.ledger.jsonl"]
    )


def test_a_crawl_that_is_complete_says_so_and_asks_nothing_until_it_is_begun_anew(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    site.links("/", "/a")
    site.links("/a")
    first = crawled()
    hits = site.hits.total()
    assert crawled() == first
    assert site.hits.total() == hits
    with pytest.raises(StageError, match="`depth` was 5.*--fresh"):
        crawled(depth=3)
    assert crawled(depth=0, fresh=True).pages == 1
    assert len(responses(tmp_path / "out")) == 1


def chain(site: Site, length: int) -> None:
    """A tree of pages, each with two more."""
    for number in range(length):
        children = [child for child in (2 * number + 1, 2 * number + 2) if child < length]
        site.links(f"/{number}" if number else "/", *(f"/{child}" for child in children), "/gone")


def test_a_crawl_in_portions_is_the_crawl_in_one(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    chain(site, 12)
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


@pytest.fixture
def started(site: Site, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts the crawl as a command, whose files may be so large."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(largest_file: int | None = None) -> subprocess.Popen[bytes]:
        content = {"crawl": {"sites": [params_of(site).model_dump(mode="json")]}}
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


def crawling_process(process: subprocess.Popen[bytes]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("utf-8").split()
    return int(children[0])


def test_after_kills_every_page_is_there_exactly_once(
    site: Site, started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    chain(site, 20)
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
    chain(site, 20)
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

    chain(site, 3)
    site.seconds = 3.0
    started()
    wait_for(lambda: site.hits.total() >= 1)
    monkeypatch.setattr(session, "LOCK_SECONDS", 0.0)
    order = session.Order(
        out=tmp_path / "out", job=tmp_path / "jobs/docs", params=params_of(site), stop_after=None, fresh=False
    )
    with pytest.raises(session.Refused, match="another crawl is at work"):
        session.run(order)


def test_a_site_that_is_down_loses_no_pages(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    site.links("/", *(f"/{number}" for number in range(30)))
    for number in range(30):
        site.links(f"/{number}")
    assert crawled(stop_after=1).pages == 1
    answers, site.answers = site.answers, {}

    class Dead(_Handler):
        def do_GET(self) -> None:
            self.close_connection = True
            if self.path == "/robots.txt":
                self.send_error(404)

    site.RequestHandlerClass = Dead
    report = crawled()
    assert (report.ended, report.pages, report.pending, report.skipped) == ("unreachable", 1, 30, {})
    site.RequestHandlerClass, site.answers = _Handler, answers
    assert crawled().pages == 31


def test_pages_that_fail_alone_are_given_up_with_the_error(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    site.links("/", *(f"/broken{number}" for number in range(12)), "/good")
    site.links("/good")

    class Flaky(_Handler):
        def do_GET(self) -> None:
            if "broken" in self.path:
                self.close_connection = True
            else:
                super().do_GET()

    site.RequestHandlerClass = Flaky
    report = crawled()
    assert (report.ended, report.pages, report.skipped) == ("complete", 2, {"error": 12})
    assert all(entry["detail"] for entry in ledger(tmp_path / "out").values())


def test_a_job_directory_that_is_lost_and_a_damaged_file_are_told(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    chain(site, 6)
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
    chain(site, 12)
    process = started(largest_file=4000)
    _, errors = process.communicate()
    assert process.returncode == 1
    assert b"error: docs: [Errno 27] File too large" in errors
    process = started()
    process.communicate()
    assert process.returncode == 0
    assert Counter(url for url, _, _ in responses(tmp_path / "out")) == Counter(site.pages)


def test_the_reader_of_warc_files_gives_the_pages(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    site.links("/", "/latin", "/zipped", "/gone")
    site.has("/latin", "<p>Straße</p>".encode("latin-1"), Content_Type="text/html; charset=ISO-8859-1")
    site.has("/zipped", gzip.compress(b"<p>Windm\xc3\xbchle</p>"), Content_Encoding="gzip")
    crawled()
    with (tmp_path / "out/docs-00000.warc.gz").open("rb") as opened:
        records = list(read(opened, "docs-00000.warc.gz", ReadOptions(keep_fields={"url": "url"})))
    texts = {record.fields["url"]: record.text for record in records if isinstance(record, RawRecord)}
    assert len(texts) == len(records) == 3
    assert texts[f"{site.url}/latin"] == "<p>Straße</p>"
    assert texts[f"{site.url}/zipped"] == "<p>Windmühle</p>"


def test_a_site_that_is_not_in_the_parameters_is_answered_with_those_that_are(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = {"crawl": {"sites": [params_of(site).model_dump(mode="json")]}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content), "utf-8")
    assert main(["dcos", str(tmp_path / "out"), "--params", str(tmp_path / "params.yaml")]) == 2
    assert "did you mean `docs`?" in capsys.readouterr().err
