"""Text of reStructuredText, roff and Markdown."""

from __future__ import annotations

import pytest

from tasks.corpus.extraction.extract import MARKUPS, extract_text

PYTHON_FAQ = """:tocdepth: 2

==========================
Graphic User Interface FAQ
==========================

.. only:: html

   .. contents::

.. XXX need review for Python 3.


General GUI Questions
=====================

Standard builds of Python include an object-oriented interface to the Tcl/Tk
widget set, called :ref:`tkinter <Tkinter>`.  See
`binary distributions <https://www.python.org/downloads/>`_ of Python.
"""
"""From the Python documentation (PSF-2.0)."""


def test_a_piece_of_the_python_documentation() -> None:
    assert extract_text(PYTHON_FAQ, "rst") == (
        "Graphic User Interface FAQ\n\nGeneral GUI Questions\n\n"
        "Standard builds of Python include an object-oriented interface to the Tcl/Tk widget set, called "
        "tkinter.  See binary distributions of Python."
    )


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("Use :func:`len`, :class:`~a.b.C` and :pep:`8`.", "Use len, C and PEP 8."),
        ("A ``x_ *y*`` literal, *one* **two** `three`_ four_.", "A x_ *y* literal, one two three four."),
        ("Code::\n\n    if x:\n        y\n\nAfter", "Code:\n\nif x:\n    y\n\nAfter"),
        (".. code-block:: python\n   :linenos:\n\n   x = [1]\n", "x = [1]"),
        (".. note:: Mind\n   the gap.\n", "Note: Mind the gap."),
        (".. note::\n\n   Mind the gap.\n", "Note: Mind the gap."),
        (".. versionchanged:: 3.3\n   More.\n", "Changed in version 3.3: More."),
        (".. versionadded:: 3.2\n\nNext", "New in version 3.2\n\nNext"),
        (".. unknown:: arg\n\n   body kept\n", "arg\n\nbody kept"),
        (".. function:: f(a)\n              g(b, \\*c)\n\n   Does.", "f(a)\ng(b, *c)\n\nDoes."),
        (".. toctree::\n   :maxdepth: 2\n\n   a\n   b\n\nend", "end"),
        (".. image:: x.png\n   :alt: y\n\n.. a comment\n   of two lines\n\n.. _target:\n\nend", "end"),
        ("|v| it\n\n.. |v| replace:: Version", "Version it"),
        ("See [1]_.\n\n.. [1] The\n   note.\n", "See [1].\n\n[1] The note."),
        ("para\n\n:param x: what\n   it is", "para\n\nparam x: what it is"),
        ("* a\n* b\n  more\n\n  * c", "- a\n- b more\n  - c"),
        ("term\n   what it\n   means", "term\nwhat it means"),
        ("=== ===\nA   B\n=== ===\n1   2\n=== ===\n", "A | B\n1 | 2"),
        ("+---+---+\n| a | b |\n+===+===+\n| c | d |\n|   | e |\n+---+---+", "a | b\nc | d e"),
        (".. list-table::\n\n   * - a\n     - b\n   * - c\n     - d", "a | b\nc | d"),
        ("| line\n| block", "line\nblock"),
        (">>> x = 1\n>>> x\n1\n\ntext", ">>> x = 1\n>>> x\n1\n\ntext"),
    ],
)
def test_rst(markup: str, text: str) -> None:
    assert extract_text(markup, "rst") == text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ('.\\" comment\n.TH LS 1\n.SH NAME\nls \\- list', "LS(1)\n\nNAME\n\nls - list"),
        (".so man1/ls.1", ""),
        (".BR ls (1)\nand\n.IR file ...\n.B two words", "ls(1) and file... two words"),
        ('.BI "int f(int " x ");"', "int f(int x);"),
        ("\\fBbold\\fP \\(em \\[u00E9]\\[bu] \\*(lqq\\*(rq \\e \\&. \\s-2X\\s0", "bold — é• “q” \\ . X"),
        (".de XX\ndropped\n..\nkept", "kept"),
        (".if t dropped\n.if n kept\n.ie t no\n.el yes", "kept yes"),
        (".if t \\{\\\ndropped\n.if n dropped\n.\\}\nkept", "kept"),
        (".ie n \\{\\\nkept\n.\\}\n.el \\{\\\ndropped\n.\\}", "kept"),
        (".TP\n.B \\-a\nAll of\nthem.\n.IP \\(bu 2\npoint", "-a\nAll of them.\n\n- point"),
        (".nf\na\n  b\n.fi\nc\nd", "a\n  b\n\nc d"),
        (".TS\ntab(;);\nl l.\na;b\n_\nT{\nlong\ncell\nT};d\n.TE", "a | b\nlong cell | d"),
        (".UR http://x.org\nthe site\n.UE .", "the site <http://x.org>."),
        (".ds x value\nthe \\*x", "the value"),
        ("one\\c\ntwo", "onetwo"),
        ("字\n词", "字词"),
        (".Dd x\n.Dt LS 1\n.Sh NAME\n.Nm ls\n.Nd list it\n"
         ".Sh SYNOPSIS\n.Nm\n.Op Fl a\n.Ar file .\n.Xr cp 1 ,",
         "LS(1)\n\nNAME\n\nls - list it\n\nSYNOPSIS\n\nls [-a] file. cp(1),"),
        (".Bl -tag\n.It Fl a Ns Ar x\nA flag.\n.El", "-ax\nA flag."),
    ],
)  # fmt: skip
def test_roff(markup: str, text: str) -> None:
    assert extract_text(markup, "roff") == text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("---\ntitle: x\n---\n# Head #\nwrapped\nlines", "Head\n\nwrapped lines"),
        ("Title\n=====\n\n[a link](http://x.org \"t\") ![alt](x.png) <http://y.org>", "Title\n\na link alt http://y.org"),
        ("[![badge](b.svg)](http://x.org) [ref][r]\n\n[r]: http://z.org", "badge ref"),
        ("**bold** *it* _it_ snake_case `a*b*c` \\*x\\* &copy;", "bold it it snake_case a*b*c *x* ©"),
        ("```python\nx = [1]\n\n\n  # not *head*\n```\nafter", "x = [1]\n\n  # not *head*\n\nafter"),
        ("para\n\n    code  x\n\nend", "para\n\ncode  x\n\nend"),
        ("| a | b |\n|---|:-:|\n| 1 | `2` |", "a | b\n1 | 2"),
        ("- a\n- b\n  - c\n1. d", "- a\n- b\n  - c\n1. d"),
        ("x <!-- gone\nstill --> y\n\n```\n<!-- kept -->\n```", "x y\n\n<!-- kept -->"),
        ("> quoted\n> text", "quoted text"),
        ("line  \nbreak", "line\nbreak"),
        ("<p align=center>hi<br>there</p>", "hi\nthere"),
    ],
)  # fmt: skip
def test_markdown(markup: str, text: str) -> None:
    assert extract_text(markup, "markdown") == text


