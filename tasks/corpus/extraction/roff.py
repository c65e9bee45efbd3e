"""From roff (man pages with the man or mdoc macros) to its text, in one pass over the lines."""

from __future__ import annotations

import re
from bisect import bisect_right

from tasks.corpus.extraction.mdoc import Mdoc
from tasks.corpus.extraction.paragraphs import Paragraphs, cells_as_row, join_lines
from tasks.corpus.extraction.roff_escapes import FIXED_STRINGS, MAX_STRING, unescape, without_comment

MAX_CONDITIONS = 50
"""Of one line; what stands behind more is left out."""

_REQUEST = re.compile(r"[.'][ \t]{0,99}([A-Za-z0-9%\[\]&^_*:|#/-]{1,40}|\\\})?[ \t]{0,99}(.*)", re.DOTALL)
_ARGUMENT = re.compile(r'"((?:[^"]|""){0,2000})"?|((?:\\.|[^\s\\]|\\$){1,2000})')
_END_OF_DEFINITION = re.compile(r"[.'][ \t]{0,99}(\S{1,40})")
_CONDITION = re.compile(
    r"[ \t]*(!?)[ \t]*(?:([nteo])(?![\w(])|'([^'\n]{0,200})'([^'\n]{0,200})'"
    r'|"([^"\n]{0,200})"([^"\n]{0,200})"'
    r"|([cdmrFS])[ \t]{0,9}(\\\[[^\]\n]{0,40}\]|\S{1,40})|(\S{1,200}))[ \t]*"
)

_BREAKS = frozenset([
    "PP", "P", "LP", "Pp", "sp", "Sp", "HP", "Tp", "RS", "RE", "bp", "ne", "ce", "DT", "fl", "Bk", "Ek",
])  # fmt: skip
_LINE_BREAKS = frozenset({"br"})
_VERBATIM = {"nf": 1, "EX": 1, "Vb": 1, "DS": 1, "CS": 1, "fi": 0, "EE": 0, "Ve": 0, "DE": 0, "CE": 0}
_FONTS = frozenset(["B", "I", "R", "SM", "SB", "CW", "b", "i", "r"])
_ALTERNATING = frozenset(["BR", "RB", "BI", "IB", "IR", "RI"])
_DEFINITIONS = frozenset(["de", "am", "de1", "am1", "dei", "ami", "ig"])
_IGNORED = frozenset(
    [
        "so", "nr", "ft", "ad", "hy", "nh", "in", "ll", "ti", "ta", "ss", "ne", "PD", "IX", "UC", "AT",
        "rm", "als", "mso", "do", "rr", "fam", "na", "tm", "ev", "di", "ps", "vs", "lf", "if", "pl", "po",
        "ns", "rs", "tr", "TS&", "hw", "cc", "c2", "ec", "eo", "lg", "ul", "cu", "mk", "rt", "sv", "os",
        "nx", "ex", "ab", "lt", "pc", "tl", "am", "as", "rn", "pm", "eh", "oh", "nm", "nn", "INDENT",
        "UNINDENT", "OS", "Dd", "Os", "Dt", "warn", "cflags", "char", "fchar", "rchar", "ftr", "fp",
        "special", "kern", "hla", "hpf", "BE", "VS", "VE", "AS",
    ]
)  # fmt: skip


def roff_text(markup: str) -> str:
    """Headings, paragraphs (joined), lists, examples as they stand, tables as rows.

    Comments, macro definitions, and requests that only change how a page looks are left out. Conditions are
    decided as on a terminal with groff. A page that only refers to another (``.so``) has no text.
    """
    return _Converter(markup).converted()


