"""Adds a number to the headers of messages without decoding them.

For headers that are known at delivery only: x-delivery-count, x-stream-offset, x-offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .frames import short_string
from .properties import CONTENT_ENCODING, CONTENT_TYPE, HEADERS, split, without_header

_CACHED_MAX: Final = 512
_LONG: Final = b"l"
_cached: dict[tuple[bytes, bytes], tuple[bytes, bytes]] = {}

Numbers = Mapping[bytes, int]


def splice(raw: bytes, name: bytes) -> tuple[bytes, bytes]:
    """Returns the bytes before and after the eight octets of a new long header `name`, in a
    property list that `read_attributes` has passed. It replaces a header of that name."""
    found = _cached.get((raw, name))
    if found is None:
        found = _splice(raw, name)
        if len(raw) <= 256:
            if len(_cached) >= _CACHED_MAX:
                _cached.clear()
            _cached[raw, name] = found
    return found


def _splice(raw: bytes, name: bytes) -> tuple[bytes, bytes]:
    entry = short_string(name.decode()) + _LONG
    flags = raw[0] << 8 | raw[1]
    if flags & HEADERS and name in split(raw)[HEADERS]:
        raw = without_header(raw, name)
    at = 2
    if flags & CONTENT_TYPE:
        at += 1 + raw[at]
    if flags & CONTENT_ENCODING:
        at += 1 + raw[at]
    if not flags & HEADERS:
        head = (flags | HEADERS).to_bytes(2, "big") + raw[2:at]
        return head + (len(entry) + 8).to_bytes(4, "big") + entry, raw[at:]
    size = int.from_bytes(raw[at : at + 4], "big")
    end = at + 4 + size
    head = raw[:at] + (size + len(entry) + 8).to_bytes(4, "big")
    return head + raw[at + 4 : end] + entry, raw[end:]


def with_number(raw: bytes, name: bytes, number: int) -> bytes:
    """Returns the property list with the header `name` set to `number`."""
    before, after = splice(raw, name)
    return before + number.to_bytes(8, "big") + after
