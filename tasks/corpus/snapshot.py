"""The mixture, frozen: files, checksums, and a manifest that names all of it by one hash."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from tasks.layer_files import MIXTURE_COLUMNS, parts_of, reading
from tasks.records import read_lineage
from tasks.resources import Resources
from tasks.stage import Input, Output, StageError, StageParams, StageReport, run_as_stage, stage

COUNTED = ("source", "language", "domain", "kind", "license", "split")


class SnapshotParams(StageParams):
    """What a snapshot says of itself."""

    parent: str | None = Field(default=None, description="the snapshot that this one continues, by its hash")
    note: str = Field(default="", description="free text for the manifest")


class SnapshotFile(BaseModel):
    """One file of a snapshot."""

    path: str
    sha256: str
    rows: int


class Manifest(BaseModel):
    """``manifest.json``, written last: a directory without it is no snapshot."""

    snapshot: str
    parent: str | None
    note: str
    files: list[SnapshotFile]
    columns: dict[str, str]
    lineage: list[dict[str, Any]]
    counts: dict[str, dict[str, int]]


class SnapshotReport(StageReport):
    """The snapshot in numbers."""

    snapshot: str
    documents: int
    files: int
    counts: dict[str, dict[str, int]]


@stage
def snapshot(
    mixture: Input, snapshot: Output, params: SnapshotParams, resources: Resources
) -> SnapshotReport:
    """Copy the mixture's files and describe them in a manifest.

    The snapshot's name is the SHA-256 of its manifest without the name: two snapshots of the same name hold
    the same documents, made by the same stages with the same parameters from the same parent.

    Raises:
        StageError: the mixture is none, naming the file that is damaged.
    """
    documents = snapshot / "documents"
    documents.mkdir(parents=True)
    files: list[SnapshotFile] = []
    counts: dict[str, Counter[str]] = {column: Counter() for column in COUNTED}
    columns: dict[str, str] = {}
    for part in parts_of(mixture, MIXTURE_COLUMNS):
        shutil.copyfile(part, documents / part.name)
        rows, columns = _count(part, counts)
        files.append(SnapshotFile(path=f"documents/{part.name}", sha256=file_sha256(part), rows=rows))
    content = {
        "parent": params.parent,
        "note": params.note,
        "files": [file.model_dump() for file in files],
        "columns": columns,
        "lineage": read_lineage(mixture),
        "counts": {column: dict(sorted(counter.items())) for column, counter in counts.items()},
    }
    name = _name_of(content)
    manifest = Manifest(snapshot=name, **content)
    (snapshot / "manifest.json").write_text(manifest.model_dump_json(indent=1) + "\n", "utf-8")
    return SnapshotReport(
        snapshot=name,
        documents=sum(file.rows for file in files),
        files=len(files),
        counts=manifest.counts,
    )


def read_manifest(directory: Path) -> Manifest:
    """Read a snapshot's manifest.

    Raises:
        StageError: there is none, or it is broken.
    """
    path = directory / "manifest.json"
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise StageError(f"{directory} is no snapshot: it has no manifest.json") from None
    except ValueError as error:
        raise StageError(
            f"{path} is broken: {error}. Make the snapshot again: `dvc repro -f -s snapshot`"
        ) from None


def verify(directory: Path) -> Manifest:
    """Read a snapshot's manifest and check every file against it.

    Raises:
        StageError: naming the first file that is missing or differs; the manifest, if it was changed.
    """
    manifest = read_manifest(directory)
    if _name_of(manifest.model_dump(mode="json", exclude={"snapshot"})) != manifest.snapshot:
        raise StageError(
            f"{directory / 'manifest.json'} was changed since it was written: it is not the manifest of "
            f"snapshot {manifest.snapshot[:12]}. `dvc checkout` restores it"
        )
    for file in manifest.files:
        path = directory / file.path
        if not path.exists():
            raise StageError(f"{path} is missing, but the snapshot's manifest lists it")
        if file_sha256(path) != file.sha256:
            raise StageError(
                f"{path} is not the file that the snapshot's manifest lists (sha256 differs): "
                "`dvc checkout` restores it"
            )
    return manifest


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _name_of(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _count(part: Path, counts: dict[str, Counter[str]]) -> tuple[int, dict[str, str]]:
    """Add one file's rows to the counts, a batch at a time; return how many there are, and the columns."""
    import pyarrow.parquet as pq

    with reading(part), pq.ParquetFile(part) as file:
        for batch in file.iter_batches(batch_size=65536, columns=list(COUNTED)):
            for column, counter in counts.items():
                counter.update(value or "" for value in batch.column(column).to_pylist())
        schema = file.schema_arrow
        return file.metadata.num_rows, {field.name: str(field.type) for field in schema}


if __name__ == "__main__":
    run_as_stage(snapshot)
