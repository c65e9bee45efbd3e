"""The Prefect UI in a real browser: `make test-ui` (Debian: chromium, chromium-driver)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flows.servers import free_port

pytestmark = pytest.mark.ui


@pytest.fixture
def address(journey) -> Iterator[str]:
    """The address of Prefect's UI, served by `gristmill ui` on the toy project."""
    port = free_port()
    servers = {"prefect_port": port, "mlflow_port": free_port()}
    (journey.folder / "resources.yaml").write_text(json.dumps({"servers": servers}))
    ui = subprocess.Popen([sys.executable, "-m", "flows.cli", "ui"], stdout=subprocess.PIPE, text=True)
    try:
        assert ui.stdout is not None
        assert "Ctrl-C stops both\n" in iter(ui.stdout.readline, "")
        yield f"http://127.0.0.1:{port}"
    finally:
        ui.send_signal(signal.SIGTERM)
        ui.wait(timeout=120)


def test_a_person_starts_a_run_with_a_changed_parameter_and_looks_at_it(journey, address, browser):
    from selenium.common.exceptions import ElementClickInterceptedException, StaleElementReferenceException
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    def wait(found: Callable[[Any], Any], what: str) -> Any:
        # The page draws itself anew while it is looked at: what went stale is looked for again.
        stale = [StaleElementReferenceException, ElementClickInterceptedException]
        return WebDriverWait(browser, 300, ignored_exceptions=stale).until(found, f"no {what}")

    def shown(selector: str, text: str = "") -> Any:
        """The first visible element with this text."""

        def find(driver: Any) -> Any:
            elements = driver.find_elements(By.CSS_SELECTOR, selector)
            return next((item for item in elements if item.is_displayed() and text in item.text), None)

        return wait(find, f"{selector} with {text!r}")

    def click(selector: str, text: str) -> None:
        wait(lambda driver: shown(selector, text).click() is None, f"{selector} with {text!r} to click")

    browser.get(f"{address}/deployments/deployment/{deployment_id(address)}/run")
    click("button", "Add item")
    shown("textarea").send_keys("mix.amount=9")
    name = shown("input[type=text]").get_attribute("value")
    click("button", "Submit")
    click("a", name)
    shown(".p-heading, h1, [class*=heading]", name)
    shown("[class*=state-badge]", "Completed")
    page = shown("body").text
    assert "mix done in" in page
    assert "mix       ran" in page
    assert f"recorded on branch runs/{name}" in page
    assert "mix 9" in (journey.folder / "work" / "runs" / name / "made" / "encode").read_text()
    assert not (journey.folder / "made").exists()


def deployment_id(address: str) -> str:
    """The id of the deployment of the flow `corpus`."""
    ask = urllib.request.Request(
        f"{address}/api/deployments/filter", b"{}", {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(ask, timeout=60) as answer:
        found = {item["entrypoint"]: item["id"] for item in json.load(answer)}
    return found["flows.corpus.corpus"]
