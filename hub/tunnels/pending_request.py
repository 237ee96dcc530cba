"""A request to a tunnelled application that has no reply yet."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Final, Protocol

from .errors import TunnelError
from .reply import Reply

ID_BYTES: Final = 18
"""144 bits, in 24 characters of base64."""

Answered = Callable[["Reply | TunnelError"], None]
"""Called once, with the reply or the reason why there is none."""


def new_id() -> str:
    """Returns an id of a request: whoever has it may reply."""
    return secrets.token_urlsafe(ID_BYTES)


class TunnelRequest:
    """A request to a tunnelled application. `message` is the whole request as HTTP/1.1; `client` is
    the requestor, as `ADDRESS:PORT`."""

    __slots__ = ("answered", "client", "id", "is_head", "message", "poll", "timer")

    def __init__(self, message: bytes, client: str, answered: Answered, *, is_head: bool) -> None:
        self.message = message
        self.client = client
        self.answered: Answered | None = answered
        """None when the requestor has its answer, or is gone."""
        self.is_head = is_head
        """A response to HEAD has no body, whatever its fields say."""
        self.id = ""
        self.poll: Poll | None = None
        """The poll that took it."""
        self.timer: asyncio.TimerHandle | None = None

    def answer(self, outcome: Reply | TunnelError) -> None:
        """Passes the outcome to the requestor, if it still waits."""
        answered, self.answered = self.answered, None
        if answered is not None:
            answered(outcome)

    def set_timer(self, delay_s: float, expire: Callable[[TunnelRequest], None]) -> None:
        """Starts the timer, instead of an earlier one."""
        self.stop_timer()
        self.timer = asyncio.get_running_loop().call_later(delay_s, expire, self)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Poll(Protocol):
    """An application that waits for requests, for one or for one after the other.

    The next request gets `id`, by which the reply names it.
    """

    id: str

    def take(self, request: TunnelRequest) -> None:
        """Takes a request; the poll no longer waits."""

    def end(self, error: TunnelError | None) -> None:
        """Ends the wait: for an error, or because the hub stops."""

    def over(self, request: TunnelRequest) -> None:
        """Notes that a request that it took needs no reply any more."""
