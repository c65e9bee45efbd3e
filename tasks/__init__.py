"""What each stage does. Here: what holds for every process, set before any library is loaded."""

import os

# Threads of a parallel region that wait must sleep, not spin: with one other busy process on the machine,
# spinning made a training step ten times slower (docs/decisions.md).
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Nothing reaches the network, and no library reports home, unless the user's environment says so.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("DO_NOT_TRACK", "true")
