"""What came of a crawl, beside its WARC files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from tasks.stage import StageReport

Ending = Literal["complete", "stop_after", "stopped", "unreachable"]


class CrawlReport(StageReport):
    """Sums over all runs of the crawl. Every URL is a saved page, skipped with a reason, or pending."""

    name: str
    ended: Ending
    pages: int
    """Pages in the WARC files."""
    bytes: int
    """Of their bodies, after content decoding."""
    skipped: dict[str, int]
    """URLs in the ledger by reason."""
    pending: int
    """URLs that the next run fetches."""
    files: list[str]
    parameters: dict[str, Any]
    """Those that decide which pages are saved."""

    @classmethod
    def read(cls, out: Path, name: str) -> CrawlReport | None:
        """The report of an earlier run, if there is one."""
        path = out / f"{name}.json"
        return cls.model_validate_json(path.read_text("utf-8")) if path.exists() else None

    def write(self, out: Path) -> None:
        """Write `NAME.json`, whole or not at all."""
        partial = out / f".{self.name}.json.partial"
        partial.write_text(self.model_dump_json(indent=2) + "\n", "utf-8")
        partial.replace(out / f"{self.name}.json")
