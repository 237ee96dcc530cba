"""The port for deliveries: what they need of an HTTP client, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ...core.errors import WarrenError

if TYPE_CHECKING:
    from .response import Response


@dataclass(frozen=True, slots=True)
class Answer:
    """A callback's answer. Its status alone decides, whatever the body is (WebSub 7).

    `head` is the status line and the header fields, up to `RESPONSE_CHARACTERS`; `body` is the
    beginning of the body.
    """

    status: int
    retry_after: str | None = None
    head: str = ""
    body: bytes = b""


class SendError(WarrenError):
    """No answer came: the target was refused, unreachable or too slow, or broke off."""


class TimedOut(SendError):
    """The target did not accept the connection, or did not answer, in time."""


Answered = Callable[["Answer | Exception"], None]
"""Gets the answer, a `SendError`, or an unexpected error."""


class LocalClient(Protocol):
    """Sends requests to targets in this process, for which nothing is dialled."""

    def has(self, host: str) -> bool:
        """Returns whether requests to this host never leave the process."""

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, within_s: float
    ) -> Response:
        """Returns the response. Raises `SendError`, and `TimedOut` if none came in time."""


class Sender(Protocol):
    """Posts deliveries. Dials vetted addresses only, follows no redirect, keeps no cookie."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes, answered: Answered) -> None:
        """Posts the body; `answered` is called once, after this returns.

        A kept connection that turns out to be closed is replaced, and is no failure.
        """

    async def close(self) -> None:
        """Closes all connections; pending posts end with `SendError`."""
