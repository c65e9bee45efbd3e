"""From Markdown (CommonMark, tables, front matter, footnotes) to its text, in one pass over the lines."""

from __future__ import annotations

import html
import re

from tasks.corpus.extraction.paragraphs import Paragraphs, cells_as_row, join_lines

_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*$")
_FENCE = re.compile(r" {0,12}(`{3,200}|~{3,200})([^`]{0,200})$")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+|$)")
_CLOSING = re.compile(r"(?:[ \t]+|^)#{1,20}[ \t]*$|[ \t]+\{[#.][^{}]{1,100}\}$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)$")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,100}|(?:-[ \t]*){3,100}|(?:_[ \t]*){3,100})$")
_ITEM = re.compile(r"([ \t]{0,40})([*+-]|[0-9]{1,9}[.)])[ \t]{1,4}(?:\[[ xX]\][ \t]{1,4})?(?=\S)")
_DELIMITERS = re.compile(r"[ \t]{0,8}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*){0,100}\|?$")
_DEFINITION = re.compile(r" {0,3}\[(?!\^)[^\][\n]{1,300}\]:[ \t]*\S")
_FOOTNOTE = re.compile(r" {0,3}\[\^([^\][\n]{1,100})\]:[ \t]*")
_CELL = re.compile(r"(?<!\\)\|")

_INLINE = re.compile(
    r"(?P<ticks>`{1,20})(?!`)(?P<code>[^`]{1,1000}?)(?P=ticks)(?!`)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|<(?P<address>(?:https?|ftp|mailto):[^<>\s]{1,1000}|[\w.+-]{1,80}@[\w.-]{1,80})>"
    r"|</?[A-Za-z][^<>]{0,1000}>"
)
_TARGET = r"\((?:[^()\n]|\([^()\n]{0,200}\)){0,1000}\)"
_IMAGE = re.compile(r"!\[([^\][]{0,500})\](?:" + _TARGET + r"|\[[^\][\n]{0,200}\])?")
_LINK = re.compile(r"\[([^\][]{1,500})\](?:" + _TARGET + r"|\[[^\][\n]{0,200}\])")
_FOOTNOTE_MARK = re.compile(r"\[\^([^\][\n]{1,100})\]")
_EMPHASIS = (
    re.compile(r"(\*\*\*|\*\*|\*|~~)(?=[^\s*~])([^*~\n]{1,1000}?)(?<=[^\s*~])\1"),
    re.compile(r"(?<!\w)(___|__|_)(?=[^\s_])([^_\n]{1,1000}?)(?<=[^\s_])\1(?!\w)"),
)
_PROTECTED = re.compile("\ue000([0-9]{1,9})\ue001")


def markdown_text(markup: str) -> str:
    """Headings, paragraphs (joined), lists, code as it stands, tables as rows.

    Front matter, comments, reference definitions and HTML tags are left out; links come to their text,
    images to their alternative text.
    """
    return _Converter(_without_comments(markup).expandtabs(4).split("\n")).converted()