class _Converter:
    def __init__(self, markup: str) -> None:
        self.lines = markup.splitlines()
        self.out = Paragraphs()
        self.strings: dict[str, str] = {}
        self.macros: set[str] = set()
        self.paragraph: list[list[str]] = []
        """Lines as pieces that are put together without a blank; a line ``\\n`` is a break."""

        self.verbatim = False
        self.glued = False
        """The last line ended in ``\\c``: the next one goes on without a blank."""

        self.next_line = ""
        """What the next line of text is: a ``term`` or a ``heading``."""

        self.kind = "paragraph"
        self.tight = False
        self.links: list[str] = []
        self.otherwise: list[bool] = []
        """For each ``.ie`` whose ``.el`` is to come, whether that applies."""

        self.requests: dict[str, list[int]] = {}
        """In which lines each request stands; filled when first needed."""

        self.mdoc = Mdoc()

    def converted(self) -> str:
        at = 0
        while at < len(self.lines):
            at = self._line(self.lines[at], at)
        self._end_paragraph()
        return self.out.text()

    def _line(self, line: str, at: int) -> int:
        """Take in one line and what belongs to it; where to go on."""
        while line.endswith("\\") and not line.endswith("\\\\") and at + 1 < len(self.lines):
            if len(line) > 10_000:
                break
            at += 1
            line = line[:-1] + self.lines[at]
        line = without_comment(line)
        if line[:1] in (".", "'"):
            request = _REQUEST.match(line)
            return self._request(request[1] or "", request[2], at) if request else at + 1
        self._text(line)
        return at + 1

    def _text(self, line: str) -> None:
        glue = line.endswith("\\c")
        text = unescape(line.replace("\\}", ""), self.strings)
        if self.next_line:
            kind, self.next_line = self.next_line, ""
            if text.strip():
                self._heading(text) if kind == "heading" else self._term(text)
            return
        if not text.strip():
            if not self.verbatim:
                if line.strip() == "":
                    self._end_paragraph()
                return
            text = ""
        elif line[:1] in " \t" and not self.verbatim and self.paragraph:
            self.paragraph.append(["\n"])  # a line that begins with blanks stands for itself
        self._put(text, self.glued)
        self.glued = glue

    def _put(self, text: str, glued: bool = False) -> None:
        if glued and self.paragraph:
            self.paragraph[-1].append(text)
        else:
            self.paragraph.append([text])

    def _request(self, name: str, rest: str, at: int) -> int:
        if name in _DEFINITIONS:
            return self._definition(name, rest, at)
        if name in ("if", "ie", "el", "while"):
            return self._conditional(name, rest, at)
        if name == "TS":
            return self._table(at)
        if name in ("EQ", "PS", "GS"):
            return self._skip(at, {"EQ": "EN", "PS": "PE", "GS": "GE"}[name])
        if name == "ds" or name == "as":
            self._string(rest, name == "as")
        elif name in ("SH", "SS", "Sh", "Ss"):
            self._end_paragraph()
            self.verbatim = False
            text = " ".join(self._arguments(rest))
            if text.strip():
                self._heading(text)
            else:
                self.next_line = "heading"
        elif name in ("TH", "Dt"):
            title = self._arguments(rest)
            self.out.add(f"{title[0]}({title[1]})" if len(title) > 1 else "".join(title))
        elif name in _BREAKS:
            self._break()
        elif name in _LINE_BREAKS:
            self._put("\n")
        elif name in _VERBATIM or name in ("SY", "YS"):
            self._verbatim(name, rest)
        elif name in ("TP", "TQ"):
            self._break()
            self.next_line = "term"
        elif name == "IP":
            self._break()
            mark = self._arguments(rest)[:1]
            if mark and mark[0].strip():
                self._term(mark[0])
        elif name in _ALTERNATING:
            self._add("".join(self._arguments(rest)), rest)
        elif name in _FONTS:
            self._add(" ".join(self._arguments(rest)), rest)
        elif name in ("UR", "MT", "UE", "ME", "URL", "MTO", "OP"):
            self._link(name, self._arguments(rest))
        elif not name or name in _IGNORED or name == "\\}":
            pass
        elif self.mdoc.knows(name):
            self._mdoc(name, self._arguments(rest))
        elif name in self.macros:
            self._add(" ".join(self._arguments(rest)), rest)
        return at + 1

    def _add(self, text: str, source: str) -> None:
        """Text from a macro: it takes the place of a line of text."""
        if not text:
            return
        glue = source.endswith("\\c")
        if self.next_line:
            kind, self.next_line = self.next_line, ""
            self._heading(text) if kind == "heading" else self._term(text)
            return
        self._put(text, self.glued)
        self.glued = glue

    def _arguments(self, rest: str) -> list[str]:
        return [
            unescape(quoted.replace('""', '"') if quoted or not plain else plain, self.strings)
            for quoted, plain in _ARGUMENT.findall(rest)
        ]

    def _heading(self, text: str) -> None:
        self._end_paragraph()
        self.out.add(join_lines([text]))

    def _term(self, text: str) -> None:
        """What a paragraph is about, on a line of its own; a bullet or a number begins the paragraph."""
        self._end_paragraph()
        text = join_lines([text])
        if text in ("•", "-", "*", "o", "·", "—", "–", "+"):
            self.paragraph, self.kind = [["- "]], "item"
            self.glued = True
        elif re.fullmatch(r"\(?[0-9A-Za-z]{1,3}[.)]|\[[0-9]{1,3}\]", text):
            self.paragraph, self.kind = [[text, " "]], "item"
            self.glued = True
        else:
            self.out.add(text, tight=self.tight)
            self.tight = True

    def _break(self) -> None:
        if self.verbatim:
            self._put("")
        else:
            self._end_paragraph()

    def _verbatim(self, name: str, rest: str) -> None:
        self._end_paragraph()
        if name in ("SY", "YS"):
            if name == "SY":
                self._add(" ".join(self._arguments(rest)), "")
            return
        self.verbatim = bool(_VERBATIM[name])

    def _end_paragraph(self) -> None:
        lines = ["".join(pieces) for pieces in self.paragraph]
        self.paragraph, self.glued = [], False
        kind, self.kind = self.kind, "paragraph"
        if not lines:
            return
        if self.verbatim:
            text = "\n".join(line for line in lines if line != "\n").strip("\n").rstrip()
            self.out.add(text, "code", self.tight)
        else:
            groups: list[list[str]] = [[]]
            for line in lines:
                groups.append([]) if line == "\n" else groups[-1].append(line)
            text = "\n".join(filter(None, map(join_lines, groups)))
            self.out.add(text, kind, self.tight)
        if text.strip():
            self.tight = False

    def _link(self, name: str, arguments: list[str]) -> None:
        first = arguments[0] if arguments else ""
        if name in ("UR", "MT"):
            self.links.append(first)
        elif name in ("UE", "ME"):
            address = self.links.pop() if self.links else ""
            if address:
                self._put(f"<{address}>{first}")
        elif name == "OP":
            self._add(f"[{' '.join(arguments)}]", "")
        elif first:
            text = arguments[1] if len(arguments) > 1 else ""
            self._add(f"{text} <{first}>{''.join(arguments[2:3])}".strip(), "")

    def _mdoc(self, name: str, arguments: list[str]) -> None:
        kind, text = self.mdoc.line(name, arguments)
        if kind == "item":
            self._end_paragraph()
            self._term(text) if text else None
        elif kind == "bullet":
            self._end_paragraph()
            self._term("•")
        elif kind in ("verbatim", "filled"):
            self._end_paragraph()
            self.verbatim = kind == "verbatim"
        elif kind == "break":
            self._end_paragraph()
        elif kind == "line":
            self.paragraph += [["\n"], [text], ["\n"]]
        elif text:
            self.glued = self.glued or kind == "glued"
            self._add(text, "")

    def _string(self, rest: str, append: bool) -> None:
        name, _, value = rest.partition(" ")
        value = unescape(value.lstrip().removeprefix('"'), self.strings)
        if name not in FIXED_STRINGS and len(self.strings) < MAX_STRING:
            self.strings[name] = ((self.strings.get(name, "") if append else "") + value)[:MAX_STRING]

    def _definition(self, name: str, rest: str, at: int) -> int:
        names = rest.split()
        if name != "ig" and names:
            self.macros.add(names[0])
        end = (names[0] if name == "ig" else names[1] if len(names) > 1 else ".") if names else "."
        return self._skip(at, end)

    def _skip(self, at: int, end: str) -> int:
        if not self.requests:
            for index, line in enumerate(self.lines):
                found = _END_OF_DEFINITION.match(line) if line[:1] in (".", "'") else None
                if found:
                    self.requests.setdefault(found[1], []).append(index)
        places = self.requests.get(end, [])
        after = bisect_right(places, at)
        # One that never ends: what follows is text rather than nothing.
        return places[after] + 1 if after < len(places) else at + 1

    def _conditional(self, name: str, rest: str, at: int) -> int:
        """Decide the conditions of a line, one after another, then take in what they guard."""
        for _ in range(MAX_CONDITIONS):
            if name == "el":
                applies, body = (self.otherwise.pop() if self.otherwise else False), rest.lstrip()
            else:
                condition = _CONDITION.match(rest)
                applies = condition is not None and name != "while" and _holds(condition)
                body = rest[condition.end() :].lstrip() if condition else ""
                if name == "ie":
                    self.otherwise.append(not applies)
                    del self.otherwise[:-MAX_CONDITIONS]
            if not applies:
                return self._skip_body(body, at)
            body = body.removeprefix("\\{").lstrip()
            request = _REQUEST.match(body) if body[:1] in (".", "'") else None
            if request is None or request[1] not in ("if", "ie", "el"):
                return self._line(body, at) if body and body != "\\" else at + 1
            name, rest = request[1], request[2]
        return at + 1

    def _skip_body(self, body: str, at: int) -> int:
        depth = body.count("\\{") - body.count("\\}")
        while depth > 0 and at + 1 < len(self.lines):
            at += 1
            line = self.lines[at]
            depth += line.count("\\{") - line.count("\\}")
        while (
            self.lines[at].endswith("\\") and not self.lines[at].endswith("\\\\") and at + 1 < len(self.lines)
        ):
            at += 1
        return at + 1

    def _table(self, at: int) -> int:
        """The rows of tbl's table (options, formats up to the line that ends in a full stop, data)."""
        end = at + 1
        while end < len(self.lines) and not self.lines[end].startswith((".TE", "'TE")):
            end += 1
        self._end_paragraph()
        separator, formats, block = "\t", True, False
        cells: list[str] = []
        for line in map(without_comment, self.lines[at + 1 : end]):
            if formats:
                option = re.search(r"tab\s{0,9}\((.)\)", line)
                separator = option[1] if option and ";" in line else separator
                formats = not line.rstrip().endswith(".")
                continue
            if line.startswith(".T&"):
                formats = True
                continue
            if block:
                if line.startswith("T}"):
                    block, line = False, line[2:].removeprefix(separator)
                    if not line:
                        self._row(cells)
                        cells = []
                        continue
                else:
                    request = _REQUEST.match(line) if line[:1] == "." else None
                    cells[-1] += " " + ("".join if request and request[1] in _ALTERNATING else " ".join)(
                        self._arguments(request[2]) if request else [unescape(line, self.strings)]
                    )
                    continue
            elif line[:1] == "." or line.strip() in ("_", "="):
                continue
            pieces = line.split(separator)
            if pieces[-1].rstrip() == "T{":
                block, pieces[-1] = True, ""
            cells += [unescape(piece, self.strings) for piece in pieces]
            if not block:
                self._row(cells)
                cells = []
        self._row(cells)
        return end + 1

    def _row(self, cells: list[str]) -> None:
        self.out.add(
            cells_as_row(join_lines([cell]) for cell in cells if cell.strip() not in ("\\_", "_", "\\^")),
            "row",
        )


def _holds(condition: re.Match[str]) -> bool:
    """What a condition is on a terminal with groff; what cannot be told is false."""
    negated, mode, left, right, left2, right2, test, _, expression = condition.groups()
    if mode:
        result = mode in "no"
    elif left is not None:
        result = left == right
    elif left2 is not None:
        result = left2 == right2
    elif test:
        result = test == "c"
    else:
        result = "\\n(.g" in expression or "\\n[.g]" in expression or expression.strip("0") in ("1", "1n")
    return result != bool(negated)
