"""The profile's section of the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tasks.corpus.profiling.histograms import LENGTH_EDGES
from tasks.corpus.profiling.results import (
    Amount,
    Coverage,
    Diversity,
    LayerProfile,
    Ngrams,
    Noise,
    Part,
    Profile,
)
from tasks.release.circumstances import Circumstances
from tasks.release.evidence import gather
from tasks.release.page import render
from tasks.release.profile_plots import COLOURS, ProfilePlots, profile_plots

NOWHERE = Circumstances(
    name="", written_at="", host="", commit=None, dirty=False, tracked=None, timings={}, parameters={}
)


def parts(characters: dict[str, int]) -> dict[str, Part]:
    return {
        name: Part(documents=10, characters=count, words=0, bytes=0, document_share=0, character_share=0)
        for name, count in characters.items()
    }


def layer(sources: dict[str, int], languages: dict[str, int], lengths: dict[str, list[int]]) -> LayerProfile:
    even = Coverage(entropy=0, effective=1, rare=[])
    none = Ngrams(total=0, distinct=0, distinct_share=None, distinct_of_100k=None, single_share=None)
    nothing = Diversity(ngrams={1: none, 2: none, 3: none}, topic_spread=None)
    return LayerProfile(
        total=Amount(characters=sum(sources.values())),
        sources=parts(sources),
        kinds={},
        domains={},
        languages=parts(languages),
        sources_by_language={},
        coverage=dict.fromkeys(("sources", "kinds", "domains", "languages"), even),
        lengths=lengths,
        diversity=nothing,
        diversity_by_source={},
        noise=Noise(replaced_characters=0, empty_share=0, undetermined_share=0, duplicate_share=0),
        signals={},
    )


def counts(**bins: int) -> list[int]:
    """A histogram with so many documents in the bins of the given numbers."""
    return [bins.get(f"bin{number}", 0) for number in range(len(LENGTH_EDGES))]


def plotted(**layers: LayerProfile) -> ProfilePlots:
    made = profile_plots(
        Profile(
            sketch_size=64,
            sketch_standard_error=0.1,
            minimum_share=0.01,
            length_edges=list(LENGTH_EDGES),
            layers=layers,
            losses={},
        )
    )
    assert made is not None
    return made


BEFORE = layer({"a": 300, "b": 100}, {"unknown": 400}, {"book": counts(bin9=4, bin13=1)})
AFTER = layer({"a": 100, "b": 100}, {"en": 150, "fr": 50}, {"book": counts(bin9=2)})


def test_bars_of_a_figure_have_one_scale_and_their_parts_lie_end_to_end():
    before, after = plotted(raw=BEFORE, mixture=AFTER).sources[1].bars
    assert [(part.name, part.place, part.width) for part in before.segments] == [("a", 0, 75), ("b", 75, 25)]
    assert [(part.place, part.width) for part in after.segments] == [(0, 25), (25, 25)]
    assert (before.total, after.total) == (400, 200)
    assert before.summary == "raw: a: 300, 75.0 %; b: 100, 25.0 %"


def test_a_source_has_the_same_colour_whatever_is_counted():
    documents, characters = plotted(raw=BEFORE, mixture=AFTER).sources
    assert documents.key == characters.key == [("a", "c1"), ("b", "c2")]


def test_languages_are_shares_and_a_layer_that_knows_none_has_no_bar():
    languages = plotted(raw=BEFORE, mixture=AFTER).languages
    assert [bar.name for bar in languages.bars] == ["mixture"]
    assert [(part.name, part.width) for part in languages.bars[0].segments] == [("en", 75), ("fr", 25)]


def test_what_has_no_colour_left_is_drawn_together():
    many = layer({f"s{i}": 100 - i for i in range(COLOURS + 5)}, {"en": 1}, {"book": counts(bin9=1)})
    figure = plotted(raw=many).sources[1]
    assert figure.key[-1] == ("5 other", "other")
    assert sum(part.width for part in figure.bars[0].segments) == pytest.approx(100, abs=0.01)
    assert figure.bars[0].segments[-1].told.startswith("5 other: 455,")


def test_a_part_without_anything_in_a_layer_is_not_drawn_and_keeps_its_colour():
    figure = plotted(raw=BEFORE, mixture=layer({"b": 5}, {"en": 5}, {"book": counts(bin9=1)})).sources[1]
    assert [(part.name, part.style) for part in figure.bars[1].segments] == [("b", "c2")]


def test_lengths_are_steps_over_the_bins_that_are_used():
    ((kind, chart),) = plotted(raw=BEFORE, mixture=AFTER).lengths
    assert kind == "book"
    before, after = chart.lines
    assert before.path == "M0 100V0H20V100H40V100H60V100H80V75H100V100"
    assert after.path.startswith("M0 100V50H20V100H40")
    assert [(tick.place, tick.label) for tick in chart.x_ticks] == [(0, "100"), (80, "1 k")]
    assert (before.name, before.last, after.last) == ("raw", "5", "2")
    assert "5 documents, most of them with 100 characters or somewhat more" in chart.summary


def test_a_kind_that_went_is_drawn_with_nothing_left():
    went = layer({"a": 1}, {"en": 1}, {"code": counts(bin9=1)})
    charts = dict(plotted(raw=went, mixture=AFTER).lengths)
    assert list(charts) == ["book", "code"]
    assert "mixture: no documents" in charts["code"].summary


def test_without_a_profile_or_a_document_there_is_nothing_to_draw():
    assert profile_plots(None) is None
    empty = Profile(
        sketch_size=64, sketch_standard_error=0.1, minimum_share=0, length_edges=[0], losses={},
        layers={"raw": layer({}, {}, {})},
    )  # fmt: skip
    assert profile_plots(empty) is None


def section(data: Path, artifacts: Path, reports: Path) -> str:
    html = render("Gristmill", gather(data, artifacts, reports, examples=1, excerpt=100), NOWHERE)
    return html[
        html.index('<section aria-labelledby="profile">') : html.index('aria-labelledby="duplicates"')
    ]


def test_the_page_draws_the_profile_with_a_description_of_every_picture(finished):
    html = section(*finished)
    pictures = re.findall(r"<svg[^>]*>", html)
    assert len(pictures) == 5 + 5 + 4 + 1  # two figures of five layers, languages of four, one kind
    assert all('role="img" aria-label="' in picture for picture in pictures)
    assert "near_duplicate, " in html
    assert "standard error of 12.7 %" in html
    assert "2,469,953 in all" in html


def test_the_page_tells_the_tokens_of_each_group(finished):
    page = re.sub(r"<[^>]+>|\s+", " ", render("Mill", gather(*finished, examples=0, excerpt=100), NOWHERE))
    table = re.sub(r" +", " ", page.partition("Tokens of the mixture")[2])[:120]
    assert "source books 70 web 30 language en 100" in table


def test_names_of_sources_and_languages_are_never_markup(tmp_path: Path):
    named = layer({"<script>a": 3}, {"<u>": 3}, {"<i>k": counts(bin9=1)})
    profile = Profile(
        sketch_size=64, sketch_standard_error=0.1, minimum_share=0, length_edges=list(LENGTH_EDGES),
        layers={"raw": named}, losses={},
    )  # fmt: skip
    (tmp_path / "profile.json").write_text(profile.model_dump_json())
    html = section(tmp_path, tmp_path, tmp_path)
    assert "&lt;script&gt;a" in html
    assert not re.search("<script|<u>|<i>k", html)


def test_the_page_says_where_there_is_no_profile(tmp_path: Path):
    assert "no data" in section(tmp_path, tmp_path, tmp_path)