class _Converter:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.out = Paragraphs()
        self.paragraph: list[str] = []
        self.marker = ""
        self.lists: list[int] = []
        self.indent = 0

    def converted(self) -> str:
        at = self._after_front_matter()
        while at < len(self.lines):
            at = self._line(at)
        self._end_paragraph()
        return self.out.text()

    def _after_front_matter(self) -> int:
        found = _FRONT_MATTER.match(self.lines[0])
        if found is None:
            return 0
        for at, line in enumerate(self.lines[1:], 1):
            if line.rstrip() == found[1] or (found[1] == "---" and line.rstrip() == "..."):
                return at + 1
        return 0

    def _line(self, at: int) -> int:
        raw = self.lines[at].rstrip("\r")
        line = _unquoted(raw)
        if not line.strip():
            self._end_paragraph()
            return at + 1
        fence = _FENCE.match(line)
        if fence:
            return self._fence(at, fence[1])
        if _HEADING.match(line):
            self._end_paragraph()
            self.out.add(inline_text(_CLOSING.sub("", _HEADING.sub("", line, count=1)).strip()))
            return at + 1
        if self.paragraph and not self.marker and _UNDERLINE.match(line):
            self._end_paragraph()
            return at + 1
        if _RULE.match(line) or (not self.paragraph and _DEFINITION.match(line)):
            self._end_paragraph()
            return at + 1
        if "|" in line and at + 1 < len(self.lines) and not self.paragraph:
            following = _unquoted(self.lines[at + 1]).rstrip()
            if "-" in following and _DELIMITERS.match(following):
                return self._table(at)
        item = _ITEM.match(line)
        if item and (not self.paragraph or self.marker or item[2] in ("*", "+", "-", "1.", "1)")):
            self._end_paragraph()
            self._item(item)
            line = line[item.end() :]
        elif not self.paragraph:
            indent = len(line) - len(line.lstrip())
            if indent >= 4 + (self.lists[-1] + 2 if self.lists else 0):
                return self._indented_code(at)
            if indent < 2:
                self.lists.clear()
            footnote = _FOOTNOTE.match(line)
            if footnote:
                line = f"[{footnote[1]}] " + line[footnote.end() :]
        self.paragraph.append(line)
        return at + 1

    def _item(self, item: re.Match[str]) -> None:
        indent = len(item[1])
        while self.lists and self.lists[-1] >= indent:
            self.lists.pop()
        self.lists.append(indent)
        self.marker = "  " * (len(self.lists) - 1) + ("-" if item[2] in "*+-" else item[2]) + " "

    def _end_paragraph(self) -> None:
        if not self.paragraph:
            return
        groups: list[list[str]] = [[]]
        for line in self.paragraph:
            broken = line.endswith(("  ", "\\"))
            groups[-1].append(line.removesuffix("\\") if broken else line)
            if broken:
                groups.append([])
        text = inline_text("\n".join(filter(None, map(join_lines, groups))))
        self.out.add(self.marker + text if text.strip() else "", "item" if self.marker else "paragraph")
        self.paragraph, self.marker = [], ""

    def _fence(self, at: int, fence: str) -> int:
        """Code up to the closing fence, or to the end of the document if there is none."""
        self._end_paragraph()
        indent = len(self.lines[at]) - len(self.lines[at].lstrip(" "))
        end = at + 1
        while end < len(self.lines) and not _closes(_unquoted(self.lines[end]), fence):
            end += 1
        code = [_without_indent(line, indent) for line in map(_unquoted, self.lines[at + 1 : end])]
        self.out.add("\n".join(code).strip("\n"), "code")
        return end + 1

    def _indented_code(self, at: int) -> int:
        indent = len(self.lines[at]) - len(self.lines[at].lstrip(" "))
        code: list[str] = []
        while at < len(self.lines) and (not self.lines[at].strip() or self.lines[at][:4].isspace()):
            code.append(_without_indent(self.lines[at], indent))
            at += 1
        self.out.add("\n".join(code).strip("\n"), "code")
        return at

    def _table(self, at: int) -> int:
        while at < len(self.lines) and "|" in (line := _unquoted(self.lines[at]).strip()):
            if not _DELIMITERS.match(line):
                row = _CELL.split(line.removeprefix("|").removesuffix("|"))
                self.out.add(cells_as_row(inline_text(cell.replace("\\|", "|")) for cell in row), "row")
            at += 1
        return at


def inline_text(text: str) -> str:
    """The text without links, emphasis, tags, escapes and entities; code spans as they stand."""
    if not any(mark in text for mark in "`\\<[*_~&"):
        return text
    kept: list[str] = []

    def protected(match: re.Match[str]) -> str:
        literal = match["code"] or match["escaped"] or match["address"]
        if literal is None:
            return "\n" if match[0].lower().startswith("<br") else ""
        kept.append(literal.strip() if match["code"] and literal.strip() else literal)
        return f"\ue000{len(kept) - 1}\ue001"

    text = _INLINE.sub(protected, text.replace("\ue000", "").replace("\ue001", ""))
    text = _LINK.sub(r"\1", _FOOTNOTE_MARK.sub(r"[\1]", _IMAGE.sub(r"\1", text)))
    for emphasis in _EMPHASIS:
        text = emphasis.sub(r"\2", emphasis.sub(r"\2", text))
    return _PROTECTED.sub(lambda match: kept[int(match[1])], html.unescape(text))


def _without_comments(markup: str) -> str:
    """HTML comments are left out, but not those in fenced code."""
    if "<!--" not in markup:
        return markup
    lines: list[str] = []
    fence, comment = "", False
    for line in markup.split("\n"):
        if comment:
            _, closed, line = line.partition("-->")
            if not closed:
                continue
            comment = False
        if fence:
            fence = "" if _closes(_unquoted(line), fence) else fence
        elif found := _FENCE.match(_unquoted(line)):
            fence = found[1]
        elif "<!--" in line:
            pieces = line.split("<!--")
            ended = [piece.partition("-->") for piece in pieces[1:]]
            comment = not ended[-1][1]
            line = pieces[0] + "".join(rest for _, _, rest in ended)
            if not line.strip():
                continue
        lines.append(line)
    return "\n".join(lines)


def _closes(line: str, fence: str) -> bool:
    line = line.strip()
    return len(line) >= len(fence) and set(line) == {fence[0]}


def _unquoted(line: str) -> str:
    """The line without the ``>`` of block quotes."""
    if line[:4].lstrip()[:1] != ">":
        return line
    return re.sub(r"^(?: {0,3}> ?){1,50}", "", line)


def _without_indent(line: str, indent: int) -> str:
    return line[min(indent, len(line) - len(line.lstrip(" "))) :].rstrip()
