"""From the bytes of a document to its characters."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

PREFIX = 32_768
"""Bytes from which an encoding that nothing declares is guessed."""

_DECLARATION_PREFIX = 4096
_MAX_NULS = 0.001
_MAX_CONTROLS = 0.05
_AS_GOOD = 0.05
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\x0b\x0c\r\x1b\x08")) + b"\x7f"
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
_BINARY = {
    b"%PDF-": "a PDF",
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "gzip data",
    b"\x28\xb5\x2f\xfd": "Zstandard data",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"\x7fELF": "a program",
    b"PAR1": "a Parquet file",
}
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_META = re.compile(
    rb"""<meta[^>]{1,500}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE
)
_XML = re.compile(rb"""^\s{0,99}<\?xml[^>]{0,200}?encoding\s{0,9}=\s{0,9}["']([A-Za-z0-9._:-]{1,40})""")

_WHATWG = {
    **dict.fromkeys(("ascii", "us-ascii", "ansi_x3.4-1968", "iso-8859-1", "iso8859-1", "iso_8859-1", "latin1",
                     "latin-1", "l1", "cp1252", "x-cp1252"), "windows-1252"),
    **dict.fromkeys(("iso-8859-9", "latin5", "cp1254"), "windows-1254"),
    **dict.fromkeys(("iso-8859-11", "tis-620", "dos-874", "cp874"), "windows-874"),
    **dict.fromkeys(("gb2312", "gb_2312-80", "x-gbk", "cp936", "chinese"), "gbk"),
    **dict.fromkeys(("shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j", "cp932"), "shift_jis"),
    **dict.fromkeys(("ks_c_5601-1987", "ksc5601", "korean", "windows-949", "cp949"), "euc-kr"),
    **dict.fromkeys(("big5-hkscs", "x-x-big5", "cn-big5", "cp950"), "big5"),
    **dict.fromkeys(("utf8", "unicode-1-1-utf-8", "utf_8", "x-unicode20utf8"), "utf-8"),
    **dict.fromkeys(("utf-16", "utf-16-le", "ucs-2", "unicode"), "utf-16le"),
    **dict.fromkeys(("cp1250", "x-cp1250"), "windows-1250"),
    **dict.fromkeys(("cp1251", "x-cp1251"), "windows-1251"),
    **dict.fromkeys(("cp1253",), "windows-1253"),
    **dict.fromkeys(("cp1255",), "windows-1255"),
    **dict.fromkeys(("cp1256",), "windows-1256"),
    **dict.fromkeys(("koi", "koi8", "koi8_r", "koi8-ru"), "koi8-r"),
    **dict.fromkeys(("cp866", "866"), "ibm866"),
}  # fmt: skip
"""Labels and what they mean on the web (WHATWG Encoding Standard, 4.2), where Python says otherwise."""

_CODECS = {
    "windows-874": "cp874",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "big5": "big5hkscs",
    "ibm866": "cp866",
}
"""Python's codecs that decode what the standard's encoding of that name decodes."""

_GUESSED = [
    "utf_8", "cp1252", "cp1251", "koi8_r", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp866", "cp874",
    "cp932", "euc_jp", "gb18030", "big5", "cp949", "iso2022_jp",
]  # fmt: skip


@dataclass(frozen=True)
class Decoded:
    """Characters, the encoding (a WHATWG name), and how many U+FFFD stand for bytes that have none."""

    text: str
    encoding: str
    replaced: int


