"""Messages with a number added to their headers, as consumers read them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pamqp.commands import Basic

from tests.core.messages import Sent, scattered, strided, whole
from tests.support.amqp import Reply, read, split
from warrenmq.core.message.batch import Batch
from warrenmq.core.message.queue_entry import MessageRange, QueueEntry
from warrenmq.core.queue.header_rewriting import with_header
from warrenmq.core.wire.deliver import DeliverFramer
from warrenmq.core.wire.properties import PERSISTENT

HEADER = b"x-delivery-count"
Numbers = Sequence[int | None]


def properties(**fields: Any) -> Basic.Properties:
    return Basic.Properties(**fields)


MIXED = [
    Sent(b"one", "x", "a.b"),
    Sent(b"", "x", "a.b"),
    Sent(b"three", "", "q", properties(headers={"own": "h"}, delivery_mode=2)),
    Sent(b"one", "x", "a.b", properties(headers={HEADER.decode(): "forged"}, app_id="a")),
    Sent(b"f" * 300, "x" * 127, "k" * 255, properties(content_type="text/plain", message_id="5")),
]
ALIKE = [Sent(b"%04d" % number, "x", "k", properties(app_id="a")) for number in range(20)]
EMPTY = [Sent(b"", "x", "k")] * 15


def delivered(messages: MessageRange, channel: int = 1, frame_max: int = 131_072) -> list[Reply]:
    data = bytes(DeliverFramer(channel, "c", frame_max).frames(messages, 1))
    assert all(len(frame) <= frame_max for _, _, frame in split(data))
    return read(data)


def expected(messages: Sequence[Sent], numbers: Numbers) -> list[tuple[object, ...]]:
    """What clients are to read."""
    found: list[tuple[object, ...]] = []
    for sent, number in zip(messages, numbers, strict=True):
        fields: dict[str, Any] = dict(sent.properties)
        if number is not None:
            headers = {**(fields["headers"] or {}), HEADER.decode(): number}
            fields["headers"] = headers
        found.append((sent.exchange, sent.routing_key, fields, sent.body))
    return found


def seen(replies: Sequence[Reply]) -> list[tuple[object, ...]]:
    return [
        (reply["exchange"], reply["routing_key"], dict(reply.properties or {}), reply.body)
        for reply in replies
    ]


@pytest.mark.parametrize("channel", [1, 7])
@pytest.mark.parametrize("frame_max", [4_096, 131_072])
@pytest.mark.parametrize(
    ("make", "messages"), [(scattered, MIXED), (strided, ALIKE), (strided, EMPTY)]
)
def test_clients_read_the_same_messages_with_the_number(
    make: Callable[..., Batch], messages: list[Sent], frame_max: int, channel: int
) -> None:
    batch = make(messages, channel=3, attributes=PERSISTENT, sequence=40, before=b"\0" * 9)
    numbers = [None if at % 3 == 2 else at * 1_000 for at in range(len(messages))]
    shown = with_header(MessageRange(QueueEntry(batch, None), 0, len(messages)), HEADER, numbers)
    replies = delivered(shown, channel, frame_max)
    assert seen(replies) == expected(messages, numbers)
    assert [reply["delivery_tag"] for reply in replies] == list(range(1, len(messages) + 1))
    assert not any(reply["redelivered"] for reply in replies)


@pytest.mark.parametrize("selection", [None, array("I", [1, 2, 5, 9, 14])])
@pytest.mark.parametrize("size", [0, 1, 5, 95, 96, 97, 300])
@pytest.mark.parametrize("make", [scattered, strided])
def test_consecutive_messages_get_consecutive_numbers(
    make: Callable[..., Batch], size: int, selection: array[int] | None
) -> None:
    messages = [Sent(bytes((at,)) * size, "x", "k", properties(app_id="a")) for at in range(15)]
    entry = QueueEntry(make(messages, before=b"\0" * 5), selection)
    for low, high in ((0, entry.count), (1, 4), (2, 3)):
        numbers = range(2**33 + low, 2**33 + high)
        wanted = [messages[entry.index(at)] for at in range(low, high)]
        replies = delivered(with_header(MessageRange(entry, low, high, True), HEADER, numbers), 4)
        assert seen(replies) == expected(wanted, numbers)
        assert all(reply["redelivered"] for reply in replies)


def test_large_message_is_cut_into_the_frames_of_its_reader() -> None:
    sent = Sent(bytes(range(256)) * 1_000, "x", "k", properties(headers={"a": 1}))
    shown = with_header(MessageRange(QueueEntry(whole(sent), None), 0, 1), HEADER, [3])
    assert seen(delivered(shown, 2, 4_096)) == expected([sent], [3])
