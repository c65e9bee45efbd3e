"""A source of documents: where it lies, how it is read, and what is true of all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from tasks.corpus.locations import Location, locate
from tasks.corpus.reading.formats import FORMATS
from tasks.corpus.reading.records import ReadOptions
from tasks.parameters import ParameterError, StageParams

RESERVED = {
    "markup": "says how `clean` gets at the text",
    "source_id": "holds the value of `id_field`",
    "perplexity_bucket": "says which bucket `clean` puts a document into",
}
"""Keys of `meta` that stages write themselves."""

DEFAULT_MAX_RECORD_BYTES = 64 * 2**20

SECRET = re.compile(r"key|secret|token|passw|credential|auth|signature", re.IGNORECASE)


class SourceParams(StageParams):
    """One source: where it lies, how it is read, and what is true of all its documents."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    path: str = Field(
        min_length=1,
        description="file, directory or glob: relative to the corpus directory, absolute, or a URL",
    )
    storage_options: dict[str, Any] = Field(
        default={}, description="for the file system behind a URL, such as endpoint_url; never a secret"
    )
    files: str = Field(
        default="*",
        description="which files of a directory, or members of an archive, as a glob over relative paths",
    )
    format: str = Field(default="auto", description="how a file is read; auto: as its name says")
    text_field: str = Field(default="text", description="the field or column that holds the document")
    id_field: str | None = Field(
        default=None, description="the field that holds the source's own id, kept as `source_id` in `meta`"
    )
    keep_fields: dict[str, str] = Field(
        default={}, description="further fields kept in `meta`: theirs -> ours"
    )
    encoding: str | None = Field(default=None, description="of the text; empty: detected")
    delimiter: str | None = Field(default=None, description="between the columns of CSV; empty: detected")
    markup: Literal["auto", "plain", "html", "markdown", "rst", "roff", "code"] = Field(
        default="auto", description="how `clean` gets at the text; auto: as the format says, else plain"
    )
    kind: Literal["web", "book", "code", "dialogue", "reference"]
    domain: str = "general"
    license: str = Field(min_length=1)
    collected_at: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="when it was collected, as a date")

    def location(self, corpus: Path) -> Location:
        """Where it lies; a relative path is one below the corpus directory."""
        return locate(self.path, corpus, self.storage_options)

    def reading(self, max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES) -> ReadOptions:
        """How its files are read."""
        return ReadOptions(
            format=self.format,
            text_field=self.text_field,
            id_field=self.id_field,
            keep_fields=self.keep_fields,
            max_record_bytes=max_record_bytes,
            encoding=self.encoding,
            delimiter=self.delimiter,
            files=self.files,
        )

    @field_validator("path")
    @classmethod
    def _path_holds_no_secret(cls, path: str) -> str:
        if "://" in path:
            parts = urlsplit(path)
            if "@" in parts.netloc and parts.scheme not in ("webhdfs", "hdfs", "sftp", "ssh"):
                raise _secret("the user in `path`")
            if ":" in parts.netloc.rpartition("@")[0]:
                raise _secret("the password in `path`")
            if parts.scheme in ("http", "https") and SECRET.search(parts.query):
                raise _secret("the query in `path`")
        if "**" in path and any("**" in part and part != "**" for part in path.split("/")):
            raise ValueError(
                "`**` stands for folders: it must be a whole part of the path, as in `**/*.html`"
            )
        return path

    @field_validator("storage_options")
    @classmethod
    def _options_hold_no_secret(cls, options: dict[str, Any]) -> dict[str, Any]:
        for key, value in _entries(options):
            if SECRET.search(key) and value not in (None, "anon"):
                raise _secret(f"`{key}` in `storage_options`")
            if isinstance(value, str) and "@" in urlsplit(value).netloc:
                raise _secret(f"the user in `storage_options`, `{key}`,")
        return options

    @field_validator("format")
    @classmethod
    def _format_is_known(cls, name: str) -> str:
        if name != "auto" and name not in FORMATS:
            raise ValueError(f"no such format; known are: auto, {', '.join(sorted(FORMATS))}")
        return name

    @field_validator("encoding")
    @classmethod
    def _encoding_is_one_of_text(cls, name: str | None) -> str | None:
        if name is not None:
            try:
                "a".encode(name)
            except (
                LookupError,
                ValueError,
            ):  # of base64 and the like too
                raise ValueError("no encoding of text, such as utf-8, cp1252 or koi8-r") from None
        return name

    @field_validator("delimiter")
    @classmethod
    def _delimiter_is_one_sign(cls, delimiter: str | None) -> str | None:
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n\0'):
            raise ValueError("must be one character, no quote and no line end")
        return delimiter

    @field_validator("collected_at")
    @classmethod
    def _collected_on_a_day(cls, day: str) -> str:
        date.fromisoformat(day)
        return day

    @field_validator("keep_fields")
    @classmethod
    def _reserved_names_are_ours(cls, fields: dict[str, str]) -> dict[str, str]:
        for ours in fields.values():
            if ours in RESERVED:
                raise ValueError(f"`{ours}` in `meta` {RESERVED[ours]}; keep the field by another name")
        if len(set(fields.values())) < len(fields):
            raise ValueError("two fields are kept by one name; each needs a name of its own")
        return fields


def _entries(options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in options.items():
        yield str(key), value
        if isinstance(value, dict):
            yield from _entries(value)


def _secret(what: str) -> ParameterError:
    """Not a ValueError: pydantic would put the value, the secret, into the message."""
    return ParameterError(
        f"collect.sources: {what} looks like a secret. Parameters are committed and recorded with every "
        "layer: leave it out, and set the environment variables that the file system reads instead, for s3 "
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN or AWS_PROFILE (for the executors too)"
    )
