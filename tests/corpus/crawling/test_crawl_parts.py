from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.crawling.parameters import CrawlParams, SiteParams
from tasks.corpus.crawling.scope import Scope
from tasks.corpus.crawling.settings import settings_of
from tasks.corpus.crawling.warc_writer import (
    Page,
    WarcDamaged,
    WarcWriter,
    salvage,
    saved_pages,
    warc_files,
)
from tasks.parameters import ParameterError, validate

USUAL = {"name": "docs", "seeds": ["https://example.org/guide"], "contact": "https://example.net/crawler"}


def params_of(**given: Any) -> SiteParams:
    return SiteParams.model_validate(USUAL | given)


def page(number: int, **given: Any) -> Page:
    usual: dict[str, Any] = {
        "url": f"https://example.org/{number}",
        "status": 200,
        "protocol": "HTTP/1.1",
        "headers": [("Content-Type", "text/html"), ("Content-Length", "7")],
        "body": f"<p>{number}</p>".encode() * (number + 1),
        "request_headers": [("Host", "example.org"), ("User-Agent", "Gristmill/0")],
        "content_encoding": None,
        "depth": number,
        "via": "https://example.org/",
        "address": "192.0.2.1",
    }
    return Page(**usual | given)


def write(directory: Path, *given: Page, max_file_bytes: int = 2**30) -> WarcWriter:
    writer = WarcWriter(directory, "docs", max_file_bytes, {"software": "Gristmill"})
    for one in given:
        writer.write(one)
    return writer


def test_the_defaults_are_polite() -> None:
    settings = settings_of(params_of(), Path("job"))
    assert settings["DOWNLOAD_DELAY"] == 1.0
    assert settings["DOWNLOAD_DELAY_JITTER"] == 0.0
    assert settings["CONCURRENT_REQUESTS_PER_DOMAIN"] == 1
    assert settings["AUTOTHROTTLE_ENABLED"] is True
    assert "tasks.corpus.crawling.politeness.RobotsTxt" in {
        name for name, place in settings["DOWNLOADER_MIDDLEWARES"].items() if place is not None
    }
    assert settings["USER_AGENT"].startswith("Gristmill/")
    assert "https://example.net/crawler" in settings["USER_AGENT"]


def test_what_a_person_sets_reaches_scrapy() -> None:
    given = params_of(delay=2.5, concurrency=3, retries=5, timeout=7.0, max_page_bytes=99, user_agent="X/1")
    settings = settings_of(given, Path("job"))
    names = ("DOWNLOAD_DELAY", "CONCURRENT_REQUESTS_PER_DOMAIN", "RETRY_TIMES", "DOWNLOAD_TIMEOUT")
    assert [settings[name] for name in names] == [2.5, 3, 5, 7.0]
    assert (settings["DOWNLOAD_MAXSIZE"], settings["USER_AGENT"]) == (99, "X/1")


def test_nothing_but_http_is_spoken_and_no_door_is_open() -> None:
    settings = settings_of(params_of(), Path("job"))
    assert settings["DOWNLOAD_HANDLERS"] == dict.fromkeys(("data", "file", "ftp", "s3"))
    doors = ("COOKIES_ENABLED", "TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED")
    assert [settings[door] for door in doors] == [False, False, False]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"seeds": ["file:///etc/passwd"]}, "no http:// or https://"),
        ({"seeds": ["example.org"]}, "no http:// or https://"),
        ({"seeds": ["https://me:secret@example.org/"]}, "user name"),
        ({"seeds": ["https://example.org:port/"]}, "port"),
        ({"seeds": []}, "at least 1 item"),
        ({"allowed_domains": ["https://example.org/"]}, "is no domain"),
        ({"allowed_domains": ["example.com"]}, "off_site"),
        ({"sitemaps": ["https://example.com/sitemap.xml"]}, "off_site"),
        ({"deny": ["(unclosed"]}, "no regular expression"),
        ({"contact": "me"}, "a URL .* or an e-mail address"),
        ({"contact": "a@b.org\r\nX-Evil: 1"}, "in ASCII|e-mail address"),
        ({"user_agent": "Mill\r\nX-Evil: 1"}, "user_agent"),
        ({"name": "../x"}, "name"),
        ({"content_types": ["image"]}, "'html', 'text' or 'pdf'"),
        ({"delay": -1.0}, "greater than or equal to 0"),
        ({"dept": 3}, "did you mean `depth`"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ParameterError, match=complaint):
        validate({"sites": [USUAL | given]}, CrawlParams, "params.yaml: crawl")


def test_a_contact_is_required_and_names_are_distinct() -> None:
    without = {key: value for key, value in USUAL.items() if key != "contact"}
    with pytest.raises(ParameterError, match="contact"):
        validate({"sites": [without]}, CrawlParams, "crawl")
    with pytest.raises(ParameterError, match="two sites are named docs"):
        validate({"sites": [USUAL, USUAL]}, CrawlParams, "crawl")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://example.org/a", None),
        ("http://example.org/a", None),
        ("https://EXAMPLE.org./a", None),
        ("https://www.example.org/a", None),
        ("https://badexample.org/", "off_site"),
        ("https://example.org.evil.net/", "off_site"),
        ("https://example.org:8443/", "off_site"),
        ("http://127.0.0.1/", "off_site"),
        ("http://[::1]/", "off_site"),
        ("http://169.254.169.254/latest/meta-data", "off_site"),
        ("ftp://example.org/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("https://example.org@evil.net/", "url"),
        ("https://evil.net\\@example.org/", "url"),
        ("https://me@example.org/", "url"),
        ("https://example.org:99999/", "url"),
        ("https://[broken/", "url"),
        ("https://example.org/" + "x" * 3000, "url"),
        ("https://example.org/photo.JPG", "type"),
        ("https://example.org/paper.pdf", None),
    ],
)
def test_a_url_belongs_to_the_site_or_is_refused_with_a_reason(url: str, reason: str | None) -> None:
    refusal = Scope(params_of()).refusal(url)
    assert (refusal.reason if refusal else None) == reason


