"""What a delivery needs of an HTTP client, and no more, so that the client can be chosen by
measurement."""

from __future__ import annotations

from collections.abc import Mapping
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


class Sender(Protocol):
    """Dials vetted addresses only, follows no redirect, keeps no cookie, asks no proxy."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Raises `SendError`; a kept connection found closed is replaced without notice."""

    async def close(self) -> None:
        """Closes kept connections."""
