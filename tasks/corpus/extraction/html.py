"""The main text of a web page: trafilatura says where it is, a linear walk says how it reads."""

from __future__ import annotations

import logging
import re
from itertools import islice

import lxml.html
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] # it has no stubs

from tasks.corpus.extraction.html_blocks import Block, blocks_of
from tasks.corpus.extraction.html_tags import text_without_tags

log = logging.getLogger("gristmill")

MAX_ELEMENTS = 60_000
"""Of a page with more, trafilatura is not asked: its time does not grow linearly with every page."""

MAX_TAG = 32_768
"""Characters of one tag. libxml2 compares every attribute with all others, so larger ones are struck out."""

_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_DATA_URI = re.compile(r"data:[a-zA-Z0-9/+.;=-]{0,100},[a-zA-Z0-9+/=%_.-]*")
_WORD = re.compile(r"\w+")
_SHINGLE = 3
_MIN_KEPT = 0.5
_LINK_SHARE = 0.8
_MIN_LINK_LIST = 3
_MIN_CHARACTERS = 500
_MIN_SHARE = 0.5


def main_text(html: str) -> str:
    """Headings, paragraphs, lists, code and tables of the main text in order; empty if there is no text.

    trafilatura (Barbaresi, ACL 2021) finds what the main text is, but leaves out headings, list items and
    pieces of paragraphs within it. So it decides on the extent only: from the first block that it keeps to
    the last. Where it finds little of what is there, the extent is the whole page. Navigation is left out
    in any case.
    """
    root = _parse(html)
    if root is None:
        return text_without_tags(html).strip()
    blocks = blocks_of(root)
    body = [block for block in _without_link_lists(blocks) if not block.boilerplate]
    if sum(1 for _ in islice(root.iter(), MAX_ELEMENTS + 1)) <= MAX_ELEMENTS:
        extent = _extent(body, _by_trafilatura(root))
        if _characters(extent) >= min(_MIN_CHARACTERS, _MIN_SHARE * _characters(body)):
            body = extent
    return _joined(body or _without_link_lists(blocks))


def _parse(html: str) -> etree._Element | None:
    """The page as a tree; None if it would take too long or lose text."""
    html = _XML_DECLARATION.sub("", html)
    if "data:" in html:
        html = _DATA_URI.sub("data:,", html)
    longest = max((len(part) - part.find("<") for part in html.split(">") if "<" in part), default=0)
    if longest > MAX_TAG or not html.strip():
        return None
    parser = lxml.html.HTMLParser(encoding="utf-8")
    try:
        root = lxml.html.document_fromstring(
            html.encode("utf-8", "replace").replace(b"\x00", b""), parser=parser
        )
    except (etree.LxmlError, ValueError):
        return None
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        return None  # nested too deeply: the tree ends there
    return root


def _by_trafilatura(root: etree._Element) -> set[tuple[str, ...]]:
    """Every three words in a row of what trafilatura takes for the main text."""
    import trafilatura

    try:
        text = trafilatura.extract(
            root, include_comments=False, favor_recall=True, fast=True, with_metadata=False
        )
    except Exception as error:
        # Whatever a page brings it to, the page has a text: the caller then takes all of it.
        log.debug("trafilatura failed on a page: %s", type(error).__name__)
        return set()
    return {shingle for line in (text or "").splitlines() for shingle in _shingles(line)}


def _extent(body: list[Block], main: set[tuple[str, ...]]) -> list[Block]:
    """From the first block in the main text, with the headings before it, to the last."""
    kept = [index for index, block in enumerate(body) if _is_in(block, main)]
    if not kept:
        return []
    first = kept[0]
    while first > 0 and body[first - 1].kind == "heading":
        first -= 1
    return body[first : kept[-1] + 1]


def _is_in(block: Block, main: set[tuple[str, ...]]) -> bool:
    found = [shingle in main for line in block.text.splitlines() for shingle in _shingles(line)]
    return bool(found) and sum(found) >= _MIN_KEPT * len(found)


def _shingles(line: str) -> list[tuple[str, ...]]:
    words = _WORD.findall(line)
    if not words:
        return []
    if len(words) < _SHINGLE:
        return [tuple(words)]
    return list(zip(words, words[1:], words[2:], strict=False))


def _without_link_lists(blocks: list[Block]) -> list[Block]:
    """Runs of blocks that are hardly more than links are menus and tables of contents."""
    kept: list[Block] = []
    run: list[Block] = []
    for block in blocks:
        if block.kind != "code" and block.link_characters >= _LINK_SHARE * (len(block.text) - 3):
            run.append(block)
            continue
        if len(run) < _MIN_LINK_LIST:
            kept.extend(run)
        run = []
        kept.append(block)
    return kept + (run if len(run) < _MIN_LINK_LIST else [])


def _characters(blocks: list[Block]) -> int:
    return sum(len(block.text) for block in blocks)


def _joined(blocks: list[Block]) -> str:
    lines: list[str] = []
    for block in blocks:
        if lines and not block.tight:
            lines.append("")
        lines.append(_indented(block))
    return "\n".join(lines)


def _indented(block: Block) -> str:
    if block.kind == "item":
        return "  " * (block.depth - 1) + block.text.replace("\n", "\n" + "  " * block.depth)
    return block.text
