"""The forms in which readers get messages: Server-Sent Events, JSON lines, WebSocket messages.

In the latter two an object without `id` is an event: `{"event": "gap", "from", "to"}` or
`{"event": "error", "problem"}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from ...core.wire.websocket import NORMAL, PING, TEXT, close_frame, frame, frames

if TYPE_CHECKING:
    from .batch import EncodedBatch

Document = Mapping[str, Any]
_json = msgspec.json.Encoder().encode
ERROR: Final = "error"
GAP: Final = "gap"


class Form(Protocol):
    """One form: what it makes is written as it is."""

    keep_alive: bytes
    """Says that the connection is still there, and nothing else."""
    hello: bytes
    """Follows the head at once."""

    def messages(self, batch: EncodedBatch) -> bytes: ...
    def event(self, name: str, document: Document, cursor: str = "") -> bytes:
        """Returns a notice; a reader that goes on at `cursor` gets what follows it."""

    def end(self) -> bytes:
        """Returns the end of a complete answer."""


class EventStream:
    """Encodes messages as Server-Sent Events (HTML, 9.2), in chunks (RFC 9112 7.1)."""

    keep_alive = b"3\r\n:\n\n\r\n"
    hello = keep_alive
    """Firefox gives a page the answer of `fetch` only when something of its body has come."""

    def messages(self, batch: EncodedBatch) -> bytes:
        if not batch.cursors:
            return _chunk(b"".join([b"data: %b\n\n" % text for text in batch.texts]))
        events = zip(batch.cursors, batch.texts, strict=True)
        return _chunk(
            b"".join([b"id: %b\ndata: %b\n\n" % (at.encode(), text) for at, text in events])
        )

    def event(self, name: str, document: Document, cursor: str = "") -> bytes:
        head = f"id: {cursor}\nevent: {name}\n" if cursor else f"event: {name}\n"
        return _chunk(head.encode() + b"data: " + _json(document) + b"\n\n")

    def end(self) -> bytes:
        return _LAST_CHUNK


class JsonLines:
    """Encodes messages as JSON lines, in chunks; an empty line keeps the connection alive."""

    keep_alive = b"1\r\n\n\r\n"
    hello = b""

    def messages(self, batch: EncodedBatch) -> bytes:
        return _chunk(b"\n".join(batch.texts) + b"\n")

    def event(self, name: str, document: Document, cursor: str = "") -> bytes:
        return _chunk(_notice(name, document, cursor) + b"\n")

    def end(self) -> bytes:
        return _LAST_CHUNK


class WebSocketMessages:
    """Encodes each message as a text message of WebSocket (RFC 6455)."""

    keep_alive = frame(PING, b"")
    hello = b""

    def messages(self, batch: EncodedBatch) -> bytes:
        return frames(TEXT, batch.texts)

    def event(self, name: str, document: Document, cursor: str = "") -> bytes:
        return frame(TEXT, _notice(name, document, cursor))

    def end(self) -> bytes:
        return close_frame(NORMAL)


class JsonItems:
    """Encodes messages as the items of a JSON array, for a long poll."""

    keep_alive = hello = b""

    def messages(self, batch: EncodedBatch) -> bytes:
        return b",".join(batch.texts)

    def event(self, name: str, document: Document, cursor: str = "") -> bytes:
        return _notice(name, document, cursor)

    def end(self) -> bytes:
        return b""


EVENT_STREAM: Final = EventStream()
JSON_LINES: Final = JsonLines()
WEBSOCKET: Final = WebSocketMessages()
JSON_ITEMS: Final = JsonItems()
_LAST_CHUNK: Final = b"0\r\n\r\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _notice(name: str, document: Document, cursor: str) -> bytes:
    at = {"cursor": cursor} if cursor else {}
    content = {"problem": document} if name == ERROR else document
    return _json({"event": name, **at, **content})
