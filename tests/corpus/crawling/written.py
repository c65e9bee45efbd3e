"""What a crawl has written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


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