@pytest.mark.parametrize("markup", MARKUPS)
@pytest.mark.parametrize(
    "unit",
    ["`", "[", "![", "*", "..\n", ".if n ", ".de x\n", "a\\c\n", "\\", "|", "\x00", "\ud800", "- a\n", "> "],
)
def test_endless_repetition_comes_to_an_end_in_every_markup(unit: str, markup: str) -> None:
    extract_text(unit * (100_000 // len(unit)), markup).encode("utf-8")


def test_code_is_only_normalised() -> None:
    code = 'def f():\n\treturn list[3], "Ã©"  # [1] &amp; `x`\r\n\n\nclass A:   \n    pass\n'
    assert extract_text(code, "code") == (
        'def f():\n\treturn list[3], "Ã©"  # [1] &amp; `x`\n\n\nclass A:\n    pass'
    )


def test_plain_text_is_not_wrapped_anew() -> None:
    poem = "Rose-cheek'd Adonis hied him to the chase;\n  Hunting he lov'd, but love he laugh'd to scorn;"
    assert extract_text(poem, "plain") == poem


def test_a_markup_that_is_not_known_is_named() -> None:
    with pytest.raises(ValueError, match="unknown markup 'tex'.*plain, html"):
        extract_text("x", "tex")


@pytest.mark.parametrize("markup", MARKUPS)
@pytest.mark.parametrize("raw", ["", " \n\t", "\u2003\u3000", "\u200b\ufeff", "\u200e\n\u2060"])
def test_a_text_of_which_nothing_shows_is_empty(markup: str, raw: str) -> None:
    assert extract_text(raw, markup) == ""


def test_signs_without_width_stay_where_something_shows() -> None:
    assert extract_text("می\u200cخواهم", "plain") == "می\u200cخواهم"
    assert extract_text("❤\ufe0f", "plain") == "❤\ufe0f"
