"""Decides whether a publish that is incomplete at the end of a read waits for the next one."""

from __future__ import annotations

from collections.abc import Container
from struct import Struct
from typing import Final

from ..wire.frames import (
    BASIC,
    BODY,
    END,
    FRAME_OVERHEAD_BYTES,
    HEAD_BYTES,
    HEADER,
    METHOD,
)

_header_payload = Struct(">IQ").unpack_from
"""Class and weight, body size."""
_WHOLE_MAX_BYTES: Final = 65_536
"""A larger message that is not complete in the read is taken frame by frame."""


def is_worth_waiting(
    data: bytes, at: int, size: int, frame_max: int, known_methods: Container[bytes]
) -> bool:
    """Whether the frame heads that are there fit one small message of a known publish method."""
    channel = data[at + 1 : at + 3]
    end = at
    for kind in (METHOD, HEADER, BODY):
        start = end
        if start + HEAD_BYTES > size:
            return True
        payload_bytes = int.from_bytes(data[start + 3 : start + 7], "big")
        end = start + FRAME_OVERHEAD_BYTES + payload_bytes
        if (
            data[start] != kind
            or data[start + 1 : start + 3] != channel
            or payload_bytes > frame_max
            or end - at > _WHOLE_MAX_BYTES
        ):
            return False
        if end > size:
            return True
        # An error in a frame is to be reported now, not when the content is complete.
        if data[end - 1] != END:
            return False
        if kind == METHOD and data[start:end] not in known_methods:
            return False
        if kind == HEADER and not _announces_small(data, start, payload_bytes):
            return False
    return False


def _announces_small(data: bytes, start: int, payload_bytes: int) -> bool:
    """Whether a header frame announces a small message of class basic."""
    if payload_bytes < 14:
        return False
    class_and_weight, length = _header_payload(data, start + HEAD_BYTES)
    return bool(class_and_weight == BASIC << 16 and length <= _WHOLE_MAX_BYTES)
