"""Fixtures that every part of the suite shares."""

from __future__ import annotations

import os

# Before any library is imported: no telemetry, no network, and few threads, since tests run side by side.
os.environ.update(
    HF_HUB_OFFLINE="1",
    MLFLOW_DISABLE_TELEMETRY="true",
    DO_NOT_TRACK="true",
    PREFECT_SERVER_ANALYTICS_ENABLED="false",
    TOKENIZERS_PARALLELISM="false",
)
