"""What consumers see of messages that a queue adds a number to, framed as any others are."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import pamqp.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp.commands import Basic

from tests.core.messages import Sent, scattered, strided, whole
from tests.support.amqp import Reply, read, split
from warrenmq.core.message.batch import Batch, MessageRange, QueueEntry
from warrenmq.core.queue.header_rewriting import with_header
from warrenmq.core.wire.deliver import DeliverFramer, content_frames
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
def test_clients_read_the_same_and_the_number(
    make: Callable[..., Batch], messages: list[Sent], frame_max: int, channel: int
) -> None:
    """Also those with other channel numbers than the publisher's."""
    batch = make(messages, channel=3, attributes=PERSISTENT, sequence=40, before=b"\0" * 9)
    numbers = [None if at % 3 == 2 else at * 1_000 for at in range(len(messages))]
    shown = with_header(MessageRange(QueueEntry(batch, None), 0, len(messages)), HEADER, numbers)
    replies = delivered(shown, channel, frame_max)
    assert seen(replies) == expected(messages, numbers)
    assert [reply["delivery_tag"] for reply in replies] == list(range(1, len(messages) + 1))
    assert not any(reply["redelivered"] for reply in replies)


LONG = [Sent(b"%04d" % number * 40, "x", "k") for number in range(20)]


@pytest.mark.parametrize("messages", [ALIKE, EMPTY, LONG])
@pytest.mark.parametrize("channel", [1, 7])
@pytest.mark.parametrize("chosen", [None, array("I", [1, 4, 5, 9, 12, 14])])
def test_alike_messages_numbered_in_a_row(
    messages: list[Sent], chosen: array[int] | None, channel: int
) -> None:
    batch = strided(messages, channel=3, attributes=PERSISTENT, sequence=40, before=b"\0" * 9)
    part = MessageRange(QueueEntry(batch, chosen), 2, 6 if chosen else len(messages), True)
    numbers = range(2**40 - 3, 2**40 - 3 + part.count)
    replies = delivered(with_header(part, HEADER, numbers), channel)
    indices = [part.entry.index(at) for at in range(part.low, part.high)]
    assert seen(replies) == expected([messages[at] for at in indices], numbers)
    assert all(reply["redelivered"] for reply in replies)


@pytest.mark.parametrize("selection", [None, array("I", [1, 2, 5, 9, 14])])
@pytest.mark.parametrize("size", [0, 1, 5, 95, 96, 97, 300])
@pytest.mark.parametrize("make", [scattered, strided])
def test_numbers_in_a_row(
    make: Callable[..., Batch], size: int, selection: array[int] | None
) -> None:
    """As streams count theirs; alike messages are copied together."""
    messages = [Sent(bytes((at,)) * size, "x", "k", properties(app_id="a")) for at in range(15)]
    entry = QueueEntry(make(messages, before=b"\0" * 5), selection)
    for low, high in ((0, entry.count), (1, 4), (2, 3)):
        numbers = range(2**33 + low, 2**33 + high)
        wanted = [messages[entry.index(at)] for at in range(low, high)]
        replies = delivered(with_header(MessageRange(entry, low, high), HEADER, numbers), 4)
        assert seen(replies) == expected(wanted, numbers)


@given(
    st.lists(st.sampled_from(MIXED), min_size=1, max_size=8),
    st.lists(st.none() | st.integers(0, 2**63 - 1), min_size=8, max_size=8),
    st.data(),
)
def test_any_messages_of_a_queue(
    messages: list[Sent], numbers: list[int | None], data: st.DataObject
) -> None:
    """A part of its share of a batch."""
    chosen = sorted(data.draw(st.sets(st.sampled_from(range(len(messages))), min_size=1)))
    low = data.draw(st.integers(0, len(chosen) - 1))
    high = data.draw(st.integers(low + 1, len(chosen)))
    part = MessageRange(QueueEntry(scattered(messages), array("I", chosen)), low, high, True)
    shown = with_header(part, HEADER, numbers[: high - low])
    replies = delivered(shown)
    wanted = [messages[at] for at in chosen[low:high]]
    assert seen(replies) == expected(wanted, numbers[: high - low])
    assert all(reply["redelivered"] for reply in replies)


def test_one_that_came_in_many_frames_is_cut_for_its_reader() -> None:
    sent = Sent(bytes(range(256)) * 1_000, "x", "k", properties(headers={"a": 1}))
    shown = with_header(MessageRange(QueueEntry(whole(sent), None), 0, 1), HEADER, [3])
    assert seen(delivered(shown, 2, 4_096)) == expected([sent], [3])


def test_as_get_frames_it() -> None:
    """By content alone, as a get-ok stands before it."""
    shown = with_header(MessageRange(QueueEntry(scattered(MIXED), None), 2, 3), HEADER, [9])
    data = content_frames(shown.entry.batch, shown.entry.index(shown.low), 5, 131_072)
    (_, channel, head), (_, _, body) = split(data)
    content: Any = pamqp.frame.unmarshal(head)[2]
    assert (channel, body[7:-1]) == (5, b"three")
    assert content.properties.headers == {"own": "h", HEADER.decode(): 9}
    assert content.properties.delivery_mode == 2


def test_the_queue_keeps_what_it_has() -> None:
    batch = strided(ALIKE)
    messages = MessageRange(QueueEntry(batch, None), 3, 5)
    before = batch.data
    shown = with_header(messages, HEADER, [1, 2])
    assert (messages.entry.batch, messages.low, messages.high, batch.data) == (batch, 3, 5, before)
    assert (shown.count, shown.entry.batch.count) == (2, 2)
