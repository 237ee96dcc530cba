"""One connection to a server, for one request at a time (HTTP/1.1, RFC 9112).

llhttp parses. Added here are bounds on what a server may send: bytes, header fields, interim
responses (RFC 9110 15.2), and time. Whatever the server does behind its status line, the status
is told: it decides, and an answer that is not whole only says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import httptools

from .port import SendError, TimedOut

Answered = Callable[["Response | SendError"], None]

HEAD_BYTES = 16 * 1024
"""Of an answer: for its heads and chunk sizes, beside the body."""
MAX_FIELDS = 200
MAX_INTERIM = 20
BODY_WITHIN_S = 1.0
"""How long a body that nobody waits for may follow its head, so that the connection can be kept."""
WRITE_BYTES = 256 * 1024
"""Of a body, handed to the transport at a time: more would be copied, and encrypted at once."""
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))


@dataclass(frozen=True, slots=True)
class Limits:
    """With `keeps_body` the body of a 2xx is waited for; of other answers, what comes at once.
    Without, the first `kept_bytes` of a body are kept."""

    max_body_bytes: int
    keeps_body: bool = False
    kept_bytes: int = 0

    @property
    def max_bytes(self) -> int:
        """Chunk sizes may take an eighth of what the body does."""
        return self.max_body_bytes + self.max_body_bytes // 8 + HEAD_BYTES


@dataclass(slots=True)
class Response:
    """`broken` says why it is not whole, and is empty for one that is."""

    status: int
    reason: bytes
    fields: list[tuple[bytes, bytes]]
    body: bytes
    broken: str = ""


class Unanswered(SendError):
    """The connection ended before one byte of an answer."""


class Connection(asyncio.Protocol):
    """`closed` is called when it has ended. `is_reusable` tells whether another request may
    follow the last one.

    Parser and timer stay from one request to the next: to make them anew cost a tenth of a post.
    """

    def __init__(self, limits: Limits, closed: Callable[[Connection], None]) -> None:
        self._limits = limits
        self._closed = closed
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._answered: Answered | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = self._deadline_s = 0.0
        self._unsent = memoryview(b"")
        self._is_full = False
        self._reason = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._is_framed = False
        self.is_reusable = False

    def ask(self, head: bytes, body: bytes, deadline_s: float, answered: Answered) -> None:
        """Sends a request and calls `answered` once, later; `deadline_s` is time of the loop."""
        self._answered = answered
        self._set_deadline(deadline_s)
        self._received = self._field_count = self._interim_count = 0
        self._begin_message()
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._is_final = self._is_complete = self._is_hurried = False
        self._should_keep_alive = self.is_reusable = False
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

    # The transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_reusable = False
        if self._answered is not None:
            is_end_of_body = error is None and self._is_final and not self._is_framed
            self._finish("" if is_end_of_body else f"the connection was closed{_why(error)}")
        if self._timer is not None:
            self._timer.cancel()
        self._closed(self)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._write_on()

    def _write_on(self) -> None:
        """Writes as much as the transport takes, and goes on when it takes more."""
        if self._unsent and not self._is_full and not self._transport.is_closing():
            chunk, self._unsent = self._unsent[:WRITE_BYTES], self._unsent[WRITE_BYTES:]
            self._transport.write(chunk)
            if self._unsent and not self._is_full:
                self._loop.call_soon(self._write_on)

    def data_received(self, data: bytes) -> None:
        if self._answered is None:
            self.abort()  # nobody has asked for anything
            return
        room = self._limits.max_bytes - self._received
        self._received += len(data)
        try:
            self._parser.feed_data(data if len(data) <= room else data[:room])
        except httptools.HttpParserUpgrade:
            self._finish("the answer changes the protocol")
        except httptools.HttpParserError as error:
            self._should_keep_alive = (
                False  # what follows a whole answer can't be told from the next one
            )
            self._finish("" if self._is_complete else f"the answer breaks HTTP/1.1: {_of(error)}")
        else:
            self._look(is_beyond=len(data) > room)

    def _look(self, *, is_beyond: bool) -> None:
        limits = self._limits
        if is_beyond or self._body_bytes > limits.max_body_bytes:
            self._finish(f"the answer is longer than {limits.max_body_bytes} bytes")
        elif self._is_complete:
            self._finish("")
        elif not self._is_final and self._received > HEAD_BYTES:
            self._finish(f"the head of the answer is longer than {HEAD_BYTES} bytes")
        elif self._is_final and not self._is_hurried:
            self._is_hurried = True
            if not (limits.keeps_body and 200 <= self._status < 300):
                self._set_deadline(min(self._deadline_s, self._loop.time() + BODY_WITHIN_S))

    # The parser

    def on_status(self, reason: bytes) -> None:
        self._reason += reason
        self._status = self._parser.get_status_code()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._field_count += 1
        if self._field_count > MAX_FIELDS:
            raise ValueError(f"more than {MAX_FIELDS} header fields")
        if not self._is_final:  # else it is a trailer
            self._fields.append((name, value))
            self._is_framed = self._is_framed or name.lower() in _FRAMING

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        self._is_final = self._status >= 200 or self._status == 101

    def on_body(self, chunk: bytes) -> None:
        limits = self._limits
        room = limits.kept_bytes - self._body_bytes
        self._body_bytes += len(chunk)
        if limits.keeps_body:
            if self._body_bytes <= limits.max_body_bytes:
                self._body.append(chunk)
        elif room > 0:
            self._body.append(chunk[:room])

    def on_message_begin(self) -> None:
        if self._is_complete:
            raise ValueError("more than one answer")

    def on_message_complete(self) -> None:
        if self._is_final:
            self._is_complete = True
            self._should_keep_alive = self._parser.should_keep_alive()
            return
        self._interim_count += 1
        if self._interim_count > MAX_INTERIM:
            raise ValueError(f"more than {MAX_INTERIM} interim responses")
        self._begin_message()

    def _begin_message(self) -> None:
        self._status = 0
        """Known once the number is followed by something."""
        self._reason = b""
        self._fields = []
        self._is_framed = False

    # The end

    def _set_deadline(self, at_s: float) -> None:
        """A timer that goes off too early looks again, so most requests leave it as it is."""
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
        """Ends the request: with the answer where its status line has come."""
        answered, self._answered = self._answered, None
        assert answered is not None
        is_sent, self._unsent = not self._unsent, memoryview(b"")
        self.is_reusable = not broken and self._should_keep_alive and is_sent
        answer: Response | SendError
        if self._status >= 200 or self._is_final:
            body = b"".join(self._body)
            answer = Response(self._status, self._reason, self._fields, body, broken)
        elif self._received or kind is TimedOut:
            answer = kind(broken)
        else:
            answer = Unanswered(broken)
        if not self.is_reusable:
            self._transport.abort()
        answered(answer)


def _why(error: Exception | None) -> str:
    return "" if error is None else f": {type(error).__name__}: {error}"


def _of(error: httptools.HttpParserError) -> object:
    """The reason, where one of the methods above has refused."""
    return error.__context__ or error
