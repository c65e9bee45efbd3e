"""The page in a real browser, opened as a file: `make test-ui` (Debian: chromium, chromium-driver)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.reviewing.page import render_page
from tasks.corpus.reviewing.rates import false_removal_rates
from tasks.corpus.reviewing.sample import Sample
from tasks.corpus.reviewing.verdicts import read_verdicts

pytestmark = pytest.mark.ui

SHORT, ODD = "clean/too_short", "clean/odd"
HOSTILE = (
    "</script><img src=x onerror=document.title='broken'> \U0001f469\u200d\U0001f52c \ud800 \u202e gnirts"
)


def name(number: int) -> str:
    return f"{number:032x}"


def item(number: int, rules: list[str], text: str, **given: Any) -> dict[str, Any]:
    findings = [
        {"stage": rule.split("/")[0], "rule": rule.split("/")[1], "value": 3.0, "threshold": 50.0,
         "verdict": "removed", "detail": "words is below the minimum"}
        for rule in rules if "/" in rule
    ]  # fmt: skip
    usual = {"source": "books", "origin": "a.txt", "language": "en", "kind": "book", "findings": findings,
             "edits": [], "edits_found": 0, "kept_instead": None, "characters": len(text)}  # fmt: skip
    return usual | {"id": name(number), "rules": rules, "text": text} | given


def items() -> list[dict[str, Any]]:
    other = {"id": name(9), "source": "bible", "origin": "b.txt", "text": "the original"}
    edit = {"before": "xxxx@xxxx.xx", "after": "<email-0a1b2c3d>"}
    return [
        item(1, [SHORT, ODD], "first text", kept_instead=other),
        item(2, ["kept"], "second text", edits=[edit], edits_found=1),
        item(3, [SHORT], HOSTILE),
        item(4, ["kept"], "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd"),
        item(5, [ODD], "fifth text " * 500_000),
    ]


def sample() -> Sample:
    rules: dict[str, Any] = {}
    for each in items():
        for rule in each["rules"]:
            drawn = rules.setdefault(rule, {"strata": {"": 100}, "drawn": {}})["drawn"]
            drawn[each["id"]] = ""
    return Sample.model_validate({"params": {}, "rules": rules})


@pytest.fixture
def page(tmp_path: Path, browser: Any) -> Page:
    path = tmp_path / "review.html"
    path.write_text(render_page(sample(), items()), "utf-8")
    browser.get(path.as_uri())
    return Page(browser, tmp_path / "downloads")


class Page:
    """The page as a reviewer uses it."""

    def __init__(self, browser: Any, downloads: Path) -> None:
        self.browser, self.downloads = browser, downloads

    def element(self, identifier: str) -> Any:
        return self.browser.find_element("id", identifier)

    def shown(self, identifier: str) -> str | None:
        """The text of an element that can be seen."""
        found = self.element(identifier)
        return found.text if found.is_displayed() else None

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    def choose(self, value: str) -> None:
        from selenium.webdriver.support.ui import Select

        Select(self.element("filter")).select_by_value(value)

    def export(self) -> Path:
        from selenium.webdriver.support.ui import WebDriverWait

        self.element("export").click()
        path = self.downloads / "verdicts.jsonl"
        WebDriverWait(self.browser, 30).until(lambda _: path.exists(), "nothing was downloaded")
        return path

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_decisions_by_keys_are_exported_as_verdicts_that_give_rates(page):
    page.element("reviewer").send_keys("Ann\u00e9 yn")  # letters that are keys decide nothing here
    page.browser.execute_script("document.activeElement.blur()")
    assert page.shown("count") == "0 of 5 decided, at 1 of 5"
    page.press("y", "n", "u", "y")
    page.element("remove").click()
    assert page.shown("count") == "5 of 5 decided, at 5 of 5"
    verdicts = read_verdicts(page.export())
    assert {(each.rule, each.id): each.verdict for each in verdicts} == {
        (SHORT, name(1)): "wrong", (ODD, name(1)): "wrong", ("kept", name(2)): "wrong",
        (SHORT, name(3)): "unsure", ("kept", name(4)): "right", (ODD, name(5)): "right"}  # fmt: skip
    assert {each.reviewer for each in verdicts} == {"Ann\u00e9 yn"}
    rates = false_removal_rates(sample(), verdicts)
    assert [(rate.rule, rate.reviewed, rate.wrong, rate.unsure) for rate in rates.rules] == [
        (ODD, 2, 1, 0), (SHORT, 1, 1, 1)]  # fmt: skip
    assert rates.unknown == []
    assert page.errors() == []


def test_decisions_outlive_the_page(page):
    page.press("y", "n")
    page.browser.refresh()
    assert page.shown("count") == "2 of 5 decided, at 3 of 5"
    page.press("k")
    assert page.element("remove").get_attribute("aria-pressed") == "true"


def test_exported_verdicts_can_be_imported_again(page):
    page.press("y", "n", "u")
    path = page.export()
    page.browser.execute_script("localStorage.clear()")
    page.browser.refresh()
    assert page.shown("count") == "0 of 5 decided, at 1 of 5"
    foreign = '{"id": "x", "rule": "kept", "verdict": "right"}\nnonsense\n'
    path.write_text(path.read_text("utf-8") + foreign, "utf-8")
    page.element("file").send_keys(str(path))
    wait_for(page, lambda: page.shown("notice"))
    assert page.shown("notice") == "4 verdicts taken, 1 are of other documents, 1 lines are no verdicts."
    assert page.shown("count") == "3 of 5 decided, at 1 of 5"
    assert page.element("keep").get_attribute("aria-pressed") == "true"


def wait_for(page: Page, found: Callable[[], Any]) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page.browser, 30).until(lambda _: found())


def test_what_the_rules_said_is_hidden_until_one_decides_or_asks(page):
    assert page.shown("why") is None
    page.press("y", "k")
    assert "It was removed." in page.shown("why")
    assert "clean/too_short measured 3, threshold 50, words is below the minimum" in page.shown("why")
    page.press("j")
    assert page.shown("why") is None
    assert page.shown("edits") is None
    page.element("blind").click()
    assert "It is kept." in page.shown("why")
    assert "xxxx@xxxx.xx\n<email-0a1b2c3d>" in page.shown("edits")


def test_a_duplicate_stands_beside_the_one_that_was_kept(page):
    assert page.shown("beside-text") == "the original"
    page.press("j")
    assert page.shown("beside-text") is None


def test_documents_are_filtered_by_rule_and_by_what_is_undecided(page):
    page.choose(f"rule:{ODD}")
    assert page.shown("count") == "0 of 5 decided, at 1 of 2"
    page.press("y", "y")
    page.choose("?")
    assert page.shown("count") == "2 of 5 decided, at 1 of 3"
    page.press("u", "u", "u")
    assert page.shown("nothing") == "No document fits this choice."
    page.choose("unsure")
    assert page.shown("count") == "5 of 5 decided, at 1 of 3"


def test_hostile_text_is_text(page):
    page.press("j", "j")
    assert "</script><img src=x onerror=document.title='broken'>" in page.shown("text")
    assert "\U0001f469\u200d\U0001f52c" in page.shown("text")
    assert "U+D800 U+202E gnirts" in page.shown("text")
    assert page.browser.title == "Review of 5 documents"
    assert page.browser.find_elements("tag name", "img") == []
    assert page.errors() == []


def test_a_text_that_runs_from_right_to_left_is_set_so(page):
    page.press("j", "j", "j")
    direction = "return getComputedStyle(document.getElementById('text')).direction"
    assert page.browser.execute_script(direction) == "rtl"


def test_five_megabytes_of_text_are_shown(page):
    page.press("j", "j", "j", "j")
    length = page.browser.execute_script("return document.getElementById('text').textContent.length")
    assert length == len("fifth text ") * 500_000


@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_is_wider_than_the_screen(page, width):
    page.browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    page.element("blind").click()
    edges = """return [document.documentElement.scrollWidth,
        ...[...document.querySelectorAll("button")].map(each => each.getBoundingClientRect().right)]"""
    for _ in range(5):
        assert max(page.browser.execute_script(edges)) <= width
        page.press("j")
