"""Fixtures that every part of the suite shares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Before any library is imported: no telemetry, no network, and few threads, since tests run side by side.
os.environ.update(
    HF_HUB_OFFLINE="1",
    MLFLOW_DISABLE_TELEMETRY="true",
    DO_NOT_TRACK="true",
    DVC_NO_ANALYTICS="true",
    PREFECT_SERVER_ANALYTICS_ENABLED="false",
    TOKENIZERS_PARALLELISM="false",
)

BROWSER_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1400,1400",
)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """Headless Chromium, which downloads to ``downloads``; its last picture lies in the test's folder."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(tmp_path / "downloads")})
    for argument in (*BROWSER_ARGUMENTS, f"--user-data-dir={tmp_path / 'chromium'}"):
        options.add_argument(argument)
    driver = os.environ.get("CHROMEDRIVER", "/usr/bin/chromedriver")
    chromium = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield chromium
        chromium.save_screenshot(str(tmp_path / "last.png"))
    finally:
        chromium.quit()
