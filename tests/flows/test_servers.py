"""What a flow's own Prefect server answers when its database is busy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flows.prefect_server import RetrySoon


def headers(*answers: tuple[str, int]) -> list[list[tuple[bytes, bytes]]]:
    """The headers of an application's answers (method of the request, status), one after the other."""
    sent: list[Any] = []
    statuses = iter(status for _, status in answers)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": next(statuses), "headers": [(b"x", b"y")]})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any: ...

    async def ask() -> None:
        server = RetrySoon(application)
        for method, _ in answers:
            await server({"type": "http", "method": method}, receive, send)

    asyncio.run(ask())
    assert [message["type"] for message in sent[1::2]] == ["http.response.body"] * len(answers)
    return [message["headers"][1:] for message in sent[::2]]


def waits(*answers: tuple[str, int]) -> list[float]:
    return [float(found[0][1]) if found else 0.0 for found in headers(*answers)]


def test_a_busy_database_is_asked_again_soon_and_then_later_and_later() -> None:
    assert waits(*[("POST", 503)] * 6) == [0.1, 0.4, 1.6, 6.4, 25.6, 102.4]


def test_what_was_written_ends_the_row_and_what_was_read_does_not() -> None:
    answers = [("POST", 503), ("GET", 200), ("POST", 503), ("POST", 201), ("POST", 503)]
    assert waits(*answers) == [0.1, 0, 0.4, 0, 0.1]


@pytest.mark.parametrize("status", [200, 409, 423, 500])
def test_other_answers_are_left_alone(status: int) -> None:
    assert headers(("POST", status)) == [[]]
