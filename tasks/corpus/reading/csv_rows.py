"""CSV and its kin: RFC 4180, with the delimiters that are met."""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Iterator

from tasks.corpus.reading.lines import lines
from tasks.corpus.reading.mapping import invalid_bytes, record_from_object, too_long
from tasks.corpus.reading.records import Quarantined, RawRecord, ReadOptions

DELIMITERS = ",;\t|"
SNIFFED_BYTES = 2**16
REREAD_BYTES = 2**20
REREAD_SHARE = 4


class _RowTooLong(Exception):
    pass


def read_csv(
    stream: io.BufferedReader, options: ReadOptions, delimiter: str | None
) -> Iterator[RawRecord | Quarantined]:
    """The rows of a table whose first row names the columns; positions are byte offsets.

    A row with more or fewer fields than the first is quarantined, and so is one whose quotes do not pair:
    then reading goes on at the line after the one in which it began. Sets csv's field limit, which is one
    for the process, as high as it must be.
    """
    csv.field_size_limit(max(csv.field_size_limit(), options.max_record_bytes))
    delimiter = delimiter or _delimiter(stream.peek(SNIFFED_BYTES)[:SNIFFED_BYTES], options)
    rows = _Rows(stream, options, delimiter)
    header: list[str] | None = None
    for row in rows.read():
        if isinstance(row, Quarantined):
            yield row
            continue
        position, offset = str(rows.start), rows.start
        if header is None:
            header = row
            if options.text_field not in header:
                known = ", ".join(header)[:200]
                detail = f"byte {offset}: no column `{options.text_field}`, only: {known}"
                yield Quarantined(position, "no_text", detail, rows.raw())
                return
        elif len(row) != len(header):
            detail = f"byte {offset}: {len(row)} fields where the first row has {len(header)}"
            yield Quarantined(position, "ragged_row", detail, rows.raw())
        else:
            yield record_from_object(dict(zip(header, row, strict=True)), position, offset, b"", options)


class _Rows:
    """Rows of fields from lines of bytes; knows the bytes of the row that it gave last."""

    def __init__(self, stream: io.BufferedReader, options: ReadOptions, delimiter: str) -> None:
        self._lines = lines(stream, options.max_record_bytes, None)
        self._again: deque[tuple[int, bytes, bool]] = deque()
        self._options = options
        self._encoding = options.encoding or "utf-8"
        self._delimiter = delimiter
        self._row: list[tuple[int, bytes, bool]] = []
        self._row_bytes = 0
        self._fault: tuple[int, UnicodeDecodeError] | None = None  # the first bad byte of the row
        self._fresh_bytes = 0
        self._reread_bytes = 0

    @property
    def start(self) -> int:
        """The offset of the row that was given last."""
        return self._row[0][0]

    def raw(self) -> bytes:
        """The bytes of the row that was given last."""
        return b"".join(line for _, line, _ in self._row)

    def read(self) -> Iterator[list[str] | Quarantined]:
        """The rows that are not blank."""
        reader = self._reader()
        while True:
            self._row, self._row_bytes, self._fault = [], 0, None
            try:
                row = next(reader, None)
            except _RowTooLong:
                yield too_long(str(self.start), self.start, self.raw()[:200], self._options, "row")
                reader = self._reader()
                self._go_back()
            except csv.Error as error:
                detail = f"byte {self.start}: {error}"
                yield Quarantined(str(self.start), "invalid_csv", detail, self.raw())
                reader = self._reader()
                self._go_back()
            else:
                if row is None:
                    return
                if row:
                    yield self._undecodable() or row

    def _reader(self) -> Iterator[list[str]]:
        return csv.reader(self._decoded(), delimiter=self._delimiter, strict=True)

    def _decoded(self) -> Iterator[str]:
        while True:
            if self._again:
                line = self._again.popleft()
                self._reread_bytes += len(line[1])
            else:
                found = next(self._lines, None)
                if found is None:
                    return
                line = found
                self._fresh_bytes += len(line[1])
            self._row.append(line)
            self._row_bytes += len(line[1])
            if not line[2] or self._row_bytes > self._options.max_record_bytes:
                raise _RowTooLong
            try:
                text = line[1].decode(self._encoding)
            except UnicodeDecodeError as error:
                self._fault = self._fault or (line[0], error)
                text = line[1].decode(self._encoding, "replace")
            yield text

    def _go_back(self) -> None:
        """Put back the lines after a bad row's first, as long as no file is read many times over for it."""
        put_back = self._row[1:]
        size = sum(len(line) for _, line, _ in put_back)
        allowed = REREAD_SHARE * self._fresh_bytes + REREAD_BYTES - self._reread_bytes
        if size <= min(REREAD_BYTES, allowed) and all(whole for _, _, whole in put_back):
            self._again.extendleft(reversed(put_back))

    def _undecodable(self) -> Quarantined | None:
        if self._fault is None:
            return None
        offset, error = self._fault
        return invalid_bytes(self.raw(), str(self.start), offset, error)


def _delimiter(head: bytes, options: ReadOptions) -> str:
    """The delimiter by which the first row has the text's column, else by which it has most columns."""
    first = head.decode(options.encoding or "utf-8", "replace").removeprefix("\ufeff")

    def fitness(delimiter: str) -> tuple[bool, int]:
        try:
            row = next(csv.reader(io.StringIO(first, newline=""), delimiter=delimiter), [])
        except csv.Error:
            return False, 0
        return options.text_field in row, len(row)

    return max(DELIMITERS, key=fitness)
