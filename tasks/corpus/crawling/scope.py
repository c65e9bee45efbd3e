"""Which URLs belong to a crawl: decided by the URL alone, before anything is asked of a server."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

if TYPE_CHECKING:
    from tasks.corpus.crawling.parameters import SiteParams

LONGEST_URL = 2083
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Refusal:
    """Why a URL is not fetched; the reason is one word of the ledger."""

    reason: str
    detail: str


class Scope:
    """The rules of one site."""

    def __init__(self, params: SiteParams) -> None:
        domains = params.allowed_domains or [urlsplit(seed).netloc for seed in params.seeds]
        self.domains = [_domain(domain) for domain in domains]
        self.allow = [re.compile(pattern) for pattern in params.allow]
        self.deny = [re.compile(pattern) for pattern in params.deny]
        self.content_types = set(params.content_types)

    def refusal(self, url: str, seed: bool = False) -> Refusal | None:
        """Say why ``url`` is not fetched, or None. A seed need not match the patterns."""
        if len(url) > LONGEST_URL:
            return Refusal("url", f"longer than {LONGEST_URL} characters")
        try:
            scheme = urlsplit(url).scheme
            if scheme not in DEFAULT_PORTS:
                return Refusal("scheme", f"{scheme[:20] or 'no scheme'}, not http or https")
            parts = web_address(url)
            host, port = (parts.hostname or "").rstrip("."), parts.port or DEFAULT_PORTS[scheme]
        except ValueError as error:
            return Refusal("url", str(error))
        if not any(_belongs(host, port, domain) for domain in self.domains):
            return Refusal("off_site", f"{host}:{port} is not among the allowed domains")
        if seed:
            return None
        for pattern in self.deny:
            if pattern.search(url):
                return Refusal("pattern", f"denied by {pattern.pattern}")
        if self.allow and not any(pattern.search(url) for pattern in self.allow):
            return Refusal("pattern", "matches no pattern of `allow`")
        extension = PurePosixPath(unquote(parts.path)).suffix.lower().removeprefix(".")
        if extension in self.skipped_extensions:
            return Refusal("type", f"file name ends with .{extension}")
        return None

    @cached_property
    def skipped_extensions(self) -> set[str]:
        """File names that promise no text: asking for them would only cost the site."""
        from scrapy.linkextractors import IGNORED_EXTENSIONS

        return set(IGNORED_EXTENSIONS) - (self.content_types & {"pdf"})


def web_address(url: str) -> SplitResult:
    """Take an HTTP(S) URL apart.

    Raises:
        ValueError: if it is none, or carries a user name, which a WARC would publish.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no http:// or https:// URL")
    if re.search(r"[\s\x00-\x1f\x7f]", url):
        raise ValueError(f"{url!r} has white space in it")
    if "@" in parts.netloc:
        raise ValueError("a URL with a user name in it is not crawled")
    _ = parts.port  # raises if it is no number
    return parts


def _domain(domain: str) -> tuple[str, int | None]:
    parts = urlsplit(f"//{domain}")
    return (parts.hostname or "").rstrip("."), parts.port


def _belongs(host: str, port: int, domain: tuple[str, int | None]) -> bool:
    name, wanted = domain
    if port not in (DEFAULT_PORTS.values() if wanted is None else (wanted,)):
        return False
    return host == name or (not _is_address(name) and host.endswith(f".{name}"))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
