"""When, where, and what on failure."""

import os

import tasks  # noqa: F401 - sets what holds for every process

# Before Prefect is imported: no telemetry, and patience.
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
# The first start of Prefect's embedded server creates its database; on a busy machine 20 s are not enough.
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")
