"""Main text of web pages."""

from __future__ import annotations

import pytest

from tasks.corpus.extraction.extract import extract_text

HANDBOOK = """<?xml version="1.0" encoding="UTF-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head>
<title>2.1. Needs</title></head><body>
<ul class="docnav top">
<li class="previous"><a href="p"><strong>Prev</strong></a></li>
<li class="home">The Debian Administrator's Handbook</li>
<li class="next"><a href="n"><strong>Next</strong></a></li></ul>
<div class="section"><div class="titlepage"><div>
<h2 class="title"><a id="x"></a>2.1. Fast Growing IT Needs</h2></div></div>
<div class="para">
    Falcot Corp is a manufacturer of high quality audio equipment. The company is growing strongly, and
    has two facilities, one in Saint-Étienne, and another in Montpellier.
    Run <code class="command">apt install ssh</code> there.
</div><div class="itemizedlist"><ul><li class="listitem"><div class="para">
    modern, easily scalable infrastructure;
</div></li><li class="listitem"><div class="para">improvement in security.</div></li></ul></div>
<div class="example"><div class="example-contents"><pre class="screen"># apt update
  indented   code
</pre></div></div>
<table><tr><th>Site</th><th>Staff</th></tr><tr><td>Saint-Étienne</td><td>150</td></tr></table></div>
<ul class="docnav"><li class="previous"><a href="p"><strong>Prev</strong>1.6. Lifecycle</a></li></ul>
</body></html>"""
"""Shortened from The Debian Administrator's Handbook (GPL-2+ or CC-BY-SA-3.0)."""


def test_headings_lists_code_and_tables_stay_in_order_and_navigation_goes() -> None:
    assert extract_text(HANDBOOK, "html") == (
        "2.1. Fast Growing IT Needs\n\n"
        "Falcot Corp is a manufacturer of high quality audio equipment. The company is growing strongly, and "
        "has two facilities, one in Saint-Étienne, and another in Montpellier. Run apt install ssh there.\n\n"
        "- modern, easily scalable infrastructure;\n- improvement in security.\n\n"
        "# apt update\n  indented   code\n\n"
        "Site | Staff\nSaint-Étienne | 150"
    )


def test_what_stands_around_an_article_goes() -> None:
    said = " ".join(f"Sentence number {n} of the article says something of its own." for n in range(20))
    page = (
        "<html><body><nav><a href=/>Home</a> <a href=/a>About us</a></nav>"
        "<div class=sidebar>Popular posts</div>"
        f"<article><h1>Rain in June</h1><p>{said}</p></article>"
        "<div class='cookie-consent'>We use cookies</div><footer>Imprint</footer></body></html>"
    )
    assert extract_text(page, "html") == f"Rain in June\n\n{said}"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("just text, no tag", "just text, no tag"),
        ("<p>one<br>two", "one\ntwo"),
        ("<p>a &amp; b &lt;c&gt; &eacute;", "a & b <c> é"),
        ("<script>var x = 1</script><p>seen</p><style>p {}</style>", "seen"),
        ('<p>seen</p><p style="display: none">hidden</p><p hidden>hidden</p>', "seen"),
        ("<ol start=3><li>three<li>four<ul><li>inner</ul></ol>", "3. three\n4. four\n  - inner"),
        ("<h2>Title<a class=headerlink href=#t>¶</a></h2><p>body", "Title\n\nbody"),
        ("<table><tr><td><ul><li>a</ul></td><td>b</td></tr></table>", "- a\n\nb"),
        ("<pre>\n  a\n\tb</pre>", "  a\n\tb"),
        ("", ""),
        ("<html></html>", ""),
    ],
)
def test_elements(page: str, text: str) -> None:
    assert extract_text(page, "html") == text


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 200_000 + "deep",
        "<b>x" * 200_000 + " deep",
        "<table><tr><td>" * 60_000 + "deep",
        "<p " + " ".join(f"a{n}=1" for n in range(100_000)) + ">deep",
        "<p>deep" + "<" * 1_000_000,
        "deep" + "<![CDATA[" * 100_000,
        "deep" + "<!--" * 200_000,
        "deep" + "<script>" * 100_000,
        "deep\x00\ud800",
    ],
)
def test_a_page_that_no_parser_takes_still_has_its_text(page: str) -> None:
    assert "deep" in extract_text(page, "html")


def test_a_picture_in_the_page_does_not_make_it_too_strange_to_parse() -> None:
    page = f'<h1>T</h1><img src="data:image/png;base64,{"A" * 100_000}"><ul><li>item</ul>'
    assert extract_text(page, "html") == "T\n\n- item"
