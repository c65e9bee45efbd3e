"""From reStructuredText to its text, in one pass over the lines.

docutils refuses what it does not know (every role and directive of Sphinx's) and is slow; a corpus needs the
text of a document whatever tool it was written for.
"""

from __future__ import annotations

import re
import textwrap

from tasks.corpus.extraction.paragraphs import Paragraphs, cells_as_row, join_lines
from tasks.corpus.extraction.rst_inline import inline_text

_DIRECTIVE = re.compile(r"\.\.\s{1,9}(?:\|([^|]{1,80})\|\s{1,9})?([A-Za-z][\w.+:-]{0,60}?)\s?::(?:\s+(.*)|$)")
_FOOTNOTE = re.compile(r"\.\.\s{1,9}\[([^\]\s]{1,60})\]\s*(.*)")
_EXPLICIT = re.compile(r"(?:\.\.|__)(?:\s|$)")
_OPTION = re.compile(r":[A-Za-z][\w -]{0,40}:(?:\s|$)")
_FIELD = re.compile(r":([^:`\s](?:[^:`\n]{0,80}[^:`\s])?):(?:\s+(.*)|$)")
_ADORNMENT = re.compile(r"([=\-`:.'\"~^_*+#<>])\1{2,}$")
_ITEM = re.compile(r"([*+•-]|#\.|\(?(?:[0-9]{1,4}|[A-Za-z]|[ivx]{1,6})[.)])\s{1,9}(?=\S)")
_GRID = re.compile(r"\+[-=+]{3,}\+$")
_TABLE_CELL = re.compile(r"\s{1,40}(\*\s{1,9})?-(?:\s{1,9}|$)")
_SIMPLE_TABLE = re.compile(r"={2,}(?:\s{1,9}={2,}){1,99}$")

_DROPPED = frozenset(
    [
        "toctree", "index", "image", "include", "literalinclude", "contents", "highlight", "module",
        "currentmodule", "moduleauthor", "sectionauthor", "raw", "meta", "tabularcolumns", "default-role",
        "role", "audit-event", "sectnum", "header", "footer", "target-notes", "title", "automodule",
        "autoclass", "autofunction", "autosummary", "graphviz", "digraph", "plot", "unicode", "date",
    ]
)  # fmt: skip
_CODE = frozenset(
    [
        "code-block", "code", "sourcecode", "parsed-literal", "doctest", "testcode", "testoutput",
        "testsetup", "testcleanup", "ipython", "math", "productionlist", "prompt", "highlight-block",
    ]
)  # fmt: skip
_NAMED_CODE = frozenset({"code-block", "code", "sourcecode", "prompt", "testcode", "testsetup", "ipython"})
_TITLED = {
    "note": "Note", "warning": "Warning", "tip": "Tip", "hint": "Hint", "important": "Important",
    "caution": "Caution", "danger": "Danger", "attention": "Attention", "error": "Error",
    "seealso": "See also",
    "todo": "To do", "impl-detail": "CPython implementation detail", "versionadded": "New in version",
    "versionchanged": "Changed in version", "deprecated": "Deprecated since version",
    "deprecated-removed": "Deprecated since version", "versionremoved": "Removed in version",
}  # fmt: skip
_WITHOUT_ARGUMENT = frozenset(
    {"figure", "only", "list-table", "csv-table", "container", "epigraph", "ifconfig"}
)


def rst_text(markup: str) -> str:
    """Titles, paragraphs (joined), lists, code, tables as rows; without comments, targets, navigation."""
    return _Converter(markup).converted()


