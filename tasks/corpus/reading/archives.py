"""What zip and tar archives have in common: which members are read, and under what name."""

from __future__ import annotations

import fnmatch
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tasks.corpus.reading.records import Quarantined, RawRecord, ReadOptions

Contents = Iterator[RawRecord | Quarantined]
ReadMember = Callable[[io.BufferedReader, str], Contents]

_UNSAFE = re.compile(r"/|[A-Za-z]:|\.\.(?:/|$)|.*/\.\.(?:/|$)", re.S)


class Members:
    """The members of one archive as they come: their names, how many they are, which of them are asked for.

    Nothing is ever written under a member's name. One that leads out of the archive is reported all the same,
    as an attack or a mistake, and the member is not read. A name that comes again gets ``#2``.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._seen: dict[str, int] = {}
        self.count = 0

    def too_many(self, offset: int) -> Quarantined | None:
        """Count one more member; a report if that is one too many."""
        self.count += 1
        limit = self._options.max_members
        if self.count <= limit:
            return None
        detail = f"byte {offset}: more than max_members = {limit}; the rest is not read"
        return Quarantined("", "too_many_members", detail)

    def selected(self, name: str) -> str | None:
        """The name under which a member is read; None if it is not asked for."""
        plain = name.replace("\\", "/")
        while plain.startswith("./"):
            plain = plain[2:].lstrip("/")
        plain = plain.encode("utf-8", "replace").decode()  # names in no encoding have lone surrogates
        if not fnmatch.fnmatch(plain, self._options.files):
            return None
        count = self._seen[plain] = self._seen.get(plain, 0) + 1
        return plain if count == 1 else f"{plain}#{count}"

    def refused(self, member: str, offset: int, size: int) -> Quarantined | None:
        """Why a member is not read, if its name or its length forbid it."""
        if _UNSAFE.match(member):
            detail = f"byte {offset}: the name {member[:200]!r} leads out of the archive"
            return Quarantined(member, "unsafe_name", detail)
        if size > self._options.max_member_bytes:
            limit = self._options.max_member_bytes
            detail = f"byte {offset}: {size} bytes, more than max_member_bytes = {limit}"
            return Quarantined(member, "member_too_long", detail)
        return None


def member_contents(read: ReadMember, stream: io.BufferedReader, member: str) -> Contents:
    """What a member holds, at positions within the archive."""
    for item in read(stream, re.sub(r"#\d+$", "", member)):
        yield replace(item, position=f"{member}!{item.position}" if item.position else member)
