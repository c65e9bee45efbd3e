"""Pages as WARC 1.1 (ISO 28500:2017): one gzip member per record, files rotated by size.

A page is three records in this order: response, request, metadata. They are written at once, and the metadata
record comes last, so a page is in a file if its metadata record is. A file has the suffix `.open` until it is
closed; `salvage` closes what a killed crawl left.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import responses
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

OPEN = ".open"
_HEADER_BYTES = 2**17
_CHUNK = 32768

Headers = list[tuple[str, str]]


@dataclass(frozen=True)
class Page:
    """A response as it was received, after content decoding, and what was asked for."""

    url: str
    status: int
    protocol: str
    headers: Headers
    body: bytes
    request_headers: Headers
    content_encoding: str | None
    """The Content-Encoding that was taken off the body."""
    depth: int
    via: str
    """The page whose link led here; empty for a seed."""
    address: str | None
    """IP address of the server."""


class WarcDamaged(Exception):
    """A closed WARC file of this crawl cannot be read to its end."""


class WarcWriter:
    """Appends pages to `NAME-00000.warc.gz` and its successors."""

    def __init__(self, directory: Path, name: str, max_file_bytes: int, info: dict[str, str]) -> None:
        self.directory = directory
        self.name = name
        self.max_file_bytes = max_file_bytes
        self.info = info
        self.file: IO[bytes] | None = None
        self.path = Path()

    def write(self, page: Page) -> None:
        """Append one page, in one write, and hand it to the operating system."""
        if self.file is None:
            self._begin()
        assert self.file is not None
        self.file.write(records(page))
        self.file.flush()
        if self.file.tell() >= self.max_file_bytes:
            self.close()

    def close(self) -> None:
        """Close the file that is being written and give it its name."""
        if self.file is None:
            return
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self.file = None
        self.path.rename(self.path.with_suffix(""))

    def _begin(self) -> None:
        taken = [int(path.name.removesuffix(OPEN)[-13:-8]) for path in warc_files(self.directory, self.name)]
        final = self.directory / f"{self.name}-{max(taken, default=-1) + 1:05d}.warc.gz"
        self.path = final.with_name(final.name + OPEN)
        self.file = self.path.open("xb")
        buffer = BytesIO()
        writer = _writer(buffer)
        writer.write_record(writer.create_warcinfo_record(final.name, self.info))
        self.file.write(buffer.getvalue())


def records(page: Page) -> bytes:
    """The three records of a page, compressed."""
    from warcio.statusandheaders import StatusAndHeaders

    buffer = BytesIO()
    writer = _writer(buffer)
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    shared = {"WARC-Date": date}
    if page.address:
        shared["WARC-IP-Address"] = page.address
    phrase = responses.get(page.status, "")
    status = StatusAndHeaders(f"{page.status} {phrase}".strip(), _stored_headers(page), page.protocol)
    response = _record(writer, page.url, "response", page.body, shared, status)
    concurrent = {**shared, "WARC-Concurrent-To": response.rec_headers.get_header("WARC-Record-ID")}
    line = StatusAndHeaders(f"{_target(page.url)} HTTP/1.1", page.request_headers, "GET")
    request = _record(writer, page.url, "request", b"", concurrent, line)
    fields = {"via": page.via, "hopsFromSeed": "L" * page.depth}
    about = "".join(f"{key}: {value}\r\n" for key, value in fields.items() if value)
    del concurrent["WARC-Date"]
    metadata = _record(writer, page.url, "metadata", about.encode(), {"WARC-Date": date, **concurrent}, None)
    for record in (response, request, metadata):
        writer.write_record(record)
    return buffer.getvalue()


def warc_files(directory: Path, name: str) -> list[Path]:
    """The WARC files of a crawl in order, the one that is being written included."""
    own = re.compile(rf"{re.escape(name)}-\d{{5}}\.warc\.gz(?:{re.escape(OPEN)})?")
    return sorted(path for path in directory.glob("*") if own.fullmatch(path.name))


def salvage(directory: Path, name: str) -> None:
    """Close the file that a killed crawl left: whole pages stay, a torn tail is cut off."""
    for path in warc_files(directory, name):
        if path.suffix != OPEN:
            continue
        urls, end = pages(path)
        if not urls:
            path.unlink()
            continue
        with path.open("rb+") as file:
            file.truncate(end)
            os.fsync(file.fileno())
        path.rename(path.with_suffix(""))


def saved_pages(directory: Path, name: str) -> Iterator[tuple[str, int]]:
    """URL and body size of every page in the closed files of a crawl.

    Raises:
        WarcDamaged: if one of them cannot be read to its end.
    """
    for path in warc_files(directory, name):
        found, end = pages(path)
        if end != path.stat().st_size:
            raise WarcDamaged(
                f"{path} cannot be read after byte {end}; bring a good copy back, or crawl anew with --fresh"
            )
        yield from found


def pages(path: Path) -> tuple[list[tuple[str, int]], int]:
    """URL and body size of the whole pages in a WARC file, and the offset at which the last of them ends."""
    found: list[tuple[str, int]] = []
    end = size = 0
    for stop, content in _members(path):
        header, _, block = content.partition(b"\r\n\r\n")
        kind = _field(header, b"WARC-Type")
        if kind == b"response":
            size = int(_field(header, b"Content-Length") or 0) - len(block.partition(b"\r\n\r\n")[0]) - 4
        elif kind == b"metadata":
            found.append(((_field(header, b"WARC-Target-URI") or b"").decode("utf-8", "replace"), size))
        if kind in (b"metadata", b"warcinfo"):
            end = stop
    return found, end


def _members(path: Path) -> Iterator[tuple[int, bytes]]:
    """Where each whole gzip member ends, and how its content begins; a torn or broken one ends the file."""
    with path.open("rb") as file:
        offset, chunk = 0, b""
        while True:
            inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
            beginning = b""
            while not inflater.eof:
                chunk = chunk or file.read(_CHUNK)
                if not chunk:
                    return
                offset += len(chunk)
                try:
                    content = inflater.decompress(chunk)
                except zlib.error:
                    return
                if len(beginning) < _HEADER_BYTES:
                    beginning += content[:_HEADER_BYTES]
                chunk = b""
            chunk = inflater.unused_data
            offset -= len(chunk)
            yield offset, beginning


def _field(header: bytes, name: bytes) -> bytes | None:
    for line in header.split(b"\r\n"):
        key, _, value = line.partition(b":")
        if key.lower() == name.lower():
            return value.strip()
    return None


def _stored_headers(page: Page) -> Headers:
    """The server's headers, made true of the stored body; what they said before stays under `X-Crawler-`."""
    stored: Headers = []
    for name, value in page.headers:
        if name.lower() == "content-length":
            if value != str(len(page.body)):
                stored.append(("X-Crawler-Content-Length", value))
        elif name.lower() == "transfer-encoding":
            stored.append((f"X-Crawler-{name}", value))
        else:
            stored.append((name, value))
    if page.content_encoding:
        stored.append(("X-Crawler-Content-Encoding", page.content_encoding))
    stored.append(("Content-Length", str(len(page.body))))
    return [(_one_line(name), _one_line(value)) for name, value in stored]


def _one_line(value: str) -> str:
    return re.sub(r"[\r\n\x00]+[ \t]*", " ", value)


def _target(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _writer(buffer: BytesIO) -> Any:
    from warcio.warcwriter import WARCWriter

    return WARCWriter(buffer, gzip=True, warc_version="WARC/1.1")


def _record(writer: Any, url: str, kind: str, block: bytes, headers: dict[str, str], http: Any) -> Any:
    return writer.create_warc_record(
        url,
        kind,
        payload=BytesIO(block),
        length=len(block),
        warc_headers_dict=dict(headers),
        http_headers=http,
    )
