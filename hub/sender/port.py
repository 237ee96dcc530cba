"""What a delivery needs of an HTTP client, and no more, so that the client can be chosen by
measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ...core.errors import WarrenError


@dataclass(frozen=True, slots=True)
class Answer:
    """A callback's answer. Its status line decides, whatever the body is (WebSub 7).

    `head` is the status line and the headers, cut to `RESPONSE_CHARACTERS` of the log of attempts,
    and `body` the first bytes behind them.
    """

    status: int
    retry_after: str | None = None
    head: str = ""
    body: bytes = b""


class SendError(WarrenError):
    """No answer came: the target was refused, unreachable, too slow or broke off."""


class TimedOut(SendError):
    """The target took the message, or not even the connection, and said nothing in time."""


Answered = Callable[["Answer | Exception"], None]
"""Gets the answer, a `SendError`, or an error that nobody has foreseen."""


class Sender(Protocol):
    """Dials vetted addresses only, follows no redirect, keeps no cookie, asks no proxy."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes, answered: Answered) -> None:
        """Calls `answered` once, and never before this returns; a kept connection found closed is
        replaced without notice."""

    async def close(self) -> None:
        """Closes all connections; what is under way ends with `SendError`."""
