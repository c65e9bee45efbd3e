"""From a parsed page to its blocks of text, in order and in one linear walk."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] # it has no stubs

Kind = Literal["heading", "paragraph", "item", "code", "row"]

_WHITE_SPACE = re.compile(r"[ \t\n\r\f]+")
_DROPPED = frozenset(
    [
        "head", "script", "style", "noscript", "template", "svg", "iframe", "object", "embed", "applet",
        "audio", "video", "canvas", "map", "area", "button", "input", "select", "option", "textarea",
        "datalist", "dialog", "frameset", "noframes",
    ]
)  # fmt: skip
_BOILERPLATE_TAGS = frozenset({"nav", "footer", "menu"})
_BOILERPLATE_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "menubar", "dialog"})
_BOILERPLATE_NAMES = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|subnav|menu|sidebar|breadcrumbs?|footer|footnav|cookies?|consent|"
    r"newsletter|social|disqus|pagination|pager|skip-?links?)(?=$|[\s_-])|"
    r"(?:^|\s)(?:docnav|navheader|navfooter|sphinxsidebar|related|banner|share|sharing|ads?|advert|comments?|"
    r"comment-?list|toc|contents|toctree-wrapper|table-?of-?contents|searchbox|search)(?=$|\s)",
    re.IGNORECASE,
)
_NOT_BOILERPLATE = frozenset(
    {"html", "body", "main", "article", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "code"}
)
_HIDDEN = re.compile(r"display\s{0,4}:\s{0,4}none|visibility\s{0,4}:\s{0,4}hidden", re.IGNORECASE)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "caption", "figcaption", "legend", "summary"})
_BLOCKS = _HEADINGS | frozenset(
    [
        "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dir", "div", "dl",
        "dt", "fieldset", "figure", "footer", "header", "hgroup", "html", "li", "main", "menu", "nav", "ol",
        "p", "pre", "listing", "xmp", "section", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
        "hr",
    ]
)  # fmt: skip
_VERBATIM = frozenset({"pre", "listing", "xmp"})
_FLOW_IN_CELL = frozenset({"pre", "ul", "ol", "dl", "table", "h1", "h2", "h3", "h4", "h5", "h6"})


@dataclass
class Block:
    """A run of text that stands on its own, and what tells whether it belongs to the main text."""

    kind: Kind
    text: str
    link_characters: int = 0
    boilerplate: bool = False
    """It stands in an element that says of itself that it is navigation, a footer and the like."""

    depth: int = 0
    """How many lists it is in."""

    tight: bool = False
    """No blank line before it: the next row of a table, the next item of a list."""


@dataclass
class _Walk:
    blocks: list[Block] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    link_characters: int = 0
    links: int = 0
    boilerplate: int = 0
    verbatim: int = 0
    headings: int = 0
    lists: list[int | None] = field(default_factory=list)
    marker: str = ""
    continues: bool = False
    cells: list[str] | None = None

    def add(self, text: str) -> None:
        if self.links:
            self.link_characters += len(text.strip())
        self.parts.append(text if self.verbatim else _WHITE_SPACE.sub(" ", text))

    def end_block(self) -> None:
        if not self.parts:
            return
        text = "".join(self.parts)
        self.parts.clear()
        links, self.link_characters = self.link_characters, 0
        text = text.strip("\r\n") if self.verbatim else _tidy(text)
        if not text.strip():
            return
        if self.verbatim:
            kind: Kind = "code"
        elif self.headings:
            kind = "heading"
        else:
            kind = "item" if self.marker else "paragraph"
        if kind == "item":
            text, self.marker = self.marker + text, ""
        self._append(Block(kind, text, links, self.boilerplate > 0, len(self.lists), self.continues))
        self.continues = False

    def end_cell(self) -> None:
        text = _tidy("".join(self.parts)).replace("\n", " ")
        self.parts.clear()
        if self.cells is not None:
            self.cells.append(text)

    def end_row(self) -> None:
        cells, self.cells = self.cells or [], None
        links, self.link_characters = self.link_characters, 0
        if any(cells):
            text = " | ".join(cells).strip()
            self._append(Block("row", text, links, self.boilerplate > 0, len(self.lists)))

    def _append(self, block: Block) -> None:
        before = self.blocks[-1] if self.blocks else None
        same = before is not None and before.kind == block.kind and block.kind in ("item", "row")
        block.tight = block.tight or same
        self.blocks.append(block)


def blocks_of(root: etree._Element) -> list[Block]:
    """The blocks of a page in document order; scripts, forms, pictures and hidden elements are left out.

    White space is what a browser would show of it: one blank, but in ``pre`` as it stands. Table rows are
    lines with `` | `` between cells; where a cell holds lists, code or tables, the cells follow one another.
    List items begin with ``- `` or their number.
    """
    walk = _Walk()
    boilerplate: set[etree._Element] = set()
    rows = _plain_rows(root)
    skipped: etree._Element | None = None
    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event in ("comment", "pi"):
            if skipped is None and element.tail:
                walk.add(element.tail)
            continue
        if event == "start":
            if skipped is not None:
                continue
            if _is_dropped(element):
                skipped = element
                continue
            if _says_boilerplate(element):
                walk.end_block()
                boilerplate.add(element)
                walk.boilerplate += 1
            _start(walk, element, rows)
            if element.text:
                walk.add(element.text)
            continue
        if skipped is not None:
            if element is not skipped:
                continue
            skipped = None
        else:
            _end(walk, element, rows)
            if element in boilerplate:
                walk.end_block()
                walk.boilerplate -= 1
        if element.tail and element is not root:
            walk.add(element.tail)
    walk.end_block()
    return walk.blocks


def _start(walk: _Walk, element: etree._Element, rows: set[etree._Element]) -> None:
    tag = element.tag
    if tag == "a":
        walk.links += 1
    elif tag == "br":
        walk.parts.append("\n")
    if tag not in _BLOCKS or (walk.cells is not None and tag not in ("td", "th")):
        if walk.cells is not None and tag in _BLOCKS:
            walk.parts.append(" ")
        return
    if tag in ("td", "th") and walk.cells is not None:
        return
    walk.end_block()
    if tag == "tr" and element in rows:
        walk.cells = []
    elif tag in ("ul", "ol", "dir", "menu"):
        walk.lists.append(_first_number(element) if tag == "ol" else None)
        walk.marker = ""
    elif tag == "li":
        walk.marker = _next_marker(walk.lists)
    elif tag == "dd":
        walk.continues = True
    elif tag in _VERBATIM:
        walk.marker = ""
        walk.verbatim += 1
    elif tag in _HEADINGS:
        walk.headings += 1


def _end(walk: _Walk, element: etree._Element, rows: set[etree._Element]) -> None:
    tag = element.tag
    if tag == "a":
        walk.links -= 1
    if tag not in _BLOCKS:
        return
    if walk.cells is not None:
        if tag in ("td", "th"):
            walk.end_cell()
        elif tag == "tr" and element in rows:
            walk.end_row()
        else:
            walk.parts.append(" ")
        return
    walk.end_block()
    if tag in ("ul", "ol", "dir", "menu") and walk.lists:
        walk.lists.pop()
    elif tag == "li":
        walk.marker = ""
    elif tag == "dd":
        walk.continues = False
    elif tag in _VERBATIM:
        walk.verbatim -= 1
    elif tag in _HEADINGS:
        walk.headings -= 1


def _is_dropped(element: etree._Element) -> bool:
    tag = element.tag
    if tag in _DROPPED:
        return True
    attributes = element.attrib
    if not attributes:
        return False
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return True
    if tag == "td" and "linenos" in attributes.get("class", ""):
        return True
    if tag == "a" and ("headerlink" in attributes.get("class", "") or "".join(element.itertext()) == "¶"):
        return True
    style = attributes.get("style")
    return style is not None and _HIDDEN.search(style) is not None


def _says_boilerplate(element: etree._Element) -> bool:
    tag = element.tag
    if tag in _BOILERPLATE_TAGS:
        return True
    attributes = element.attrib
    if not attributes or tag in _NOT_BOILERPLATE or tag not in _BLOCKS:
        return False
    if attributes.get("role") in _BOILERPLATE_ROLES:
        return True
    names = f"{attributes.get('class', '')} {attributes.get('id', '')}"
    return len(names) > 1 and _BOILERPLATE_NAMES.search(names[:200]) is not None


def _plain_rows(root: etree._Element) -> set[etree._Element]:
    """The table rows whose cells hold nothing but running text."""
    rows: set[etree._Element] = set()
    open_rows: list[etree._Element] = []
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if element.tag == "tr":
            if event == "start":
                rows.difference_update(open_rows)
                rows.add(element)
                open_rows.append(element)
            elif open_rows:
                open_rows.pop()
        elif event == "start" and open_rows and element.tag in _FLOW_IN_CELL:
            rows.difference_update(open_rows)
    return rows


def _first_number(element: etree._Element) -> int:
    start = element.get("start", "1")
    return int(start) if re.fullmatch(r"-?[0-9]{1,6}", start) else 1


def _next_marker(lists: list[int | None]) -> str:
    number = lists[-1] if lists else None
    if number is None:
        return "- "
    lists[-1] = number + 1
    return f"{number}. "


def _tidy(text: str) -> str:
    """One blank for many, none at the ends of lines."""
    return "\n".join(_WHITE_SPACE.sub(" ", line).strip() for line in text.split("\n")).strip()
