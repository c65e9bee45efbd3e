from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tasks.corpus.crawling.crawl import main
from tasks.corpus.crawling.report import CrawlReport
from tasks.corpus.reading.reading import read
from tasks.corpus.reading.records import RawRecord, ReadOptions
from tasks.stage import StageError
from tests.corpus.crawling.loopback_site import Handler, Site
from tests.corpus.crawling.written import ledger, responses


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
    assert {headers["User-Agent"] for headers in site.headers} == {site.params().agent}
    assert "(+mill@example.org)" in site.params().agent
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
    site.has_tree(5)
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


def test_a_site_that_is_down_loses_no_pages(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    site.links("/", *(f"/{number}" for number in range(30)))
    for number in range(30):
        site.links(f"/{number}")
    assert crawled(stop_after=1).pages == 1
    answers, site.answers = site.answers, {}

    class Dead(Handler):
        def do_GET(self) -> None:
            self.close_connection = True
            if self.path == "/robots.txt":
                self.send_error(404)

    site.RequestHandlerClass = Dead
    report = crawled()
    assert (report.ended, report.pages, report.pending, report.skipped) == ("unreachable", 1, 30, {})
    site.RequestHandlerClass, site.answers = Handler, answers
    assert crawled().pages == 31


def test_pages_that_fail_alone_are_given_up_with_the_error(
    site: Site, crawled: Callable[..., CrawlReport], tmp_path: Path
) -> None:
    site.links("/", *(f"/broken{number}" for number in range(12)), "/good")
    site.links("/good")

    class Flaky(Handler):
        def do_GET(self) -> None:
            if "broken" in self.path:
                self.close_connection = True
            else:
                super().do_GET()

    site.RequestHandlerClass = Flaky
    report = crawled()
    assert (report.ended, report.pages, report.skipped) == ("complete", 2, {"error": 12})
    assert all(entry["detail"] for entry in ledger(tmp_path / "out").values())


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
    content = {"crawl": {"sites": [site.params().model_dump(mode="json")]}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content), "utf-8")
    assert main(["dcos", str(tmp_path / "out"), "--params", str(tmp_path / "params.yaml")]) == 2
    assert "did you mean `docs`?" in capsys.readouterr().err