def test_a_port_that_is_written_out_is_the_only_one() -> None:
    scope = Scope(params_of(seeds=["http://127.0.0.1:8000/"]))
    assert scope.refusal("http://127.0.0.1:8000/a") is None
    for other in ("http://127.0.0.1:8001/", "http://127.0.0.1/", "http://a.127.0.0.1:8000/"):
        refusal = scope.refusal(other)
        assert refusal is not None
        assert refusal.reason == "off_site"


def test_patterns_choose_but_seeds_are_exempt() -> None:
    scope = Scope(params_of(allow=[r"/docs/"], deny=[r"\?print=", r"/docs/old/"]))
    refused = {
        path: scope.refusal(f"https://example.org{path}") is not None
        for path in ("/docs/a", "/docs/old/a", "/docs/a?print=1", "/blog")
    }
    assert refused == {"/docs/a": False, "/docs/old/a": True, "/docs/a?print=1": True, "/blog": True}
    assert scope.refusal("https://example.org/guide", seed=True) is None


def test_only_what_decides_which_pages_are_saved_is_compared_between_runs() -> None:
    assert params_of(delay=9.0, timeout=5.0).what_decides() == params_of().what_decides()
    assert params_of(depth=1).what_decides() != params_of().what_decides()


def test_a_warc_file_holds_what_the_standard_asks_for(tmp_path: Path) -> None:
    from warcio.archiveiterator import ArchiveIterator

    write(tmp_path, page(0, via=""), page(2)).close()
    with (tmp_path / "docs-00000.warc.gz").open("rb") as file:
        found = [
            (record.rec_type, record.rec_headers, record.http_headers, record.content_stream().read())
            for record in ArchiveIterator(file, check_digests=True)
        ]
    assert [kind for kind, *_ in found] == ["warcinfo", *("response", "request", "metadata") * 2]
    assert all(headers.protocol == "WARC/1.1" for _, headers, _, _ in found)
    _, response, http, body = found[4]
    assert body == page(2).body
    assert http.statusline == "200 OK"
    assert response.get_header("WARC-Target-URI") == "https://example.org/2"
    assert response.get_header("WARC-IP-Address") == "192.0.2.1"
    assert response.get_header("WARC-Payload-Digest").startswith("sha1:")
    assert response.get_header("WARC-Date").endswith("Z")
    _, request, asked, _ = found[5]
    assert request.get_header("WARC-Concurrent-To") == response.get_header("WARC-Record-ID")
    assert (asked.protocol, asked.statusline) == ("GET", "/2 HTTP/1.1")
    assert found[6][3] == b"via: https://example.org/\r\nhopsFromSeed: LL\r\n"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "Mühle", "a\r\n\r\nbody", ""])
def test_no_header_of_a_server_breaks_the_record(tmp_path: Path, value: str) -> None:
    from warcio.archiveiterator import ArchiveIterator

    write(tmp_path, page(1, headers=[("X-Odd", value), ("Content-Type", "text/html")])).close()
    with (tmp_path / "docs-00000.warc.gz").open("rb") as file:
        records = [(record.http_headers, record.content_stream().read()) for record in ArchiveIterator(file)]
    http, body = records[1]
    assert body == page(1).body
    assert [name for name, _ in http.headers] == ["X-Odd", "Content-Type", "Content-Length"]


def test_wherever_a_kill_cuts_a_file_whole_pages_stay_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / ".", page(0), page(1), page(2))
    (left,) = warc_files(tmp_path, "docs")
    assert left.name == "docs-00000.warc.gz.open"
    whole = left.read_bytes()
    seen = set()
    for length in range(0, len(whole) + 1, 13):
        left.write_bytes(whole[:length])
        salvage(tmp_path, "docs")
        assert not left.exists()
        saved = list(saved_pages(tmp_path, "docs"))
        assert saved == [(page(number).url, len(page(number).body)) for number in range(len(saved))]
        seen.add(len(saved))
        for path in warc_files(tmp_path, "docs"):
            assert gzip.decompress(path.read_bytes()).count(b"WARC-Type: response") == len(saved)
            path.unlink()
    left.write_bytes(whole)
    salvage(tmp_path, "docs")
    assert len(list(saved_pages(tmp_path, "docs"))) == 3
    assert seen >= {0, 1, 2}


def test_a_flipped_bit_in_a_closed_file_is_an_error_and_never_a_page_less(tmp_path: Path) -> None:
    write(tmp_path, page(0), page(1), page(2)).close()
    (path,) = warc_files(tmp_path, "docs")
    whole = path.read_bytes()
    for offset in range(0, len(whole), 97):
        path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 0x40]) + whole[offset + 1 :])
        try:
            saved = len(list(saved_pages(tmp_path, "docs")))
        except WarcDamaged:
            continue
        assert saved == 3


def test_a_new_file_gets_the_next_number_whatever_other_crawls_are_there(tmp_path: Path) -> None:
    (tmp_path / "docs-old-00007.warc.gz").touch()
    write(tmp_path, page(0)).close()
    write(tmp_path, page(1), page(2), max_file_bytes=1).close()
    names = [path.name for path in warc_files(tmp_path, "docs")]
    assert names == [f"docs-0000{number}.warc.gz" for number in range(3)]
