"""The spider: every response becomes a page of the WARC or a line of the ledger."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, cast
from urllib.parse import urldefrag, urljoin

import lxml.etree
from scrapy import Request, Spider, signals
from scrapy.exceptions import DownloadCancelledError, IgnoreRequest, StopDownload
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.linkextractors import LinkExtractor
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.gz import gunzip
from scrapy.utils.response import get_meta_refresh
from scrapy.utils.sitemap import Sitemap
from twisted.python.failure import Failure

from tasks.corpus.crawling.frontier import Discovery, Frontier
from tasks.corpus.crawling.parameters import SiteParams
from tasks.corpus.crawling.politeness import RobotsForbid
from tasks.corpus.crawling.scope import Scope
from tasks.corpus.crawling.warc_writer import Headers, Page, WarcWriter

log = logging.getLogger(__name__)

MAX_REDIRECTS = 20
MAX_SITEMAP_BYTES = 50 * 2**20
"""The bound of the protocol, sitemaps.org."""

MAX_FAILURES = 10
"""After so many pages in a row that could not be fetched, the seed is asked whether the site is there."""

MIME_TYPES = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/plain": "text",
    "text/markdown": "text",
    "application/pdf": "pdf",
}


class PageSpider(Spider):
    """Follows the links of a site, breadth first."""

    name = "pages"

    def __init__(
        self, params: SiteParams, scope: Scope, frontier: Frontier, writer: WarcWriter, stop_after: int | None
    ) -> None:
        super().__init__()
        self.params = params
        self.scope = scope
        self.frontier = frontier
        self.writer = writer
        self.last_page = None if stop_after is None else frontier.pages + stop_after
        self.links = LinkExtractor(tags=("a", "area"), attrs=("href",), deny_extensions=[])
        self.failures: list[tuple[Discovery, str]] = []
        self.failure: BaseException | None = None
        self.ended = ""

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> PageSpider:
        """Scrapy's way of making a component."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.headers_received, signal=signals.headers_received)
        crawler.signals.connect(spider.failed, signal=signals.spider_error)
        return spider

    async def start(self) -> AsyncIterator[Request]:
        """Seeds that are new, and all that an earlier run left to do."""
        for url in self.params.seeds:
            self.frontier.discover(Discovery(url, 0, ""), seed=True)
        for url in self.params.sitemaps:
            self.frontier.discover(Discovery(url, 0, "", sitemap=True), seed=True)
        if self._enough():
            return
        for found in self.frontier.pending_discoveries():
            yield self._request(found)

    def closed(self, reason: str) -> None:
        """Remember why the crawl ends."""
        self.ended = reason

    def headers_received(self, headers: Any, request: Request, **_: Any) -> None:
        """Read no body whose type is not kept.

        Raises:
            StopDownload: Scrapy's way of saying so.
        """
        if "discovery" in request.meta and not request.meta["discovery"].sitemap:
            declared = _mime_type(headers.get("Content-Type"))
            if declared and MIME_TYPES.get(declared) not in self.params.content_types:
                raise StopDownload(fail=False)

    def failed(self, failure: Failure, **_: Any) -> None:
        """Stop at a fault of our own (a full disk): what is not on disk stays pending."""
        self.failure = self.failure or failure.value
        self._stop("failed")

    def page(self, response: Response) -> list[Request]:
        """Save a page and return requests for the links that are new."""
        found: Discovery = response.meta["discovery"]
        self.give_up_failures()
        if self.failure or self._enough():
            return []  # still pending
        location = response.headers.get("Location")
        if 300 <= response.status < 400 and location:
            return self._redirected(found, response, location.decode("latin-1"))
        if response.status != 200:
            self.frontier.skip(found, "status", str(response.status))
            return []
        if found.sitemap:
            return self._listed(found, response.body)
        kind = _content_type(response)
        if kind not in self.params.content_types:
            declared = _mime_type(response.headers.get("Content-Type"))
            self.frontier.skip(found, "type", declared or "no Content-Type, and unlike what is kept")
            return []
        requests = self._discover(
            (Discovery(url, found.depth + 1, found.url) for url in self._urls(response)), self._request
        )
        self.frontier.flush()
        self.writer.write(_page(found, response))
        self.frontier.save(found, len(response.body))
        if self._enough():
            self._stop("enough")
        return requests

    def not_fetched(self, failure: Failure) -> None:
        """Say in the ledger why there is no response."""
        request: Request = cast(Any, failure).request  # Scrapy puts it there
        found: Discovery = request.meta["discovery"]
        error = failure.value
        if self.failure or self._enough():
            return
        if isinstance(error, RobotsForbid):
            self.frontier.skip(found, "robots", str(error))
        elif isinstance(
            error, DownloadCancelledError | IgnoreRequest
        ):  # DOWNLOAD_MAXSIZE, plain or compressed
            limit = self.params.max_page_bytes
            self.frontier.skip(found, "size", f"more than max_page_bytes = {limit}")
        else:
            self.failures.append((found, f"{type(error).__name__}: {error}"[:300]))
            if len(self.failures) == MAX_FAILURES:
                deferred_from_coro(self._look_for_the_site())

    def give_up_failures(self) -> None:
        """Put the pages that could not be fetched into the ledger: the site answers, they do not."""
        for found, detail in self.failures:
            self.frontier.skip(found, "error", detail)
        self.failures = []

    async def _look_for_the_site(self) -> None:
        """A site that is down loses no pages: the crawl stops, and they stay pending."""
        assert self.crawler.engine is not None
        try:
            probe = Request(
                self.params.seeds[0], callback=NO_CALLBACK, meta={"robots": True}, dont_filter=True
            )
            await self.crawler.engine.download_async(probe)
        except IgnoreRequest:
            self.give_up_failures()
        except Exception as error:
            log.warning("%s cannot be reached: %s", self.params.seeds[0], error)
            if self.failures:
                self._stop("unreachable")
        else:
            self.give_up_failures()

    def _enough(self) -> bool:
        pages = self.frontier.pages
        return pages >= self.params.max_pages or (self.last_page is not None and pages >= self.last_page)

    def _stop(self, reason: str) -> None:
        assert self.crawler.engine is not None
        if self.crawler.engine.spider is not None and not self.ended:
            self.ended = reason
            deferred_from_coro(self.crawler.engine.close_spider_async(reason=reason))

    def _request(self, found: Discovery, redirects: int = 0) -> Request:
        meta: dict[str, Any] = {"discovery": found, "redirects": redirects}
        if found.sitemap:
            meta["download_maxsize"] = MAX_SITEMAP_BYTES
        return Request(
            found.url, callback=self.page, errback=self.not_fetched, meta=meta, priority=-found.depth
        )

    def _discover(
        self, discoveries: Iterable[Discovery], request: Callable[[Discovery], Request]
    ) -> list[Request]:
        requests = []
        for found in discoveries:
            if self.frontier.discover(found):
                requests.append(request(found))
        return requests

    def _redirected(self, found: Discovery, response: Response, location: str) -> list[Request]:
        redirects = response.meta["redirects"] + 1
        if redirects > MAX_REDIRECTS:
            self.frontier.skip(found, "error", f"more than {MAX_REDIRECTS} redirects")
            return []
        url = _absolute(response.url, location)
        if url is None:
            self.frontier.skip(found, "error", f"redirected to {location[:200]!r}, which is no URL")
            return []
        target = Discovery(url, found.depth, found.url, found.sitemap)
        requests = self._discover([target], lambda found: self._request(found, redirects))
        self.frontier.flush()
        self.frontier.skip(found, "redirect", f"to {url}")
        return requests

    def _listed(self, found: Discovery, body: bytes) -> list[Request]:
        """The pages of a sitemap are seeds; the sitemaps of an index are read too."""
        try:
            content = gunzip(body, max_size=MAX_SITEMAP_BYTES) if _is_gzipped(body) else body
            sitemap = Sitemap(content)
            index = sitemap.type == "sitemapindex"
            urls = [entry["loc"] for entry in sitemap]
        except Exception as error:
            self.frontier.skip(found, "error", f"no sitemap: {type(error).__name__}: {error}"[:300])
            return []
        absolute = [url for url in (_absolute(found.url, url) for url in urls) if url]
        requests = self._discover((Discovery(url, 0, found.url, index) for url in absolute), self._request)
        self.frontier.flush()
        self.frontier.skip(found, "sitemap", f"lists {len(urls)} {'sitemaps' if index else 'pages'}")
        return requests

    def _urls(self, response: Response) -> list[str]:
        if not isinstance(response, HtmlResponse):
            return []
        try:
            urls = [link.url for link in self.links.extract_links(response)]
            urls.append(get_meta_refresh(response)[1] or "")
        except (ValueError, LookupError, lxml.etree.LxmlError) as error:
            log.warning("the links of %s cannot be read: %s", response.url, error)
            return []
        return [url for url in (_absolute(response.url, url) for url in urls if url) if url]


