"""What a crawl knows of its URLs, on disk before it is acted on: the WARC and the ledger are what is done.

The journal (`discovered.jsonl`) has every URL to fetch before the page that links to it is in the WARC. So
the pending URLs of a crawl, however it ended, are the journal's less those in the WARC and in the ledger.
Scrapy's own job directory cannot tell: its queues write down how long they are only when they are closed in
order, and after a kill requests are lost that its filter of duplicates has seen.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.corpus.crawling.scope import Scope


@dataclass(frozen=True)
class Discovery:
    """A URL to fetch, its distance from a seed, and the page that led to it."""

    url: str
    depth: int
    via: str
    sitemap: bool = False


class Frontier:
    """Every URL once: to fetch, saved, or in the ledger with the reason.

    ``saved`` are the pages that the WARC has, with the sizes of their bodies.
    """

    def __init__(
        self, journal: Path, ledger: Path, scope: Scope, max_depth: int, saved: Iterable[tuple[str, int]]
    ) -> None:
        self.scope = scope
        self.max_depth = max_depth
        self.pages = 0
        self.bytes = 0
        self.skipped: Counter[str] = Counter()
        self._to_fetch: set[bytes] = set()
        self._too_deep: set[bytes] = set()
        self._done: set[bytes] = set()
        for url, size in saved:
            self._count(url, size)
        for line in _whole_lines(ledger):
            self._done.add(_key(line["url"]))
            self.skipped[line["reason"]] += 1
        for line in _whole_lines(journal):
            self._note(_key(line["url"]), line["depth"])
        self._journal_path = journal
        self._journal = journal.open("ab")
        self._ledger = ledger.open("ab")

    @property
    def pending(self) -> int:
        """How many URLs are still to be fetched."""
        return len(self._to_fetch - self._done)

    def discover(self, found: Discovery, seed: bool = False) -> bool:
        """Write down a URL that is new; tell whether it is to be fetched now."""
        refusal = self.scope.refusal(found.url, seed=seed)
        if refusal:
            self.skip(found, refusal.reason, refusal.detail)
            return False
        key = _key(found.url)
        if (
            key in self._done
            or key in self._to_fetch
            or (found.depth > self.max_depth and key in self._too_deep)
        ):
            return False
        _append(self._journal, vars(found))
        return self._note(key, found.depth)

    def pending_discoveries(self) -> Iterator[Discovery]:
        """What is still to be fetched, in the order of discovery."""
        self.flush()
        given: set[bytes] = set()
        for line in _whole_lines(self._journal_path):
            found = Discovery(**line)
            key = _key(found.url)
            if found.depth <= self.max_depth and key not in self._done and key not in given:
                given.add(key)
                yield found

    def save(self, found: Discovery, size: int) -> None:
        """Count a page that the WARC has now."""
        self._count(found.url, size)

    def skip(self, found: Discovery, reason: str, detail: str) -> None:
        """Put a URL that is not saved into the ledger, unless it is done already."""
        key = _key(found.url)
        if key in self._done:
            return
        self._done.add(key)
        self.skipped[reason] += 1
        line = {"url": found.url, "reason": reason, "detail": detail, "depth": found.depth, "via": found.via}
        _append(self._ledger, line)

    def settle(self) -> None:
        """Put everything that is left into the ledger: the crawl ends here."""
        self.flush()
        for line in _whole_lines(self._journal_path):
            found = Discovery(**line)
            if _key(found.url) in self._to_fetch:
                self.skip(found, "page_limit", "max_pages was reached before")
            else:
                self.skip(found, "depth", f"{found.depth} links from a seed, depth is {self.max_depth}")

    def flush(self) -> None:
        """Hand what was written down to the operating system; the journal first."""
        self._journal.flush()
        self._ledger.flush()

    def close(self) -> None:
        """Write everything to the disk."""
        for file in (self._journal, self._ledger):
            file.flush()
            os.fsync(file.fileno())
            file.close()

    def _note(self, key: bytes, depth: int) -> bool:
        """Remember a URL of the journal. One that was too deep may be found again on a shorter way."""
        if depth > self.max_depth:
            self._too_deep.add(key)
            return False
        self._to_fetch.add(key)
        return True

    def _count(self, url: str, size: int) -> None:
        self._done.add(_key(url))
        self.pages += 1
        self.bytes += size


def _key(url: str) -> bytes:
    """What makes two URLs one: Scrapy's fingerprint (order of the query, escapes, fragment), or the text."""
    from scrapy import Request
    from scrapy.utils.request import fingerprint

    try:
        return fingerprint(Request(url))
    except ValueError:
        return url.encode("utf-8", "surrogatepass")


def _append(file: Any, line: dict[str, Any]) -> None:
    file.write(json.dumps(line).encode() + b"\n")


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a JSON Lines file; a last one that a kill tore is cut off."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = 0
        for line in file:
            if not line.endswith(b"\n"):
                file.truncate(end)
                return
            end += len(line)
            yield json.loads(line)
