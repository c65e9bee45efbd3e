"""What Prefect logs of a failure that has been explained already: one line, no traceback."""

from __future__ import annotations

import logging

from flows.project import BadInput
from flows.stage import StageFailed


def explain_failures_briefly() -> None:
    """Shorten what Prefect's loggers say of `StageFailed` and `BadInput`, on the terminal and in its UI."""
    for name in ("prefect.task_runs", "prefect.flow_runs"):
        logger = logging.getLogger(name)
        if not any(isinstance(known, _Brief) for known in logger.filters):
            logger.addFilter(_Brief())


def hide_links() -> None:
    """Do not name the page of a flow run on a server that ends with the run."""
    logging.getLogger("prefect.flow_runs").addFilter(_names_no_page)


def _names_no_page(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("View at http")


class _Brief(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, StageFailed | BadInput):
            # A failed task is told here; of a failed flow, its task or its caller has told.
            if record.name == "prefect.flow_runs":
                return False
            record.exc_info = None
            record.msg, record.args = "%s", (str(error),)
        elif str(record.msg).startswith("Finished in state "):
            record.msg = str(record.msg).split("(")[0]  # without the message that came just before
        return True
