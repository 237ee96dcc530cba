"""Reads, edits, decodes and encodes property lists (content properties).

A property list is a flag word and the values whose bits are set, highest bit first (AMQP 0-9-1
4.2.6.1). `read_attributes` reads for the fast path what a queue must know of a message and decodes
nothing else; `decode` and `encode` serve applications.
"""

from __future__ import annotations

from typing import Final

from ..message.model import Properties
from .tables import (
    check,
    decode_checked,
    encode_table,
    entries,
    join_entries,
    syntax_error,
)

DIRECT_REPLY_TO: Final = b"amq.rabbitmq.reply-to"

CONTENT_TYPE: Final = 0x8000
CONTENT_ENCODING: Final = 0x4000
HEADERS: Final = 0x2000
DELIVERY_MODE: Final = 0x1000
PRIORITY: Final = 0x0800
CORRELATION_ID: Final = 0x0400
REPLY_TO: Final = 0x0200
EXPIRATION: Final = 0x0100
MESSAGE_ID: Final = 0x0080
TIMESTAMP: Final = 0x0040
TYPE: Final = 0x0020
USER_ID: Final = 0x0010
APP_ID: Final = 0x0008
CLUSTER_ID: Final = 0x0004
_BEHIND_PRIORITY: Final = 0x07FC
_COPIES: Final = frozenset((b"CC", b"BCC"))
_EXPIRATION_DIGITS: Final = 11
"""Longer expirations may exceed the limit of 315,360,000,000 ms and are checked as numbers."""


TIMED, RANKED = 1, 2
"""Bits of `MessageAttributes.special`: the message has an expiration; it has a priority."""


class MessageAttributes:
    """The properties that the broker uses; interned, compared by identity, never changed.

    `expiration` is the publisher's text; `inspected` is true for the few messages whose properties
    affect routing or need a check (CC, BCC, direct reply-to, user-id, an expiration that is no
    number or a very long one).
    """

    __slots__ = ("expiration", "inspected", "persistent", "priority", "special")

    def __init__(
        self,
        persistent: bool = False,
        priority: int = 0,
        expiration: str | None = None,
        inspected: bool = False,
    ) -> None:
        self.persistent = persistent
        self.priority = priority
        self.expiration = expiration
        self.inspected = inspected
        self.special = TIMED * (expiration is not None) | RANKED * (priority > 0)
        """Why a queue may have to index such messages one by one, paged out or not: `TIMED`,
        `RANKED`, both or neither."""


PLAIN: Final = MessageAttributes()
PERSISTENT: Final = MessageAttributes(persistent=True)
_interned: dict[tuple[bool, int, str | None, bool], MessageAttributes] = {
    (False, 0, None, False): PLAIN,
    (True, 0, None, False): PERSISTENT,
}
_INTERNED_MAX: Final = 4096
"""Bounds the memory that a publisher with a different expiration per message can use."""


def intern_attributes(
    persistent: bool, priority: int, expiration: str | None, inspected: bool
) -> MessageAttributes:
    key = (persistent, priority, expiration, inspected)
    attributes = _interned.get(key)
    if attributes is None:
        attributes = MessageAttributes(*key)
        if len(_interned) < _INTERNED_MAX:
            _interned[key] = attributes
    return attributes


def read_attributes(data: bytes, at: int, end: int) -> MessageAttributes:
    """Reads the attributes of the property list in `data[at:end]`, flag word first.

    Raises:
        ConnectionFault: 502 if the list doesn't fill its frame exactly, a table is malformed or
            a short string is not UTF-8.
    """
    begin = at
    if end - at < 2:
        raise syntax_error(f"property list of {end - at} bytes: 2 at least")
    flags = data[at] << 8 | data[at + 1]
    at += 2
    if not flags:
        if at != end:
            raise syntax_error("property list is longer than its flags say")
        return PLAIN
    if flags & 3:
        raise syntax_error("property flags name a property that class basic does not have")
    persistent = inspected = False
    priority = 0
    expiration: str | None = None
    try:
        if flags & CONTENT_TYPE:
            at += 1 + data[at]
        if flags & CONTENT_ENCODING:
            at += 1 + data[at]
        suspect = not data[begin + 2 : at].isascii()
        if flags & HEADERS:
            start = at
            at = check(data, at, end)
            if data.find(b"CC", start, at) > 0:
                inspected = any(key in _COPIES for key, _ in entries(data[start:at]))
        strings = at
        if flags & DELIVERY_MODE:
            persistent = data[at] == 2
            at += 1
        if flags & PRIORITY:
            priority = data[at]
            at += 1
        if flags & _BEHIND_PRIORITY:
            if flags & CORRELATION_ID:
                at += 1 + data[at]
            if flags & REPLY_TO:
                inspected |= data[at + 1 : at + 1 + data[at]] == DIRECT_REPLY_TO
                at += 1 + data[at]
            if flags & EXPIRATION:
                expiration = data[at + 1 : at + 1 + data[at]].decode("latin-1")
                inspected |= not expiration.isdigit() or len(expiration) > _EXPIRATION_DIGITS
                at += 1 + data[at]
            if flags & MESSAGE_ID:
                at += 1 + data[at]
            if flags & TIMESTAMP:
                at += 8
            if flags & TYPE:
                at += 1 + data[at]
            if flags & USER_ID:
                inspected = True
                at += 1 + data[at]
            if flags & APP_ID:
                at += 1 + data[at]
            if flags & CLUSTER_ID:
                at += 1 + data[at]
    except IndexError:
        at = -1  # cut off at the end of the read; within one, it reads what follows the frame
    if at != end:
        raise syntax_error("property list does not end where its frame ends")
    if suspect or not data[strings:end].isascii():
        _check_strings(split(data[begin:end]))
    return intern_attributes(persistent, priority, expiration, inspected)


