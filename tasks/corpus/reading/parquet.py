"""Parquet: a row group at a time, of it some rows at a time, and only the columns asked for."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from tasks.corpus.reading.mapping import invalid_bytes, kept_fields, lookup, too_long
from tasks.corpus.reading.records import (
    Quarantined,
    RawRecord,
    ReadOptions,
    Span,
    clean_unicode,
    kept_value,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS_AT_ONCE = 1024


def row_groups(opened: BinaryIO) -> int:
    """How many row groups a file has, at least 1: a file that cannot be read tells why when it is read."""
    try:
        opened.seek(0)
        return max(1, _open(opened).num_row_groups)
    except Exception as error:
        _raise_of_the_medium(error)
        return 1


def read_parquet(
    opened: BinaryIO, options: ReadOptions, span: Span | None
) -> Iterator[RawRecord | Quarantined]:
    """The rows of a file, or of the row groups in ``span``; positions count rows from 0.

    A row group that is damaged costs its rows from the damage on.
    """
    start, stop = (span.start, span.stop) if span else (0, None)
    try:
        opened.seek(0)
        file = _open(opened)
        groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
        known = list(file.schema_arrow.names)
    except Exception as error:
        _raise_of_the_medium(error)
        if start == 0:
            size = opened.seek(0, 2)
            detail = f"byte {max(0, size - 8)}: the footer cannot be read: {error}"
            yield Quarantined("", "source_broken", detail)
        return
    column = _column(file, options.text_field)
    if column is None:
        if start == 0:
            detail = f"byte 0: no column `{options.text_field}`, only: {', '.join(known)[:200]}"
            yield Quarantined("", "no_text", detail)
        return
    wanted = [options.text_field, *options.keep_fields, *([options.id_field] if options.id_field else [])]
    columns = [name for name in dict.fromkeys(wanted) if _column(file, name) is not None]
    row = sum(group.num_rows for group in groups[:start])
    for index in range(start, min(len(groups), len(groups) if stop is None else stop)):
        end = row + groups[index].num_rows
        try:
            for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[index], columns=columns):
                yield from _rows(batch, row, options)
                row += batch.num_rows
        except Exception as error:
            _raise_of_the_medium(error)
            where = groups[index].column(0)
            offset = where.dictionary_page_offset or where.data_page_offset
            detail = f"byte {offset}: row group {index} cannot be read, rows {row} to {end - 1}: {error}"
            yield Quarantined(str(row), "source_broken", detail)
        row = end


def _open(opened: BinaryIO) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    return pq.ParquetFile(opened)


def _column(file: pq.ParquetFile, name: str) -> pa.Field | None:
    """The field of that name, dotted or not."""
    import pyarrow as pa

    schema = file.schema_arrow
    if name in schema.names:
        return schema.field(name)
    first, *rest = name.split(".")
    found = schema.field(first) if first in schema.names else None
    for part in rest:
        if found is None or not pa.types.is_struct(found.type) or found.type.get_field_index(part) < 0:
            return None
        found = found.type.field(part)
    return found


def _rows(batch: pa.RecordBatch, first: int, options: ReadOptions) -> Iterator[RawRecord | Quarantined]:
    texts = _texts(batch, options.text_field)
    others = batch.select([name for name in batch.schema.names if name != options.text_field])
    contents: list[dict[str, Any]] = others.to_pylist() if options.keep_fields or options.id_field else []
    encoding = options.encoding or "utf-8"
    for number, value in enumerate(texts):
        row = first + number
        position = str(row)
        if not isinstance(value, bytes):
            detail = f"byte 0, row {row}: `{options.text_field}` must be a string, not {type(value).__name__}"
            yield Quarantined(position, "text_not_string", detail)
            continue
        if len(value) > options.max_record_bytes:
            yield too_long(position, 0, value, options, f"text of row {row}")
            continue
        try:
            text, replaced = clean_unicode(value.decode(encoding))
        except UnicodeDecodeError as error:
            yield invalid_bytes(value, position, 0, error)
            continue
        fields: dict[str, str] = {}
        identity = None
        if contents:
            content = contents[number]
            if options.text_field not in content:
                content[options.text_field] = text
            fields = kept_fields(content, options)
            identity = kept_value(lookup(content, options.id_field)) if options.id_field else None
        yield RawRecord(position, text, fields, replaced, None, identity)


def _texts(batch: pa.RecordBatch, name: str) -> list[Any]:
    """The column's values, strings as bytes: one that is not UTF-8 must not cost its batch."""
    import pyarrow as pa

    column: Any = batch
    parts = [name] if name in batch.schema.names else name.split(".")
    for part in parts:
        column = column.column(part) if column is batch else _child(column, part)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_string(kind):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(kind):
        column = column.cast(pa.large_binary())
    elif pa.types.is_string_view(kind):
        column = column.cast(pa.binary_view())
    return column.to_pylist()


def _child(column: pa.StructArray, name: str) -> pa.Array:
    """A struct's field, null where the struct is."""
    return column.flatten()[column.type.get_field_index(name)]


def _raise_of_the_medium(error: Exception) -> None:
    """Raise what is no fault of the file's content: a disk or a network that fails."""
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        raise error
