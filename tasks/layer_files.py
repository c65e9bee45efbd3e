"""The files of a layer's documents, looked at before any work starts.

Their footers tell whether they are whole, which columns they have and what lacks a value. A worker that finds
it out later speaks of Arrow, not of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.records import DOCUMENT_COLUMNS
from tasks.stage import StageError

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import FileMetaData
    from pyspark.sql import DataFrame, SparkSession

MIXTURE_COLUMNS = DOCUMENT_COLUMNS | {"split": "string", "copy": "bigint", "order": "string"}
"""The columns of the mixture and of a snapshot, and their Spark types."""

NEVER_NULL: tuple[str, ...] = ("id", "content", "text", "source")

_MAKE_ANEW = "run the stage that makes it again (`gristmill run corpus`), or `dvc checkout` it"


def parts_of(layer: Path, columns: Mapping[str, str] = DOCUMENT_COLUMNS) -> list[Path]:
    """The files of a layer's documents, each with these columns of these Spark types.

    Raises:
        StageError: if it is no layer; naming the file that is damaged, and the column that is missing, of
            another type or null where it must not be.
    """
    parts = sorted((layer / "documents").glob("*.parquet"))
    if not parts:
        raise StageError(f"{layer} is no layer: there is no documents/*.parquet in it")
    for part in parts:
        _check(part, columns)
    return parts


def read_documents(spark: SparkSession, layer: Path) -> DataFrame:
    """The documents of a layer.

    Raises:
        StageError: as `parts_of`.
    """
    parts_of(layer)
    return spark.read.parquet(str(layer / "documents"))


@contextmanager
def reading(part: Path | str) -> Iterator[None]:
    """A block that reads a Parquet file.

    Raises:
        StageError: the file is damaged, naming it.
    """
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the system's, not of the content
            raise
        raise StageError(f"{part} cannot be read, it is damaged ({error}): {_MAKE_ANEW}") from None


def _check(part: Path, columns: Mapping[str, str]) -> None:
    import pyarrow.parquet as pq

    with reading(part), pq.ParquetFile(part) as file:
        schema, metadata = file.schema_arrow, file.metadata
    missing = [name for name in columns if name not in schema.names]
    if missing:
        raise StageError(
            f"{part} has no column {', '.join(missing)}; documents have {', '.join(columns)}: {_MAKE_ANEW}"
        )
    for name, kind in columns.items():
        found = schema.field(name).type
        if not _is(found, kind):
            raise StageError(f"{part}: column {name} is of type {found}, not {kind}: {_MAKE_ANEW}")
    for name, nulls in _nulls(metadata).items():
        if nulls and name in columns:
            raise StageError(f"{part}: {name} is null in {nulls} of {metadata.num_rows} rows: {_MAKE_ANEW}")


def _is(found: pyarrow.DataType, kind: str) -> bool:
    import pyarrow as pa

    if kind.startswith("map"):
        items = pa.string() if kind == "map<string,string>" else pa.float64()
        return isinstance(found, pa.MapType) and found.key_type == pa.string() and found.item_type == items
    return found == {"string": pa.string(), "double": pa.float64(), "bigint": pa.int64()}[kind]


def _nulls(metadata: FileMetaData) -> dict[str, int]:
    """How many values of the columns `NEVER_NULL` are null, as far as the footer says."""
    places = {metadata.schema.column(place).path: place for place in range(metadata.num_columns)}
    nulls = dict.fromkeys(NEVER_NULL, 0)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for name in NEVER_NULL:
            told = group.column(places[name]).statistics if name in places else None
            if told is not None and told.has_null_count:
                nulls[name] += told.null_count
    return nulls
