"""What a site's owner asks of robots, asked before the first page of each host (RFC 9309)."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from protego import Protego
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from tasks.corpus.crawling.scope import Scope

log = logging.getLogger(__name__)

MAX_ROBOTS_BYTES = 500 * 1024
"""RFC 9309, section 2.5: at least so much is read."""

MAX_REDIRECTS = 5
"""RFC 9309, section 2.3.1.2."""


class RobotsForbid(IgnoreRequest):
    """robots.txt forbids the page, or cannot be read."""


class RobotsTxt:
    """Downloader middleware: pages are fetched as robots.txt allows, and as slowly as its Crawl-delay asks.

    Unlike Scrapy's own, it reads the status: 4xx allows everything (section 2.3.1.3), a server that fails or
    cannot be reached allows nothing (section 2.3.1.4).
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.rules: dict[str, asyncio.Future[Protego | str]] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsTxt:
        """Scrapy's way of making a component."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Let a page pass, or not.

        Raises:
            RobotsForbid: if robots.txt does not allow it.
        """
        if request.meta.get("robots"):
            return
        parts = urlsplit(request.url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self.rules:
            self.rules[origin] = asyncio.ensure_future(self._fetch(origin))
        rules = await asyncio.shield(self.rules[origin])
        if isinstance(rules, str):
            raise RobotsForbid(rules)
        agent = _product(self.crawler.settings["USER_AGENT"])
        if not rules.can_fetch(request.url, agent):
            raise RobotsForbid("robots.txt disallows it")
        delay = rules.crawl_delay(agent)
        if delay and math.isfinite(delay) and delay > self.crawler.settings.getfloat("DOWNLOAD_DELAY"):
            self._slow_down(request, parts.hostname or "", delay)

    def _slow_down(self, request: Request, host: str, delay: float) -> None:
        # The throttle would bring the delay back to the site's own minimum.
        request.meta["autothrottle_dont_adjust_delay"] = True
        assert self.crawler.engine is not None
        downloader = self.crawler.engine.downloader
        settings = downloader.per_slot_settings.setdefault(host, {})
        if settings.get("delay", 0.0) < delay:
            log.warning("%s asks for %g s between two requests (Crawl-delay)", host, delay)
            settings["delay"] = delay
        if host in downloader.slots:
            downloader.slots[host].delay = max(downloader.slots[host].delay, settings["delay"])

    async def _fetch(self, origin: str) -> Protego | str:
        """The rules of a host, or the words that say why it has none that can be read."""
        assert self.crawler.engine is not None
        scope: Scope = cast(Any, self.crawler.spider).scope  # the spider of this package has one
        url = f"{origin}/robots.txt"
        for _ in range(MAX_REDIRECTS + 1):
            if scope.refusal(url, seed=True):
                return f"robots.txt of {origin} leads off the site, to {url}"
            meta: dict[str, Any] = {"robots": True, "download_maxsize": 20 * MAX_ROBOTS_BYTES}
            try:
                request = Request(url, callback=NO_CALLBACK, meta=meta, dont_filter=True)
                response = await self.crawler.engine.download_async(request)
            except Exception as error:
                return f"robots.txt of {origin} cannot be fetched: {type(error).__name__}: {error}"[:300]
            location = response.headers.get("Location")
            if not (300 <= response.status < 400 and location):
                return _rules(origin, response)
            url = urljoin(url, location.decode("latin-1"))
        return f"robots.txt of {origin} is redirected more than {MAX_REDIRECTS} times"


def _rules(origin: str, response: Response) -> Protego | str:
    if 200 <= response.status < 300:
        return Protego.parse(response.body[:MAX_ROBOTS_BYTES].decode("utf-8", "replace"))
    if 300 <= response.status < 500 and response.status != 429:
        return Protego.parse("")
    return f"robots.txt of {origin} answers with status {response.status}"


def _product(agent: str) -> str:
    """The name that robots.txt addresses: the User-Agent up to its version."""
    return agent.split("/", 1)[0].strip()


class ContentEncoding:
    """Downloader middleware, next to the network: remembers the encoding that Scrapy takes off the body."""

    def process_response(self, request: Request, response: Response) -> Response:
        """Note the header down."""
        encoding = b", ".join(response.headers.getlist("Content-Encoding"))
        request.meta["content_encoding"] = encoding.decode("latin-1") or None
        return response
