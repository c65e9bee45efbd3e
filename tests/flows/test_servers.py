"""What a flow's own Prefect server answers when its database is busy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flows.prefect_server import RetrySoon


def answer(status: int) -> list[tuple[bytes, bytes]]:
    """The headers that an application's answer has behind the middleware."""
    sent: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [(b"x", b"y")]})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(RetrySoon(application)({}, None, send))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    return sent[0]["headers"]


def test_a_busy_database_is_asked_again_soon() -> None:
    assert answer(503) == [(b"x", b"y"), (b"retry-after", b"0.1")]


@pytest.mark.parametrize("status", [200, 409, 423, 500])
def test_other_answers_are_left_alone(status: int) -> None:
    assert answer(status) == [(b"x", b"y")]
