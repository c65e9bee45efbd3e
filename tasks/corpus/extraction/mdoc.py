"""The mdoc macros of BSD's manual pages: their arguments may be macros themselves."""

from __future__ import annotations

from typing import Literal

Kind = Literal["text", "glued", "item", "bullet", "verbatim", "filled", "break", "line"]

_PUNCTUATION = frozenset([".", ",", ":", ";", ")", "]", "?", "!"])
_OPENING = frozenset(["(", "["])
_ENCLOSING = {
    "Op": ("[", "]"), "Dq": ("“", "”"), "Sq": ("‘", "’"), "Ql": ("‘", "’"), "Pq": ("(", ")"),
    "Bq": ("[", "]"),
    "Aq": ("<", ">"), "Brq": ("{", "}"), "Qq": ('"', '"'), "Dv": ("", ""),
}  # fmt: skip
_OPEN = {"Oo": "[", "Po": "(", "Do": "“", "So": "‘", "Bo": "[", "Ao": "<", "Bro": "{", "Qo": '"', "Xo": ""}
_CLOSE = {"Oc": "]", "Pc": ")", "Dc": "”", "Sc": "’", "Bc": "]", "Ac": ">", "Brc": "}", "Qc": '"', "Xc": ""}
_PLAIN = frozenset(
    [
        "Ar", "Cm", "Ic", "Pa", "Ev", "Va", "Em", "Sy", "Li", "Er", "Fa", "Ft", "Vt", "No", "Sx", "Tn",
        "Ad", "An", "Cd", "Ms", "Mt", "Dx", "Ux", "Bx", "At", "Fx", "Nx", "Ox", "In", "St", "Lb", "Fd",
        "Bsx", "Eo", "Ec", "%A", "%T", "%B", "%J", "%D", "%I", "%R", "%N", "%V", "%P", "%O", "%Q", "%U",
        "%C",
    ]
)  # fmt: skip
_SYSTEMS = {"Bx": "BSD", "At": "AT&T UNIX", "Fx": "FreeBSD", "Nx": "NetBSD", "Ox": "OpenBSD", "Ux": "UNIX"}
_SPECIAL = frozenset(
    [
        "Nm", "Nd", "Fl", "Xr", "Fn", "Fo", "Fc", "Ns", "Pf", "Ap", "Lk", "Bl", "El", "It", "Bd", "Ed",
        "Dl", "D1", "Bf", "Ef", "Ex", "Rv", "Pp", "Rs", "Re", "Ta", "Hf",
    ]
)  # fmt: skip


class Mdoc:
    """What the macros of a page say, line by line."""

    def __init__(self) -> None:
        self.name = ""
        self.lists: list[str] = []

    def knows(self, macro: str) -> bool:
        """Whether it is one of mdoc's."""
        return (
            macro in _PLAIN or macro in _SPECIAL or macro in _ENCLOSING or macro in _OPEN or macro in _CLOSE
        )

    def line(self, macro: str, arguments: list[str]) -> tuple[Kind, str]:
        """What kind of thing a line of this macro is, and its text."""
        if macro == "Bl":
            self.lists.append(arguments[0] if arguments else "")
            return "break", ""
        if macro == "El":
            del self.lists[-1:]
            return "break", ""
        if macro == "It":
            if self.lists and self.lists[-1] in ("-bullet", "-dash", "-hyphen", "-enum", "-item"):
                return "bullet", ""
            return "item", self._said(arguments)
        if macro == "Bd":
            return ("verbatim" if "-literal" in arguments or "-unfilled" in arguments else "filled"), ""
        if macro == "Ed":
            return "filled", ""
        if macro in ("Dl", "D1"):
            return "line", self._said(arguments)
        if macro in ("Pp", "Rs", "Re"):
            return "break", ""
        text = self._said([macro, *arguments])
        glued = macro in ("Ns", "Ap") or (macro in _CLOSE and macro != "Xc")
        return ("glued" if glued else "text"), text

    def _said(self, words: list[str]) -> str:
        """The text of macros and arguments in a row; what encloses closes at the end of the line."""
        pieces: list[str] = []
        closing: list[str] = []
        glue, macro, said = True, "", True
        for word in [*words, ""]:
            is_macro = self.knows(word)
            if not said and (is_macro or not word or word in _PUNCTUATION):
                default = self._default(macro)
                pieces.append(default if glue or not default else f" {default}")
                glue, said = (macro == "Fl" or (glue and not default)), True
            if is_macro:
                opened = _OPEN.get(word, _ENCLOSING.get(word, ("", ""))[0])
                if opened:
                    pieces.append(opened if glue else f" {opened}")
                pieces.append(_CLOSE.get(word, "'" if word == "Ap" else ""))
                closing.append(_ENCLOSING.get(word, ("", ""))[1])
                glue = (bool(opened) or word in ("Ns", "Ap") or glue) and word not in _CLOSE
                macro, said = word, word not in _PLAIN and word not in ("Nm", "Fl", "Xr", "Nd")
            elif word in _PUNCTUATION:
                pieces.append(word)
                glue = False
            elif word:
                text = self._argument(macro, word, said)
                pieces.append(text if glue or (macro == "Xr" and said) else f" {text}")
                glue = word in _OPENING or macro == "Pf"
                macro, said = "" if macro == "Pf" else macro, True
        return "".join(pieces) + "".join(reversed(closing))

    def _default(self, macro: str) -> str:
        """What a macro says without arguments."""
        if macro == "Nm":
            return self.name
        return {"Ar": "file ...", "Fl": "-", "Pa": "~"}.get(macro, _SYSTEMS.get(macro, ""))

    def _argument(self, macro: str, word: str, later: bool) -> str:
        if macro == "Fl":
            return f"-{word}"
        if macro == "Nm" and not later and not self.name:
            self.name = word
        elif macro in _SYSTEMS and not later:
            return f"{word}BSD" if macro == "Bx" else f"{_SYSTEMS[macro]} {word}"
        elif macro == "Nd" and not later:
            return f"- {word}"
        elif macro == "Xr" and later:
            return f"({word})"
        return word