class _Converter:
    def __init__(self, markup: str) -> None:
        self.lines = [line.expandtabs(8).rstrip() for line in markup.splitlines()]
        self.out = Paragraphs()
        self.substitutions: dict[str, str] = {}
        for line in self.lines:
            found = _DIRECTIVE.match(line.lstrip()) if "replace::" in line else None
            if found and found[1] and found[2] == "replace":
                self.substitutions[found[1]] = inline_text(found[3] or "", {})
        self.paragraph: list[str] = []
        self.indent = 0
        self.marker = ""
        self.lists: list[int] = []
        self.tight = False

    def converted(self) -> str:
        at = 0
        while at < len(self.lines):
            at = self._line(at)
        self._end_paragraph()
        return self.out.text()

    def _line(self, at: int) -> int:
        """Take in the line at ``at`` and what belongs to it; where to go on."""
        line = self.lines[at].lstrip()
        if not line:
            return self._blank(at)
        indent = len(self.lines[at]) - len(line)
        if not self.paragraph:
            if _EXPLICIT.match(line):
                return self._explicit(at, line, indent)
            if line.startswith(">>> "):
                return self._doctest(at)
            if line[0] == "+" and _GRID.match(line):
                return self._grid_table(at, indent)
            if line[0] == "=" and _SIMPLE_TABLE.match(line):
                return self._simple_table(at)
            if line.startswith("| "):
                return self._line_block(at)
            if line[0] == ":" and (field := _FIELD.match(line)):
                return self._field(at, indent, field)
        adornment = _ADORNMENT.match(line)
        if adornment and len(self.paragraph) <= 1 and not (self.paragraph and indent):
            self._end_paragraph()
            return at + 1
        if self.paragraph and indent > self.indent and len(self.paragraph) == 1:
            self._end_paragraph()  # a term, and this is its definition
            self.tight = True
        elif self.paragraph and indent < self.indent:
            self._end_paragraph()
        item = _ITEM.match(line)
        if item and (not self.paragraph or (self.marker and indent < self.indent)):
            self._end_paragraph()
            self._item(item, indent)
            line = line[item.end() :]
            indent += item.end()
        if not self.paragraph:
            self.indent = indent
            while not item and self.lists and self.lists[-1] >= indent:
                self.lists.pop()
        self.paragraph.append(line)
        return at + 1

    def _blank(self, at: int) -> int:
        literal = bool(self.paragraph) and self.paragraph[-1].endswith("::")
        indent = self.indent
        self._end_paragraph()
        return self._literal(at + 1, indent) if literal else at + 1

    def _item(self, item: re.Match[str], indent: int) -> None:
        while self.lists and self.lists[-1] >= indent:
            self.lists.pop()
        self.lists.append(indent)
        bullet = item[1] if item[1][-1] in ".)" and item[1] != "#." else "-"
        self.marker = "  " * (len(self.lists) - 1) + bullet + " "

    def _end_paragraph(self) -> None:
        if not self.paragraph:
            return
        text = join_lines(self.paragraph)
        if text.endswith("::"):
            text = text[:-2] if text in ("::",) or text[-3:-2] == " " else text[:-1]
        self._add(
            self.marker + inline_text(text, self.substitutions).strip(),
            "item" if self.marker else "paragraph",
        )
        self.paragraph, self.marker = [], ""

    def _add(self, text: str, kind: str = "paragraph") -> None:
        self.out.add(text, kind, self.tight)
        self.tight = False

    def _body(self, at: int, indent: int) -> int:
        """The end of what is indented deeper than ``indent``."""
        while at < len(self.lines):
            line = self.lines[at]
            if line and len(line) - len(line.lstrip()) <= indent:
                break
            at += 1
        return at

    def _literal(self, at: int, indent: int, first: str = "") -> int:
        end = self._body(at, indent)
        code = textwrap.dedent("\n".join(self.lines[at:end])).strip("\n")
        self._add(f"{first}\n{code}".strip("\n"), "code")
        return end

    def _doctest(self, at: int) -> int:
        end = at
        while end < len(self.lines) and self.lines[end]:
            end += 1
        self._add(textwrap.dedent("\n".join(self.lines[at:end])), "code")
        return end

    def _explicit(self, at: int, line: str, indent: int) -> int:
        footnote = _FOOTNOTE.match(line)
        if footnote:
            name = footnote[1].lstrip("#*")
            self._begin(f"[{name}] {footnote[2]}" if name else footnote[2], at, indent)
            return at + 1
        directive = _DIRECTIVE.match(line)
        if directive is None or directive[1]:
            return self._body(at + 1, indent)  # a comment, a target, a substitution
        name, argument = directive[2].lower().rpartition(":")[2], (directive[3] or "").strip()
        if name in _DROPPED:
            return self._body(at + 1, indent)
        if name in _CODE:
            return self._literal(
                self._options(at + 1, indent), indent, "" if name in _NAMED_CODE else argument
            )
        if name in _TITLED:
            return self._admonition(at, indent, name, argument)
        column = indent + directive.start(3) if argument else -1
        end = at + 1
        while argument and end < len(self.lines) and self.lines[end]:
            if argument.endswith("\\"):
                argument = argument[:-1] + self.lines[end].strip()
            elif self._indent(end) == column:
                argument += "\n" + self.lines[end].strip()
            else:
                break
            end += 1
        if name not in _WITHOUT_ARGUMENT:
            self._add(re.sub(r"\\(.)", r"\1", argument))
        end = self._options(end, indent)
        return self._list_table(end, indent) if name == "list-table" else end

    def _admonition(self, at: int, indent: int, name: str, argument: str) -> int:
        """``Note:`` and the body; of a version its number goes before the colon."""
        end = self._options(at + 1, indent)
        body = end
        while body < len(self.lines) and not self.lines[body]:
            body += 1
        goes_on = self._body(body, indent) > body
        versioned = "version" in _TITLED[name]
        title = _TITLED[name]
        if versioned and argument:
            version, _, argument = argument.partition(" ")
            title = f"{title} {version}"
        if not argument and not goes_on:
            self._add(title)
            return end
        if argument:
            self._begin(f"{title}: {argument}", end - 1, indent)
            return end
        self._begin(f"{title}:", body - 1, indent)
        line = self.lines[body].lstrip()
        if _ITEM.match(line) or _EXPLICIT.match(line) or line.startswith(">>> "):
            self._end_paragraph()
        return body

    def _begin(self, text: str, at: int, indent: int) -> None:
        """Begin a paragraph in the line at ``at`` that goes on in deeper lines."""
        self._end_paragraph()
        self.paragraph = [text]
        self.indent = max(indent, self._indent(at + 1)) if at + 1 < len(self.lines) else indent

    def _indent(self, at: int) -> int:
        line = self.lines[at]
        return len(line) - len(line.lstrip())

    def _options(self, at: int, indent: int) -> int:
        while at < len(self.lines) and self._indent(at) > indent and _OPTION.match(self.lines[at].lstrip()):
            at += 1
        return at

    def _field(self, at: int, indent: int, field: re.Match[str]) -> int:
        if not self.out:
            return self._body(at + 1, indent)  # a document's own data, such as :orphan:
        self._begin(f"{field[1]}: {field[2] or ''}", at, indent)
        return at + 1

    def _line_block(self, at: int) -> int:
        lines: list[str] = []
        while at < len(self.lines) and self.lines[at].lstrip().startswith("|"):
            lines.append(inline_text(self.lines[at].lstrip()[1:].removeprefix(" "), self.substitutions))
            at += 1
        self._add("\n".join(lines))
        return at

    def _row(self, cells: list[list[str]]) -> None:
        self._add(cells_as_row(inline_text(join_lines(cell), self.substitutions) for cell in cells), "row")

    def _list_table(self, at: int, indent: int) -> int:
        end = self._body(at, indent)
        cells: list[list[str]] = []
        for line in self.lines[at:end]:
            found = _TABLE_CELL.match(line)
            if found and found[1]:
                self._row(cells)
                cells = []
            if found:
                cells.append([line[found.end() :]])
            elif cells:
                cells[-1].append(line)
        self._row(cells)
        return end

    def _grid_table(self, at: int, indent: int) -> int:
        cells: list[list[str]] = []
        while at < len(self.lines) and self.lines[at][indent : indent + 1] in ("+", "|"):
            line = self.lines[at].strip()
            if line[0] == "+":
                self._row(cells)
                cells = []
            else:
                for index, cell in enumerate(line.strip("|").split("|")):
                    if index == len(cells):
                        cells.append([])
                    cells[index].append(cell)
            at += 1
        self._row(cells)
        return at

    def _simple_table(self, at: int) -> int:
        starts = [match.start() for match in re.finditer(r"=+", self.lines[at])]
        columns = list(zip(starts, [*starts[1:], None], strict=True))
        cells: list[list[str]] = []
        for line in self.lines[at + 1 :]:
            at += 1
            if _SIMPLE_TABLE.match(line.strip()):
                if at + 1 >= len(self.lines) or not self.lines[at + 1]:
                    break
                continue
            if set(line) <= {"-", " "}:
                continue
            if line[columns[0][0] : columns[0][1]].strip():
                self._row(cells)
                cells = [[] for _ in columns]
            for cell, (start, end) in zip(cells, columns, strict=False):
                cell.append(line[start:end])
        self._row(cells)
        return at + 1
