"""A site on loopback to crawl, which knows what it was asked for."""

from __future__ import annotations

import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tasks.corpus.crawling.parameters import SiteParams

HTML = {"Content-Type": "text/html; charset=utf-8"}


class Site(ThreadingHTTPServer):
    """A site on loopback: what it has, and what it was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
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

    def params(self, **given: Any) -> SiteParams:
        """A crawl of this site without waits, with everything filled in but what a test says."""
        usual = {
            "name": "docs",
            "seeds": [f"{self.url}/"],
            "contact": "mill@example.org",
            "delay": 0.0,
            "autothrottle": False,
            "retries": 0,
            "timeout": 10.0,
        }
        return SiteParams.model_validate(usual | given)

    def has_tree(self, length: int) -> None:
        """Pages, each with two more."""
        for number in range(length):
            children = [child for child in (2 * number + 1, 2 * number + 2) if child < length]
            self.links(f"/{number}" if number else "/", *(f"/{child}" for child in children), "/gone")

    @property
    def pages(self) -> set[str]:
        return {f"{self.url}{path}" for path in self.answers}


class Handler(BaseHTTPRequestHandler):
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
