"""When, where, and what on failure."""

import os

# Before Prefect is imported: no telemetry, and patience.
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("DO_NOT_TRACK", "true")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
# The first start of Prefect's embedded server creates its database; on a busy machine 20 s are not enough.
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")
