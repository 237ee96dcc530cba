"""Encodes messages as JSON, each once for all of its readers.

`{"id", "cursor", "redelivered", "exchange", "routing_key", "headers", "content_type", ..., "body"}`
with the other properties of the message; a body that is not UTF-8 is `body_base64`. Properties that
a message lacks are left out, and so is the cursor of a queue, which can't be read again.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from ...core.message.model import Message, Properties
from ..engine.port import Numbered
from .batch import EncodedBatch


def _other(value: Any) -> int | str:
    """Encodes values that JSON has no form for: integers of other widths are numbers too."""
    return int(value) if isinstance(value, int) else str(value)


_json = msgspec.json.Encoder(enc_hook=_other).encode


_PROPERTIES: Final = (
    "headers", "content_type", "content_encoding", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "timestamp", "type", "user_id", "app_id",
)  # fmt: skip
_REDELIVERED: Final = b'"redelivered":true,'


class MessageEncoder:
    """Encodes messages; what consecutive ones have in common is encoded once.

    `message_id` makes the id of a message from its sequence number.
    """

    def __init__(self, message_id: Callable[[int], str]) -> None:
        self.message_id = message_id
        self._exchange = self._routing_key = ""
        self._properties: Properties | None = None
        self._common = b""

    def encode(self, messages: Sequence[Numbered], cursors: Sequence[str]) -> EncodedBatch:
        """Returns messages with their cursors; with none for a queue."""
        message_id, shared = self.message_id, self._shared
        given = [b'","cursor":"' + at.encode() for at in cursors] or [b""] * len(messages)
        texts = [
            b'{"id":"%b%b",%b%b%b}'
            % (
                message_id(sequence).encode(),
                cursor,
                _REDELIVERED if message.redelivered else b"",
                shared(message),
                _body(message.body),
            )
            for (sequence, message), cursor in zip(messages, given, strict=True)
        ]
        return EncodedBatch(texts, cursors)

    def _shared(self, message: Message) -> bytes:
        if (
            message.properties is not self._properties
            or message.routing_key != self._routing_key
            or message.exchange != self._exchange
        ):
            self._properties = message.properties
            self._exchange, self._routing_key = message.exchange, message.routing_key
            self._common = _json(_common(message))[1:-1] + b","
        return self._common


def _common(message: Message) -> dict[str, Any]:
    found = {"exchange": message.exchange, "routing_key": message.routing_key}
    given = [(name, getattr(message.properties, name)) for name in _PROPERTIES]
    return found | {name: value for name, value in given if value is not None}


def _body(body: bytes) -> bytes:
    try:
        return b'"body":' + _json(body.decode())
    except UnicodeDecodeError:
        return b'"body_base64":"' + b64encode(body) + b'"'
