"""The page's section on what reviewers found."""

from __future__ import annotations

import re
import shutil

import pytest

from tasks.release.circumstances import Circumstances
from tasks.release.evidence import gather
from tasks.release.page import render
from tasks.stage import StageError

RUN = Circumstances()


def section(finished, reviews) -> str:
    html = render("Gristmill", gather(*finished, examples=1, excerpt=100, reviews=reviews), RUN)
    part = html[html.index('<section aria-labelledby="review">') :]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", part[: part.index("</section>")]))


def test_each_rule_has_its_rate_with_an_interval_and_what_that_means_for_the_corpus(finished):
    text = section(finished, finished[0].parent / "reviews")
    assert "clean/too_short 143 10 of 10 2 0 20.0 % (5.7–51.0) 29 (8–73)" in text


def test_a_rule_of_which_nothing_was_judged_has_no_data(finished):
    text = section(finished, finished[0].parent / "reviews")
    assert re.search(r"clean/symbol_share .* 70 0 of 1 0 0 no data no data", text)


def test_what_was_kept_is_told_with_the_unsure_ones_apart(finished):
    text = section(finished, finished[0].parent / "reviews")
    assert "kept, and should have gone 3 kept 1 of 2 0 1 0.0 % (0.0–79.3)" in text


def test_a_rule_that_removes_another_number_than_when_it_was_reviewed_is_marked(finished):
    text = section(finished, finished[0].parent / "reviews")
    assert "clean/symbol_share now removes 61" in text
    assert len(re.findall(r"now removes \d", text)) == 1


def test_without_verdicts_one_line_says_how_to_make_them(finished, tmp_path):
    text = section(finished, tmp_path)
    assert "no data : gristmill review draws documents" in text


def test_a_broken_verdict_names_its_file_and_line(finished, tmp_path):
    reviews = shutil.copytree(finished[0].parent / "reviews", tmp_path / "reviews")
    with (reviews / "verdicts.jsonl").open("a") as file:
        file.write('{"id": "x"}\n')
    with pytest.raises(StageError, match=r"verdicts\.jsonl line 13 is no verdict: `id`"):
        section(finished, reviews)


def test_verdicts_without_their_sample_are_an_error_that_names_it(finished, tmp_path):
    shutil.copy(finished[0].parent / "reviews" / "verdicts.jsonl", tmp_path)
    with pytest.raises(StageError, match=re.escape(str(tmp_path / "sample.json"))):
        section(finished, tmp_path)
