"""Reads HTTP/1.1 responses from bytes, within limits (RFC 9112); it opens no connection.

llhttp parses. Limits are added on what a server may send: bytes, header fields and interim
responses (RFC 9110 15.2). The status line counts whatever follows it: a response that is not whole
has its status, and the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import httptools

HEAD_BYTES: Final = 16 * 1024
"""The limit for heads and chunk sizes of a response, beside its body."""
MAX_FIELDS: Final = 200
MAX_INTERIM: Final = 20
_FRAMING: Final = frozenset((b"content-length", b"transfer-encoding"))


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """The limits of a response.

    With `keeps_body` the whole body of a 2xx is kept, and of other responses what comes at once;
    without it, the first `kept_bytes` of each body.
    """

    max_body_bytes: int
    keeps_body: bool = False
    kept_bytes: int = 0

    @property
    def max_bytes(self) -> int:
        """The limit for a whole response; chunk sizes may take an eighth of the body's."""
        return self.max_body_bytes + self.max_body_bytes // 8 + HEAD_BYTES


@dataclass(slots=True)
class Response:
    """A response that was read. `broken` is the reason why the response is not whole, empty for a
    whole one."""

    status: int
    reason: bytes
    fields: list[tuple[bytes, bytes]]
    body: bytes
    broken: str = ""


class ResponseReader:
    """Reads one response after another; the parser is kept, for a new one is slow to make."""

    def __init__(self, limits: ResponseLimits) -> None:
        self._limits = limits
        self._parser = httptools.HttpResponseParser(self)
        self.begin()

    def begin(self) -> None:
        """Prepares for the response to the next request."""
        self.received_bytes = self._field_count = self._interim_count = self._body_bytes = 0
        self._body: list[bytes] = []
        self.is_final = self._is_complete = self.should_keep_alive = False
        self._begin_message()

    def feed(self, data: bytes) -> str | None:
        """Reads the next bytes. Returns None while the response goes on, "" when it is whole, and
        the reason when it is broken."""
        room = self._limits.max_bytes - self.received_bytes
        self.received_bytes += len(data)
        try:
            self._parser.feed_data(data if len(data) <= room else data[:room])
        except httptools.HttpParserUpgrade:
            return "the response upgrades the protocol, which is not supported"
        except httptools.HttpParserError as error:
            # What follows a whole response can't be told from the next one.
            self.should_keep_alive = False
            return (
                "" if self._is_complete else f"the response is not valid HTTP/1.1: {_reason(error)}"
            )
        return self._end(is_beyond=len(data) > room)

    @property
    def awaits_body(self) -> bool:
        """Whether the rest of the body is wanted."""
        return self._limits.keeps_body and 200 <= self._status < 300

    @property
    def ends_with_connection(self) -> bool:
        """Whether the body ends where the connection does."""
        return self.is_final and not self._is_framed

    def response(self, broken: str) -> Response | None:
        """Returns what was read, None before the end of a status line."""
        if self._status < 200 and not self.is_final:
            return None
        return Response(self._status, self._reason, self._fields, b"".join(self._body), broken)

    def _end(self, *, is_beyond: bool) -> str | None:
        max_body_bytes = self._limits.max_body_bytes
        if is_beyond or self._body_bytes > max_body_bytes:
            return f"the answer is longer than {max_body_bytes} bytes"
        if self._is_complete:
            return ""
        if not self.is_final and self.received_bytes > HEAD_BYTES:
            return f"the head of the answer is longer than {HEAD_BYTES} bytes"
        return None

    def _begin_message(self) -> None:
        self._status = 0
        """0 until something follows the number."""
        self._reason = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._is_framed = False

    # Called by the parser

    def on_status(self, reason: bytes) -> None:
        self._reason += reason
        self._status = self._parser.get_status_code()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._field_count += 1
        if self._field_count > MAX_FIELDS:
            raise ValueError(f"more than {MAX_FIELDS} header fields")
        if not self.is_final:  # else it is a trailer
            self._fields.append((name, value))
            self._is_framed = self._is_framed or name.lower() in _FRAMING

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        self.is_final = self._status >= 200 or self._status == 101

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
            raise ValueError("unexpected data after the response")

    def on_message_complete(self) -> None:
        if self.is_final:
            self._is_complete = True
            self.should_keep_alive = self._parser.should_keep_alive()
            return
        self._interim_count += 1
        if self._interim_count > MAX_INTERIM:
            raise ValueError(f"more than {MAX_INTERIM} interim responses")
        self._begin_message()


def _reason(error: httptools.HttpParserError) -> object:
    """Returns the error that a callback of the parser raised, else the parser's own."""
    return error.__context__ or error
