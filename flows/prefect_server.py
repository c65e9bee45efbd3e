"""The Prefect server that a flow has for itself, as an application for uvicorn.

Prefect on SQLite answers 503 where two of its writers meet, and its client then waits two seconds: at the
start of nearly every task, while the end of the one before is still being written. Here it is told to ask
again soon.
"""

from __future__ import annotations

from typing import Any

RETRY_AFTER_SECONDS = b"0.1"


def create_app() -> Any:
    """Prefect's own application behind `RetrySoon`."""
    from prefect.server.api.server import create_app

    app = create_app()
    app.add_middleware(RetrySoon)
    return app


class RetrySoon:
    """ASGI middleware: a 503 carries the seconds after which the client may ask again."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request."""

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start" and message["status"] == 503:
                message = {**message, "headers": [*message["headers"], (b"retry-after", RETRY_AFTER_SECONDS)]}
            await send(message)

        await self._app(scope, receive, sent)
