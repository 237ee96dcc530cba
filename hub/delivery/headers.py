"""Writes properties and headers of a message into the headers of its delivery (docs/rabbithub.md).

Publishers choose names, keys and headers: characters that are not allowed in headers are
percent-encoded, and lengths are limited to what common servers accept.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from ...core.message.model import Message, Table
from ..trace_context import NAMES, trace_context
from .envelope import Envelope

DEFAULT_CONTENT_TYPE = "application/octet-stream"
MAX_MESSAGE_HEADERS = 4_096  # characters: half of what common servers take for all headers
_PRINTABLE = re.compile(r"[ -~]*")
_VERBATIM = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~ "
_HEADER_TEXT = re.compile(r"[^\x00-\x1f\x7f]+")
# RFC 9110 8.4.1: several in their order, in any case. Some AMQP clients write a character set,
# which is no coding.
_CODING = "(x-)?gzip|(x-)?compress|deflate|br|zstd|aes128gcm|exi"
_CODINGS = re.compile(rf"({_CODING})([ \t]*,[ \t]*({_CODING}))*", re.IGNORECASE)
_LEFT_OUT = (
    "x-hub-",
    "x-death",
    "x-first-death-",
    "x-last-death-",
    "cloudEvents:",
    "cloudEvents_",
    *NAMES,
)
"""Prefixes of headers of the hub, of the broker, and of those that become headers by themselves."""
_DELIVERY_COUNT = "x-delivery-count"


def header_value(text: str) -> str:
    """Returns printable ASCII as it is, anything else as percent-encoded UTF-8."""
    if _PRINTABLE.fullmatch(text):
        return text
    return quote(text, safe=_VERBATIM, errors="surrogateescape")


def content_type(message: Message) -> str:
    # A publisher over AMQP can write anything there.
    stored = message.properties.content_type
    return stored if stored and _HEADER_TEXT.fullmatch(stored) else DEFAULT_CONTENT_TYPE


def add_content(headers: dict[str, str], message: Message) -> None:
    headers["Content-Type"] = content_type(message)
    encoding = message.properties.content_encoding
    if encoding and _CODINGS.fullmatch(encoding):
        headers["Content-Encoding"] = encoding


def add_redelivered(headers: dict[str, str], envelope: Envelope, message: Message) -> None:
    if not (message.redelivered or envelope.failures):
        headers["X-AMQP-Redelivered"] = "false"
        return
    headers["X-AMQP-Redelivered"] = "true"
    headers["X-AMQP-Redelivered-Count"] = str(envelope.failures or _delivery_count(message))


def add_properties(headers: dict[str, str], message: Message) -> None:
    """Adds ids, the trace context, and the headers of the message that are strings, as RabbitHub's
    fork does."""
    properties = message.properties
    if properties.message_id:
        headers["message-id"] = header_value(properties.message_id)
    if properties.correlation_id:
        headers["correlation-id"] = header_value(properties.correlation_id)
    if properties.headers:
        headers.update(trace_context(properties.headers))
        text = _message_headers(properties.headers)
        if text:
            headers["x-rabbithub-msg_header"] = text


def _message_headers(table: Table) -> str:
    """Returns `k = v, k2 = v2`, as many as fit."""
    pairs: list[str] = []
    room = MAX_MESSAGE_HEADERS
    for name, value in table.items():
        if not isinstance(value, str) or name.startswith(_LEFT_OUT):
            continue
        pair = f"{header_value(name)} = {header_value(value)}"
        if len(pair) <= room:
            pairs.append(pair)
            room -= len(pair) + len(", ")
    return ", ".join(pairs)


def _delivery_count(message: Message) -> int:
    """Returns the delivery count of a quorum queue, 1 for a redelivery by another."""
    count = (message.properties.headers or {}).get(_DELIVERY_COUNT)
    return count if isinstance(count, int) and count > 0 else 1
