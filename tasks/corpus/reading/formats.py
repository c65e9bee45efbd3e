"""What a file is: by its name, and by its first bytes where the name does not say."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

HEAD_BYTES = 8192

DOCUMENT_FORMATS = {
    "text": "plain",
    "markdown": "markdown",
    "rst": "rst",
    "roff": "roff",
    "html": "html",
    "code": "code",
    "pdf": "plain",
}
"""Formats of one document a file, with the markup of what they give."""

FORMATS = (
    *DOCUMENT_FORMATS,
    "lines",
    "json",
    "jsonl",
    "csv",
    "tsv",
    "parquet",
    "warc",
    "wet",
)

_COMPRESSIONS = {
    "gz": "gzip",
    "gzip": "gzip",
    "bgz": "gzip",
    "zst": "zstd",
    "zstd": "zstd",
    "bz2": "bzip2",
    "xz": "xz",
}
_TAR_SHORTHANDS = {"tgz": "gzip", "tbz": "bzip2", "tbz2": "bzip2", "txz": "xz", "tzst": "zstd"}
_ZIP_SUFFIXES = {"zip", "whl", "egg", "jar"}

_CODE_SUFFIXES = (
    "asm", "awk", "bash", "bat", "c", "cc", "cjs", "clj", "cljs", "cmake", "cpp", "cs", "css", "cu",
    "cuh", "cxx", "d", "dart", "el", "erl", "ex", "exs", "f", "f90", "f95", "fish", "for", "go", "gradle",
    "groovy", "h", "hh", "hpp", "hrl", "hs", "hxx", "java", "js", "jsx", "kt", "kts", "less", "lisp",
    "lua", "m", "mjs", "ml", "mli", "mm", "nim", "pas", "php", "pl", "pm", "proto", "ps1", "py", "pyi",
    "pyw", "pyx", "r", "rb", "rs", "s", "scala", "scm", "scss", "sed", "sh", "sql", "sv", "svelte",
    "swift", "tcl", "ts", "tsx", "v", "vhd", "vhdl", "vue", "zig", "zsh",
)  # fmt: skip


_FORMAT_SUFFIXES = {
    **dict.fromkeys(_CODE_SUFFIXES, "code"),
    **dict.fromkeys(("txt", "text"), "text"),
    **dict.fromkeys(("md", "markdown", "mdown", "mkd"), "markdown"),
    **dict.fromkeys(("rst", "rest"), "rst"),
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    **dict.fromkeys(("jsonl", "ndjson", "jsonlines"), "jsonl"),
    **dict.fromkeys(("tsv", "tab"), "tsv"),
    **dict.fromkeys(("parquet", "pq"), "parquet"),
    **dict.fromkeys(("roff", "man", "mdoc", "groff", "troff"), "roff"),
    "json": "json",
    "csv": "csv",
    "warc": "warc",
    "wet": "wet",
    "pdf": "pdf",
}
_CODE_NAMES = {
    "makefile",
    "dockerfile",
    "cmakelists.txt",
    "rakefile",
    "gemfile",
    "jenkinsfile",
    "vagrantfile",
}
_MAN_PAGE = re.compile(r"[1-9][a-z]{0,8}")

_BINARY_MAGIC = {
    "a PDF": (b"%PDF-",),
    "Parquet": (b"PAR1",),
    "a zip archive": (b"PK\x03\x04", b"PK\x05\x06"),
    "compressed": (
        b"\x1f\x8b\x08",
        b"\x28\xb5\x2f\xfd",
        b"\xfd7zXZ\x00",
        b"7z\xbc\xaf\x27\x1c",
        b"Rar!\x1a\x07",
    ),
    "an image": (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*"),
    "sound or film": (b"OggS", b"ID3", b"fLaC", b"RIFF"),
    "a program": (b"\x7fELF", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\0asm"),
    "a data base": (b"SQLite format 3\0",),
    "an Office document": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",),
    "a font": (b"wOFF", b"wOF2", b"OTTO"),
}
_CONTROL = bytes(i for i in range(32) if i not in b"\t\n\r\f\b\x1b") + b"\x7f"
_UNICODE_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class Name:
    """What a file's name tells; None where it does not."""

    compression: str | None
    container: str | None
    format: str | None
    suffix: str


def parse_name(name: str) -> Name:
    """Take a name's suffixes for what they mean, the last one first."""
    base = name.replace("\\", "/").rsplit("/", 1)[-1].lower()
    stem, _, suffix = base.rpartition(".")
    if suffix in _TAR_SHORTHANDS and stem:
        return Name(_TAR_SHORTHANDS[suffix], "tar", None, suffix)
    compression = _COMPRESSIONS.get(suffix) if stem else None
    if compression:
        base = stem
        stem, _, suffix = base.rpartition(".")
    if not stem:
        suffix = ""
    if suffix == "tar" or suffix in _ZIP_SUFFIXES:
        return Name(compression, "tar" if suffix == "tar" else "zip", None, suffix)
    if base in _CODE_NAMES:
        return Name(compression, None, "code", suffix)
    return Name(compression, None, _FORMAT_SUFFIXES.get(suffix), suffix)


def container_of(head: bytes) -> str | None:
    """Which archive a file's first bytes tell of."""
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    return "tar" if head[257:262] == b"ustar" else None


def sniff(head: bytes, suffix: str = "") -> str | None:
    """The format that a file's first bytes speak for; None for what is not text."""
    if head.startswith(b"%PDF-"):
        return "pdf"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"WARC/"):
        return "warc"
    if why_not_text(head):
        return None
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    folded = start[:1024].lower()
    if folded.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "html"
    if folded.startswith(b"<?xml") and b"<html" in folded:
        return "html"
    if _is_man_page(start, suffix):
        return "roff"
    if start.startswith(b"{") and re.match(rb'\{\s*(?:"|\})', start):
        return "json" if re.match(rb"\{\s*\n", start) else "jsonl"
    if re.match(rb'\[\s*(?:\{\s*"|"|\])', start):
        return "json"
    return "code" if start.startswith(b"#!") else "text"


def why_not_text(head: bytes) -> str | None:
    """What a file that is not text looks like; None for text in any encoding."""
    for what, magic in _BINARY_MAGIC.items():
        if head.startswith(magic):
            return what
    if wide_encoding(head):
        return None
    control = len(head) - len(head.translate(None, _CONTROL))
    if control < 4 or _looks_like_utf16(head):
        return None
    try:
        head[:-4].decode()
        few, share = 16, 0.3
    except UnicodeDecodeError:
        few, share = 4, 0.02
    if control >= few and control > share * len(head):
        return f"{control} of the first {len(head)} bytes are control characters"
    return None


def wide_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32 where a byte order mark tells so."""
    return next((encoding for mark, encoding in _UNICODE_MARKS if head.startswith(mark)), None)


def _is_man_page(start: bytes, suffix: str) -> bool:
    if start.startswith((b".TH ", b".Dd ", b'.\\"', b"'\\\"")):
        return True
    return bool(_MAN_PAGE.fullmatch(suffix)) and re.search(rb"^\.(?:TH|Dd|so|SH)\s", start, re.M) is not None


def _looks_like_utf16(head: bytes) -> bool:
    """Latin text in UTF-16 without a mark has a NUL in every other byte and nowhere else."""
    half = max(1, len(head) // 2)
    even, odd = head[::2].count(0) / half, head[1::2].count(0) / half
    return max(even, odd) > 0.4 and min(even, odd) < 0.01
