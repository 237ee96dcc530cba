"""A connection to a server, for one request at a time: writing, reading and deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from .port import SendError, TimedOut
from .response import Response, ResponseLimits, ResponseReader

Answered = Callable[["Response | SendError"], None]

BODY_WITHIN_S: Final = 1.0
"""How long a body that is not wanted may take, so that the connection can be kept."""
WRITE_BYTES: Final = 256 * 1024
"""How much of a body is written at a time: more would be copied and encrypted at once."""


class Unanswered(SendError):
    """The connection ended before the first byte of a response."""


class HttpConnection(asyncio.Protocol):
    """A connection for one request at a time. `closed` is called when the connection has ended.

    `is_reusable` is whether another request may follow the last one. The reader and the timer are
    kept from one request to the next: new ones would cost a tenth of a post.
    """

    def __init__(self, limits: ResponseLimits, closed: Callable[[HttpConnection], None]) -> None:
        self._closed = closed
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._answered: Answered | None = None
        self._reader = ResponseReader(limits)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = self._deadline_s = 0.0
        self._unsent = memoryview(b"")
        self._is_full = False
        self._is_hurried = False
        self.is_reusable = False

    def ask(self, head: bytes, body: bytes, deadline_s: float, answered: Answered) -> None:
        """Sends a request; `answered` is called once, later. `deadline_s` is the loop's time."""
        self._answered = answered
        self._set_deadline(deadline_s)
        self._reader.begin()
        self._is_hurried = self.is_reusable = False
        if len(body) <= WRITE_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._unsent = memoryview(body)
            self._write_on()

    @property
    def is_open(self) -> bool:
        return not self._transport.is_closing()

    def abort(self) -> None:
        self.is_reusable = False
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_reusable = False
        if self._answered is not None:
            is_end_of_body = error is None and self._reader.ends_with_connection
            self._finish("" if is_end_of_body else f"the connection was closed{_text(error)}")
        if self._timer is not None:
            self._timer.cancel()
        self._closed(self)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._write_on()

    def data_received(self, data: bytes) -> None:
        if self._answered is None:
            self.abort()  # no request was sent
            return
        end = self._reader.feed(data)
        if end is not None:
            self._finish(end)
        elif self._reader.is_final and not self._is_hurried:
            self._is_hurried = True
            if not self._reader.awaits_body:
                self._set_deadline(min(self._deadline_s, self._loop.time() + BODY_WITHIN_S))

    def _write_on(self) -> None:
        """Writes as much of the body as the transport takes, and continues when it takes more."""
        if self._unsent and not self._is_full and not self._transport.is_closing():
            chunk, self._unsent = self._unsent[:WRITE_BYTES], self._unsent[WRITE_BYTES:]
            self._transport.write(chunk)
            if self._unsent and not self._is_full:
                self._loop.call_soon(self._write_on)

    def _set_deadline(self, at_s: float) -> None:
        """Sets the deadline. A timer that expires before it is set again, so most requests reuse
        it."""
        self._deadline_s = at_s
        if self._timer is not None:
            if self._timer_at_s <= at_s:
                return
            self._timer.cancel()
        self._timer_at_s = at_s
        self._timer = self._loop.call_at(at_s, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self._answered is None:
            return
        if self._loop.time() < self._deadline_s:
            self._set_deadline(self._deadline_s)
        else:
            self._finish("no answer in time", TimedOut)

    def _finish(self, broken: str, kind: type[SendError] = SendError) -> None:
        """Ends the request, with the response if its status line has come."""
        answered, self._answered = self._answered, None
        assert answered is not None
        is_sent, self._unsent = not self._unsent, memoryview(b"")
        self.is_reusable = not broken and self._reader.should_keep_alive and is_sent
        answer: Response | SendError | None = self._reader.response(broken)
        if answer is None:
            is_begun = self._reader.received_bytes or kind is TimedOut
            answer = kind(broken) if is_begun else Unanswered(broken)
        if not self.is_reusable:
            self._transport.abort()
        answered(answer)


def _text(error: Exception | None) -> str:
    return "" if error is None else f": {type(error).__name__}: {error}"