def _absolute(base: str, url: str) -> str | None:
    """The URL as Scrapy would ask for it, without fragment."""
    try:
        return Request(urldefrag(urljoin(base, url.strip())).url).url
    except ValueError:
        return None


def _is_gzipped(body: bytes) -> bool:
    return body.startswith(b"\x1f\x8b")


def _mime_type(header: bytes | None) -> str:
    return (header or b"").split(b";", 1)[0].strip().lower().decode("latin-1")


def _content_type(response: Response) -> str | None:
    """What the server says it is, or what it looks like if the server says nothing."""
    declared = _mime_type(response.headers.get("Content-Type"))
    if declared:
        return MIME_TYPES.get(declared)
    if response.body.startswith(b"%PDF-"):
        return "pdf"
    if isinstance(response, HtmlResponse):
        return "html"
    return "text" if isinstance(response, TextResponse) and b"\0" not in response.body else None


def _page(found: Discovery, response: Response) -> Page:
    request = response.request
    assert request is not None
    host = ("Host", urljoin(response.url, "/").split("/")[2])
    encoding, left = request.meta.get("content_encoding"), response.headers.get("Content-Encoding")
    return Page(
        url=found.url,
        status=response.status,
        protocol=response.protocol or "HTTP/1.1",
        headers=_headers(response.headers),
        body=response.body,
        request_headers=[host, *_headers(request.headers)],
        content_encoding=None if left else encoding,
        depth=found.depth,
        via=found.via,
        address=None if "proxy" in request.meta else str(response.ip_address or "") or None,
    )


def _headers(headers: Any) -> Headers:
    return [(_text(name), _text(value)) for name, values in headers.items() for value in values]


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
