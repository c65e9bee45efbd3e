"""The Prefect server that a flow has for itself, as an application for uvicorn.

Prefect on SQLite answers 503 where two of its writers meet, and its client then waits two seconds: at the
start of nearly every task, while the end of the one before is still being written. Here it is told to ask
again soon, and later if that does not help.
"""

from __future__ import annotations

from typing import Any


def create_app() -> Any:
    """Prefect's own application behind `RetrySoon`."""
    from prefect.server.api.server import create_app

    app = create_app()
    app.add_middleware(RetrySoon)
    return app


class RetrySoon:
    """ASGI middleware: a 503 says after how many seconds to ask again: 0.1, and four times as many each time.

    The client's five further attempts so wait 34 s in all, about half of what they wait by themselves.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._refused = 0  # in a row

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request."""

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == 503:
                    wait = b"%.1f" % (0.1 * 4 ** min(self._refused, 5))
                    message = {**message, "headers": [*message["headers"], (b"retry-after", wait)]}
                    self._refused += 1
                elif scope["method"] != "GET":  # reading works while the database is locked
                    self._refused = 0
            await send(message)

        await self._app(scope, receive, sent)
