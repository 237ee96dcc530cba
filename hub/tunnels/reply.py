"""Reads replies of tunnelled applications: one whole HTTP response each (RFC 9112).

llhttp parses: it refuses bare line ends, folded fields, and a Content-Length beside another one or
beside Transfer-Encoding. Fields that concern one connection, or that would bind the whole domain of
the tunnels, are dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import httptools

from ..connection_fields import connection_fields
from .errors import BadReply

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_FIELDS: Final = 100
_NO_BODY: Final = frozenset((204, 304))
_DROPPED: Final = frozenset(
    (
        # The hub frames the response and dates it.
        b"content-length", b"date",
        # Policies of a site, which the application can't set for the others below the domain.
        b"alt-svc", b"clear-site-data", b"nel", b"public-key-pins", b"service-worker-allowed",
        b"strict-transport-security",
    )
)  # fmt: skip
_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Reply:
    """A response, with the fields that reach the requestor."""

    status: int
    fields: list[tuple[bytes, bytes]]
    body: bytes


def read_reply(message: bytes, *, is_head: bool = False) -> Reply:
    """Returns the response. Raises `BadReply` for anything but one whole final response."""
    if not message:
        raise bad("is empty")
    reader = _ReplyParser()
    parser = httptools.HttpResponseParser(reader)
    head_end = message.find(b"\r\n\r\n") + 4
    if head_end < 4 or head_end > MAX_HEAD_BYTES:
        raise bad("has no end of the header within the limit", f"{MAX_HEAD_BYTES} bytes")
    try:
        parser.feed_data(message[:head_end])
        status = parser.get_status_code()
        if not reader.has_head or not 200 <= status <= 599:
            raise bad(f"has the status {status}, which is not final", "200 to 599")
        if not is_head and head_end < len(message):
            parser.feed_data(message[head_end:])
    except httptools.HttpParserUpgrade as error:
        raise bad("upgrades the protocol, which is not supported") from error
    except httptools.HttpParserError as error:
        raise bad(f"is not valid HTTP/1.1: {error.__context__ or error}") from error
    reader.check_framing(parser.get_http_version())
    if not (is_head or reader.is_whole or not reader.is_framed):
        raise bad("is cut: the body is shorter than its fields say")
    return Reply(status, _passed_on(reader.fields, status, is_head), b"".join(reader.body))


def bad(reason: str, limit: str | None = None) -> BadReply:
    """Returns the error for a reply that can't be passed on."""
    return BadReply(reason, field="reply", limit=limit)


class _ReplyParser:
    """Collects what the parser finds."""

    def __init__(self) -> None:
        self.fields: list[tuple[bytes, bytes]] = []
        self.body: list[bytes] = []
        self.has_head = False
        self.is_whole = False

    @property
    def is_framed(self) -> bool:
        """Whether the fields say where the body ends; else it ends with the message."""
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self.fields)

    def check_framing(self, version: str) -> None:
        """Raises `BadReply` for a version or a transfer coding that the hub can't decode."""
        if version not in ("1.0", "1.1"):
            raise bad(f"has the version HTTP/{version}", "HTTP/1.0 and HTTP/1.1")
        codings = [value for name, value in self.fields if name == b"transfer-encoding"]
        if codings not in ([], [b"chunked"]):
            raise bad("has an unsupported transfer coding", "chunked")

    # Called by the parser

    def on_message_begin(self) -> None:
        if self.is_whole:
            raise ValueError("more than one response, or bytes behind it")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.has_head:
            return  # a trailer
        if len(self.fields) == MAX_FIELDS:
            raise ValueError(f"more than {MAX_FIELDS} fields")
        if _CONTROLS.search(value):
            raise ValueError(f"control characters in the field {name.decode('latin-1')}")
        self.fields.append((name.lower(), value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        self.has_head = True

    def on_body(self, body: bytes) -> None:
        self.body.append(body)

    def on_message_complete(self) -> None:
        self.is_whole = True


def _passed_on(
    fields: list[tuple[bytes, bytes]], status: int, is_head: bool
) -> list[tuple[bytes, bytes]]:
    dropped = _DROPPED | connection_fields(fields)
    kept = [
        (name, _of_host(value) if name == b"set-cookie" else value)
        for name, value in fields
        if name not in dropped
    ]
    if is_head and status not in _NO_BODY:
        kept += [field for field in fields if field[0] == b"content-length"]
    return kept


def _of_host(cookie: bytes) -> bytes:
    """Returns the cookie without `Domain`: one label can't set cookies for another."""
    return b";".join(
        part for part in cookie.split(b";") if part.split(b"=")[0].strip().lower() != b"domain"
    )
