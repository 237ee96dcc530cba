"""Fast handling of basic.ack: consecutive single acks are settled together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import ChannelError
from ..wire.frames import ACK, ACK_FRAME_BYTES, END, FRAME_OVERHEAD_BYTES, METHOD
from ..wire.method_ids import BASIC_ACK
from .content import expect_no_content
from .settle_methods import ack

if TYPE_CHECKING:
    from .channel import Channel
    from .connection import Connection

_RUN_MAX: Final = 1_000
"""Acks settled together: 10 us each if each message is its own batch."""
_SIZE_AND_METHOD: Final = (ACK_FRAME_BYTES - FRAME_OVERHEAD_BYTES).to_bytes(4, "big") + ACK


def is_ack(data: bytes, at: int, size: int) -> bool:
    """Whether a whole and valid frame at `at` is an ack on a channel."""
    return (
        data[at + 3 : at + 11] == _SIZE_AND_METHOD
        and data[at] == METHOD
        and at + ACK_FRAME_BYTES <= size
        and data[at + 20] == END
        and data[at + 1 : at + 3] != b"\0\0"
    )


def receive_acks(connection: Connection, data: bytes, at: int, size: int) -> int:
    """Handles the ack at `at` with the following ones whose tags are consecutive; returns their
    end."""
    number = data[at + 1] << 8 | data[at + 2]
    head = data[at : at + 11]
    first = last = int.from_bytes(data[at + 11 : at + 19], "big")
    multiple = bool(data[at + 19] & 1)
    at += ACK_FRAME_BYTES
    if not multiple:
        while (
            last - first < _RUN_MAX
            and at + ACK_FRAME_BYTES <= size
            and data.startswith(head, at)
            and int.from_bytes(data[at + 11 : at + 19], "big") == last + 1
            and data[at + 19] == 0
            and data[at + 20] == END
        ):
            last += 1
            at += ACK_FRAME_BYTES
    connection.current_method = BASIC_ACK
    channel = connection.channels.usable(number)
    if channel is None:
        return at
    expect_no_content(channel)
    try:
        if first == last or multiple:
            ack(channel, last, last, multiple)
        else:
            _acknowledge_each(channel, first, last)
    except ChannelError as error:
        connection.channels.fail(number, error, BASIC_ACK)
    return at


def _acknowledge_each(channel: Channel, first: int, last: int) -> None:
    """Settles consecutive single acks: at once if all tags are known, else one by one up to the
    unknown tag."""
    try:
        ack(channel, first, last, False)
    except ChannelError:
        for tag in range(first, last + 1):
            ack(channel, tag, tag, False)
