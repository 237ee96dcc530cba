"""Messages between the hub's values and those of the client library.

RabbitMQ gives messages no number. So the hub gives one to each that it publishes, in a header; a
message of an AMQP client is known by its message_id and content, and one without message_id by its
content alone (`returned.py`).
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final, NamedTuple, cast

from aiormq.abc import DeliveredMessage

from ....core.errors import ProtocolError
from ....core.message.model import FieldValue, Message, Properties, Table
from ....core.wire import properties as wire
from .returned import new_number
from .transport import RAW

NUMBER: Final = "x-hub-number"
KEY: Final = "x-hub-key"
"""The wanted key of a message that is published to a queue: RabbitMQ routes it by another one."""
PUBLISHED: Final = "x-hub-time"
"""When the hub has published the message, in milliseconds since 1970."""
OFFSET: Final = "x-stream-offset"
"""Written by streams, as the next one is by RabbitMQ if it is set up to."""
ARRIVED: Final = "timestamp_in_ms"
DELIVERY_COUNT: Final = "x-delivery-count"
"""Written by quorum queues; the hub counts failures itself."""
_HASHED_BYTES: Final = 64 * 1024
_LEAST_MS: Final = 10**11
"""As milliseconds this is in 1973, as seconds in the year 5138."""

log = logging.getLogger(__name__)


class EncodedProperties(NamedTuple):
    """A property list as RabbitMQ gets it, and the message-id in it."""

    raw: bytes
    message_id: str


def encoded(
    properties: Properties, key: str | None = None, *, is_repeatable: bool = False
) -> EncodedProperties:
    """Returns the properties of a message to be published, with a number of its own, and with the
    key that it should have in its queue. One that is repeatable is the same each time: it is known
    by its message_id and content, like those of AMQP clients.

    Raises `ValueError` for texts that are too long.
    """
    headers: Table = dict(properties.headers or {})
    message_id = properties.message_id
    if not (is_repeatable and message_id):
        headers[PUBLISHED] = time.time_ns() // 1_000_000
        headers[NUMBER] = number = f"{new_number():016x}"
        message_id = message_id or number  # the library finds a returned message by its id
    if key is not None:
        headers[KEY] = key
    raw = wire.encode(replace(properties, headers=headers or None, message_id=message_id))
    return EncodedProperties(raw, message_id)


class StreamMessage(NamedTuple):
    """A message of a stream. `arrived_s` is in seconds since 1970, 0 if nothing tells it."""

    offset: int
    arrived_s: int
    sequence: int | None
    message: Message


def received(delivered: DeliveredMessage) -> tuple[Message, int | None]:
    """Returns a message of a queue, and the number that it has whenever it is received; None if
    nothing but its content tells it from others."""
    message, number, _ = _without_hub_headers(delivered)
    return message, number


def received_of_stream(delivered: DeliveredMessage, expected: int) -> StreamMessage:
    """Returns a message of a stream, without the header that has its offset; it is the expected one
    if the property list can't be read."""
    message, number, published_ms = _without_hub_headers(delivered)
    headers = message.properties.headers or {}
    offset = headers.pop(OFFSET, None)
    arrived_ms = published_ms or headers.get(ARRIVED)
    message.properties.headers = headers or None
    if not isinstance(arrived_ms, int):
        arrived_ms = _milliseconds(message.properties.timestamp or 0)
    return StreamMessage(
        int(offset) if isinstance(offset, int) else expected, arrived_ms // 1000, number, message
    )


def _milliseconds(timestamp: int) -> int:
    """Returns the time of a message; many publishers give milliseconds where AMQP has seconds."""
    if timestamp < _LEAST_MS:
        return timestamp * 1000
    return timestamp if timestamp < _LEAST_MS * 1000 else 0


def _without_hub_headers(delivered: DeliveredMessage) -> tuple[Message, int | None, FieldValue]:
    """Returns a message as it was published, its number, and when the hub has published it."""
    properties = _decoded(bytes(cast(Any, delivered.header.properties.headers)[RAW]))
    headers = properties.headers or {}
    number = headers.pop(NUMBER, None)
    key = headers.pop(KEY, None)
    published_ms = headers.pop(PUBLISHED, None)
    headers.pop(DELIVERY_COUNT, None)
    exchange, routing_key = delivered.exchange or "", delivered.routing_key or ""
    identity = number or properties.message_id
    sequence = sequence_of(identity, exchange, routing_key, delivered.body) if identity else None
    properties.headers = headers or None
    if properties.message_id == number:
        properties.message_id = None
    if isinstance(key, str) and not exchange:
        routing_key = key
    redelivered = bool(delivered.redelivered)
    message = Message(exchange, routing_key, properties, delivered.body, redelivered)
    return message, sequence, published_ms


def _decoded(raw: bytes) -> Properties:
    """Returns a property list; none of it if it is malformed, which RabbitMQ accepts."""
    try:
        wire.read_attributes(raw, 0, len(raw))
        return wire.decode(raw)
    except ProtocolError as error:
        log.info("a message is taken without its properties: %s", error)
        return Properties()


def sequence_of(identity: object, exchange: str, routing_key: str, body: bytes) -> int:
    """Returns the number of a message. The content is hashed too: who copies the number of another
    message can't take its place."""
    parts = f"{identity}\n{len(exchange)}\n{exchange}{routing_key}\n{len(body)}\n"
    digest = blake2b(parts.encode(errors="surrogatepass"), digest_size=8)
    digest.update(body[:_HASHED_BYTES])
    return int.from_bytes(digest.digest()) >> 1
