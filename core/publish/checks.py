"""Checks the properties of one message: expiration, user-id, CC, BCC and direct reply-to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import precondition_failed
from ..message.equivalence import type_name
from ..message.model import MessageHeaders, Table
from ..vhost import REPLY_TO
from ..wire import properties as wire
from ..wire.properties import MessageAttributes
from ..wire.tables import decode_table, entries, join_entries

if TYPE_CHECKING:
    from ..auth import User
    from .publisher import Publisher

EXPIRATION_MAX_MS: Final = 315_360_000_000
"""Ten years."""
_HEADER_FRAME_BYTES: Final = 20
"""Of a content header frame beside the property list."""


def inspect(
    publisher: Publisher, attributes: MessageAttributes, properties: bytes
) -> tuple[bytes, MessageHeaders]:
    """Checks the properties; returns the list to store, and the headers as published.

    Raises `ChannelError` 406.
    """
    parts = wire.split(properties)
    check_expiration(attributes.expiration)
    if wire.USER_ID in parts and publisher.author is not None:
        check_user_id(parts[wire.USER_ID][1:].decode(), publisher.author)
    headers: Table = {}
    table = parts.get(wire.HEADERS)
    if table is not None:
        headers = decode_table(table, 0, len(table))[0]
        if "BCC" in headers:
            pairs = dict(entries(table))
            del pairs[b"BCC"]
            parts[wire.HEADERS] = join_entries(pairs)
    if parts.get(wire.REPLY_TO, b"")[1:] == REPLY_TO.encode():
        if publisher.reply_name is None:
            raise precondition_failed("fast reply consumer does not exist")
        name = publisher.reply_name.encode()
        parts[wire.REPLY_TO] = bytes((len(name),)) + name
    return wire.join(parts), MessageHeaders(headers, properties)


def check_expiration(text: str | None) -> None:
    """Raises `ChannelError` 406 unless it is a number of milliseconds that may be used."""
    if text is None:
        return
    if not (text.isascii() and text.isdigit()) or int(text) > EXPIRATION_MAX_MS:
        raise precondition_failed(
            f"invalid expiration '{text}': milliseconds from 0 to {EXPIRATION_MAX_MS} are needed"
        )


def check_user_id(user_id: str, user: User) -> None:
    """Raises `ChannelError` 406 unless the user may publish messages with this user-id."""
    if user_id != user.name and "impersonator" not in user.tags:
        raise precondition_failed(
            f"user_id property set to '{user_id}' but authenticated user was '{user.name}'"
        )


def check_size(size: int, limit: int) -> None:
    """Raises `ChannelError` 406 for a body above the limit."""
    if size > limit:
        raise precondition_failed(f"message size {size} is larger than configured max size {limit}")


def check_header(size: int, frame_max: int) -> None:
    """Raises `ChannelError` 406 for a property list that no connection could deliver. Those that
    came in a frame fit one."""
    limit = frame_max - _HEADER_FRAME_BYTES
    if size > limit:
        raise precondition_failed(
            f"a property list of {size} bytes; at most {limit} fit a content header frame"
        )


def extra_keys(headers: Table, name: str) -> list[str]:
    """Returns the strings in a CC or BCC header; RabbitMQ ignores other values too.

    Raises `ChannelError` 406 unless the header is an array.
    """
    if name not in headers:
        return []
    value = headers[name]
    if not isinstance(value, list):
        raise precondition_failed(f"invalid {name} header: {type_name(value)}, an array is needed")
    return [key for key in value if isinstance(key, str)]