def _check_strings(parts: dict[int, bytes]) -> None:
    for bit, value in parts.items():
        if bit != HEADERS and bit not in _FIXED_BYTES:
            try:
                value[1:].decode()
            except UnicodeDecodeError:
                raise syntax_error(f"property value {value[1:]!r} is not UTF-8") from None


def split(raw: bytes) -> dict[int, bytes]:
    """Splits a list that `read_attributes` has passed: flag bit to encoded value."""
    flags = raw[0] << 8 | raw[1]
    at = 2
    parts: dict[int, bytes] = {}
    bit = 0x8000
    while bit > 2:
        if flags & bit:
            if bit == HEADERS:
                size = 4 + int.from_bytes(raw[at : at + 4], "big")
            elif bit in _FIXED_BYTES:
                size = _FIXED_BYTES[bit]
            else:
                size = 1 + raw[at]
            parts[bit] = raw[at : at + size]
            at += size
        bit >>= 1
    return parts


_FIXED_BYTES: Final = {DELIVERY_MODE: 1, PRIORITY: 1, TIMESTAMP: 8}


def join(parts: dict[int, bytes]) -> bytes:
    """Joins parts as `split` returns them."""
    flags = 0
    for bit in parts:
        flags |= bit
    return flags.to_bytes(2, "big") + b"".join(parts[bit] for bit in sorted(parts, reverse=True))


def without_header(raw: bytes, name: bytes) -> bytes:
    """Returns the list without one of its headers; the others stay byte for byte."""
    parts = split(raw)
    pairs = dict(entries(parts[HEADERS]))
    pairs.pop(name, None)
    parts[HEADERS] = join_entries(pairs)
    return join(parts)


def decode(raw: bytes) -> Properties:
    """Decodes a list that `read_attributes` has passed."""
    parts = split(raw)

    def text(bit: int) -> str | None:
        value = parts.get(bit)
        return None if value is None else value[1:].decode()

    def number(bit: int) -> int | None:
        value = parts.get(bit)
        return None if value is None else int.from_bytes(value, "big")

    headers = parts.get(HEADERS)
    return Properties(
        content_type=text(CONTENT_TYPE),
        content_encoding=text(CONTENT_ENCODING),
        headers=None if headers is None else decode_checked(headers),
        delivery_mode=number(DELIVERY_MODE),
        priority=number(PRIORITY),
        correlation_id=text(CORRELATION_ID),
        reply_to=text(REPLY_TO),
        expiration=text(EXPIRATION),
        message_id=text(MESSAGE_ID),
        timestamp=number(TIMESTAMP),
        type=text(TYPE),
        user_id=text(USER_ID),
        app_id=text(APP_ID),
        cluster_id=text(CLUSTER_ID),
    )


def encode(properties: Properties) -> bytes:
    """Encodes a list. Raises `ValueError` for a text over 255 bytes or a number too large."""
    parts: dict[int, bytes] = {}
    for bit, value in (
        (CONTENT_TYPE, properties.content_type),
        (CONTENT_ENCODING, properties.content_encoding),
        (CORRELATION_ID, properties.correlation_id),
        (REPLY_TO, properties.reply_to),
        (EXPIRATION, properties.expiration),
        (MESSAGE_ID, properties.message_id),
        (TYPE, properties.type),
        (USER_ID, properties.user_id),
        (APP_ID, properties.app_id),
        (CLUSTER_ID, properties.cluster_id),
    ):
        if value is not None:
            raw = value.encode()
            if len(raw) > 255:
                raise ValueError(f"property of {len(raw)} bytes, {value[:20]!r}...: limit 255")
            parts[bit] = bytes((len(raw),)) + raw
    for bit, number in (
        (DELIVERY_MODE, properties.delivery_mode),
        (PRIORITY, properties.priority),
        (TIMESTAMP, properties.timestamp),
    ):
        if number is not None:
            parts[bit] = _octets(number, _FIXED_BYTES[bit])
    if properties.headers is not None:
        parts[HEADERS] = encode_table(properties.headers)
    return join(parts)


def _octets(number: int, size: int) -> bytes:
    try:
        return number.to_bytes(size, "big")
    except OverflowError:
        raise ValueError(f"property value {number}: limit 0 to {256**size - 1}") from None
