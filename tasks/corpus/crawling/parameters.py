"""Section `crawl` of the parameters: which sites are crawled, how far, and how politely."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from tasks.corpus.crawling.scope import Scope, web_address
from tasks.parameters import StageParams

ContentType = Literal["html", "text", "pdf"]

POLITENESS = {
    "contact", "user_agent", "delay", "concurrency", "autothrottle", "retries", "timeout", "max_file_bytes",
}  # fmt: skip
"""What may change between two runs of one crawl: it decides how pages are fetched, not which."""

_EMAIL = re.compile(r"[^@\s<>()]{1,64}@[^@\s<>()]{1,255}")


class SiteParams(StageParams):
    """One site: where its crawl begins, what belongs to it, and what it may cost its owner."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")
    """Names the files of the crawl."""
    seeds: list[str] = Field(min_length=1)
    sitemaps: list[str] = []
    """Sitemaps or indexes of sitemaps whose pages are seeds too."""
    allowed_domains: list[str] = []
    """`example.org` (its subdomains too, default ports) or `example.org:8080`. Empty: the seeds' hosts."""
    depth: int = Field(default=5, ge=0)
    """Links between a seed and a page, at most."""
    max_pages: int = Field(default=10_000, ge=1)
    max_page_bytes: int = Field(default=10 * 2**20, ge=1)
    """Of a body, before and after decompression."""
    allow: list[str] = []
    """Regular expressions; a URL that none of them is found in is skipped. Empty: all. Seeds are exempt."""
    deny: list[str] = []
    """Regular expressions; a URL that one of them is found in is skipped, seeds excepted."""
    content_types: list[ContentType] = Field(default=["html", "text", "pdf"], min_length=1)
    robots_txt: bool = True
    """Obey robots.txt (RFC 9309). Only the owner of a site has a reason to write `false`."""
    contact: str
    """A URL or an e-mail address by which the site's owner reaches whoever crawls."""
    user_agent: str | None = Field(default=None, pattern=r"^[\x20-\x7e]+$")
    """Default: `Gristmill/VERSION (+CONTACT)`."""
    delay: float = Field(default=1.0, ge=0, le=3600)
    """Seconds between two requests to a host, at least; a longer Crawl-delay of robots.txt wins."""
    concurrency: int = Field(default=1, ge=1, le=16)
    """Requests to a host at a time."""
    autothrottle: bool = True
    """Wait longer than `delay` while the host answers slowly."""
    retries: int = Field(default=2, ge=0, le=10)
    timeout: float = Field(default=30.0, gt=0, le=3600)
    """Seconds for one request."""
    max_file_bytes: int = Field(default=2**30, ge=1)
    """A WARC file that has reached this is closed, and the next one begun."""

    @field_validator("seeds", "sitemaps")
    @classmethod
    def _web_addresses(cls, urls: list[str]) -> list[str]:
        for url in urls:
            web_address(url)
        return urls

    @field_validator("allowed_domains")
    @classmethod
    def _domains(cls, domains: list[str]) -> list[str]:
        for domain in domains:
            if re.search(r"[/@?#\s]", domain) or not urlsplit(f"//{domain}").hostname:
                raise ValueError(f"{domain!r} is no domain; write example.org, or example.org:8080")
            _ = urlsplit(f"//{domain}").port
        return domains

    @field_validator("allow", "deny")
    @classmethod
    def _patterns(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
        return patterns

    @field_validator("contact")
    @classmethod
    def _reachable(cls, contact: str) -> str:
        if not contact.isascii() or not contact.isprintable():
            raise ValueError("write a URL or an e-mail address in ASCII")
        if not _EMAIL.fullmatch(contact):
            try:
                web_address(contact)
            except ValueError:
                raise ValueError(
                    "write a URL (https://…) or an e-mail address by which the site's owner reaches you"
                ) from None
        return contact

    @model_validator(mode="after")
    def _seeds_belong(self) -> SiteParams:
        scope = Scope(self)
        for url in [*self.seeds, *self.sitemaps]:
            if refusal := scope.refusal(url, seed=True):
                raise ValueError(f"{url} could not be fetched: {refusal.reason}, {refusal.detail}")
        return self

    @property
    def agent(self) -> str:
        """The User-Agent header."""
        return self.user_agent or f"Gristmill/{version('gristmill')} (+{self.contact})"

    @property
    def email(self) -> str | None:
        """The contact if it is an e-mail address, for the From header (RFC 9110, section 10.1.2)."""
        return self.contact if _EMAIL.fullmatch(self.contact) else None

    def what_decides(self) -> dict[str, Any]:
        """The parameters that decide which pages are saved."""
        return self.model_dump(mode="json", exclude=POLITENESS)


class CrawlParams(StageParams):
    """All sites."""

    sites: list[SiteParams] = []

    @field_validator("sites")
    @classmethod
    def _distinct(cls, sites: list[SiteParams]) -> list[SiteParams]:
        names = [site.name for site in sites]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two sites are named {name}; their files would be the same")
        return sites