class UndecodableText(Exception):
    """The bytes are no text: ``offset`` is where this shows, ``reason`` says how."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"not text: {reason} (byte {offset})")
        self.offset = offset
        self.reason = reason


def decode_bytes(raw: bytes, declared: str | None = None, markup: str = "plain") -> Decoded:
    """Decode a document: by its BOM, what is declared, strict UTF-8, or a guess, in this order.

    ``declared`` is what the HTTP header says; in ``html`` a ``<meta>`` or XML declaration comes after it. A
    declaration that does not decode the bytes strictly is passed over. UTF-8 with a few bad bytes is
    UTF-8 with U+FFFD.

    Raises:
        UndecodableText: if the bytes are binary data.
    """
    for bom, encoding in _BOMS:
        if raw.startswith(bom):
            return _with_replacements(raw[len(bom) :], encoding)
    labels = [declared or "", *(_declarations(raw) if markup == "html" else [])]
    wide = _utf_16(raw, labels)
    if wide is not None:
        return wide
    _refuse_binary(raw)
    for encoding in [*map(_encoding, labels), "utf-8"]:
        text = _strictly(raw, encoding) if encoding else None
        if encoding and text is not None:
            return Decoded(text, encoding, 0)
    return _guessed(raw)


def _declarations(raw: bytes) -> list[str]:
    head = _COMMENT.sub(b"", raw[:_DECLARATION_PREFIX])
    found = [match.group(1).decode("ascii") for match in (_META.search(head), _XML.search(head)) if match]
    # Of bytes in which "<meta" could be read, UTF-16 is not true; the standard says to take it for UTF-8.
    return ["utf-8" if label.lower().startswith("utf-16") else label for label in found]


def _encoding(label: str) -> str | None:
    """The standard's name of the encoding; None for a label that is not known."""
    label = label.strip().strip("\"'").lower()
    name = _WHATWG.get(label, label)
    try:
        known = codecs.lookup(_CODECS.get(name, name)).name
        "".encode(known)  # refuses what `codecs` has that is no character encoding (rot13, zlib)
    except (LookupError, ValueError):
        return None
    return None if known == "utf-7" else name  # a way to hide text


def _strictly(raw: bytes, encoding: str) -> str | None:
    try:
        return raw.decode(_CODECS.get(encoding, encoding))
    except (UnicodeError, ValueError):
        return None


def _utf_16(raw: bytes, labels: list[str]) -> Decoded | None:
    """UTF-16 without a BOM, if it is declared or every other byte of the beginning is NUL."""
    head = raw[:1024]
    names = [name for name in map(_encoding, labels) if name in ("utf-16le", "utf-16be")]
    if len(head) >= 8:
        even, odd = head[::2].count(0) * 2 / len(head), head[1::2].count(0) * 2 / len(head)
        if odd > 0.7 and even < 0.1:
            names.append("utf-16le")
        elif even > 0.7 and odd < 0.1:
            names.append("utf-16be")
    for name in names:
        text = _strictly(raw, name)
        if text is not None:
            return Decoded(text, name, 0)
    return None


def _refuse_binary(raw: bytes) -> None:
    for magic, what in _BINARY.items():
        if raw.startswith(magic):
            raise UndecodableText(0, f"it begins like {what}")
    nuls = raw.count(0)
    if nuls > max(1, _MAX_NULS * len(raw)):
        raise UndecodableText(raw.index(0), f"{nuls} of {len(raw)} bytes are NUL")
    head = raw[:PREFIX]
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls > max(8, _MAX_CONTROLS * len(head)):
        first = next(index for index, byte in enumerate(head) if byte in _CONTROLS)
        raise UndecodableText(first, f"{controls} of the first {len(head)} bytes are control characters")


def _guessed(raw: bytes) -> Decoded:
    utf_8 = _with_replacements(raw, "utf-8")
    whole = sum(1 for character in utf_8.text[: 2 * PREFIX] if character > "\x7f") - utf_8.replaced
    if whole > 10 * utf_8.replaced:
        return utf_8
    first = next(index for index, byte in enumerate(raw) if byte > 0x7F)
    start = max(0, first - PREFIX // 2)
    return _with_replacements(raw, _detected(raw[start : start + PREFIX]))


def _detected(prefix: bytes) -> str:
    """What charset-normalizer takes the bytes for; windows-1252 if that is as good, or there is nothing."""
    from charset_normalizer import from_bytes

    best = from_bytes(prefix, cp_isolation=_GUESSED, enable_fallback=False).best()
    if best is None:
        return "windows-1252"
    western = from_bytes(prefix, cp_isolation=["cp1252"], enable_fallback=False).best()
    if (
        western is not None
        and western.chaos <= best.chaos + _AS_GOOD
        and western.coherence >= best.coherence - _AS_GOOD
    ):
        return "windows-1252"
    return _encoding(best.encoding.replace("_", "-")) or "windows-1252"


def _with_replacements(raw: bytes, encoding: str) -> Decoded:
    codec = _CODECS.get(encoding, encoding)
    text = _strictly(raw, encoding)
    if text is not None:
        return Decoded(text, encoding, 0)
    text = raw.decode(codec, "replace")
    own = raw.count("\ufffd".encode()) if encoding == "utf-8" else 0
    return Decoded(text, encoding, text.count("\ufffd") - own)
