"""The format of staged rows: `WSR1`, the number of rows, then each row.

A row is the lengths of its routing key (16 bits), property list and body (32 bits each), then these
three. All numbers are little-endian. The property list is that of a content header frame
(AMQP 0-9-1 4.2.6.1).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ...core.message.model import Row
from ..errors import HubError

MEDIA_TYPE = "application/vnd.warren.rows"
MAGIC = b"WSR1"
ROWS_AT_ONCE = 500
"""Rows that are published between two rounds of the event loop: about 2 ms."""
_COUNT = struct.Struct("<I")
_LENGTHS = struct.Struct("<HII")
_HEAD_BYTES = len(MAGIC) + _COUNT.size


class BadRows(HubError):
    """Staged rows can't be read."""

    title = "Bad rows"

    def __init__(self, reason: str) -> None:
        super().__init__(reason, field="rows")


def count_rows(data: bytes) -> int:
    """Returns the number of rows that the head states. Raises `BadRows`."""
    if data[: len(MAGIC)] != MAGIC or len(data) < _HEAD_BYTES:
        raise BadRows(f"staged rows begin with '{MAGIC.decode()}' and a count of 4 bytes")
    return int(_COUNT.unpack_from(data, len(MAGIC))[0])


def read_rows(data: bytes) -> Iterator[list[Row]]:
    """Yields the rows, up to `ROWS_AT_ONCE` at a time. Raises `BadRows`, after sound rows too."""
    count, at = count_rows(data), _HEAD_BYTES
    unpack, lengths_bytes = _LENGTHS.unpack_from, _LENGTHS.size
    for first in range(0, count, ROWS_AT_ONCE):
        rows: list[Row] = []
        for index in range(first, min(count, first + ROWS_AT_ONCE)):
            try:
                key_bytes, properties_bytes, body_bytes = unpack(data, at)
            except struct.error:
                raise BadRows(f"row {index} of {count} begins at byte {at}, the end") from None
            key_at = at + lengths_bytes
            properties_at = key_at + key_bytes
            body_at = properties_at + properties_bytes
            at = body_at + body_bytes
            rows.append((data[key_at:properties_at], data[properties_at:body_at], data[body_at:at]))
        if at > len(data):
            raise BadRows(f"the rows need {at} bytes, there are {len(data)}")
        yield rows
    if at != len(data):
        raise BadRows(f"{len(data) - at} bytes follow the last of {count} rows")
