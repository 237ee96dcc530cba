"""Framing deliveries, against an encoder that frames message by message with pamqp."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pamqp import commands

from tests.core.messages import Sent, scattered, strided, whole
from warrenmq.core.message.batch import Batch
from warrenmq.core.message.queue_entry import MessageRange, QueueEntry
from warrenmq.core.wire.deliver import DeliverFramer, content_frames

FRAME_MAX = 131_072
BOUNDARIES = (255, 65_535, 2**24, 2**32, 2**40)
NAMES = st.text("abc.-_", max_size=12)
KEYS = st.text("abc.#*\u00fc", max_size=20)
CHANNELS = st.sampled_from([1, 2, 256, 65_535])
TAGS = st.one_of(
    st.integers(1, 300), st.sampled_from([b - n for b in BOUNDARIES for n in (0, 1, 11, 12, 30)])
)
SIZES = st.sampled_from([0, 1, 2, 16, 94, 95, 96, 97, 200])
PROPERTIES = st.builds(
    commands.Basic.Properties,
    content_type=st.sampled_from([None, "text/plain"]),
    delivery_mode=st.sampled_from([None, 2]),
    headers=st.sampled_from([None, {"k": "v"}]),
    message_id=st.sampled_from([None, "m" * 30]),
)
SMALL_FRAMES = st.sampled_from([FRAME_MAX, 4096, 250, 104, 60])


def naive(sent: list[Sent], framer: tuple[int, str, int], first_tag: int, again: bool) -> bytes:
    channel, consumer_tag, frame_max = framer
    return b"".join(
        message.delivered(channel, consumer_tag, tag, again, frame_max)
        for tag, message in enumerate(sent, first_tag)
    )


@st.composite
def alike(draw: st.DrawFn) -> list[Sent]:
    """Messages that differ in their bodies' octets only."""
    exchange, key = draw(NAMES), draw(KEYS)
    properties, size = draw(PROPERTIES), draw(SIZES)
    count = draw(st.integers(1, 40))
    octets = draw(st.binary(min_size=size + count, max_size=size + count))
    return [Sent(octets[at : at + size], exchange, key, properties) for at in range(count)]


MIXED = st.lists(
    st.builds(Sent, st.binary(max_size=130), NAMES, KEYS, PROPERTIES), min_size=1, max_size=12
)


@st.composite
def intervals(draw: st.DrawFn, count: int) -> tuple[int, int]:
    low = draw(st.integers(0, count - 1))
    return low, draw(st.integers(low + 1, count))


@settings(max_examples=120)
@given(
    st.tuples(st.just(strided), alike()) | st.tuples(st.just(scattered), MIXED),
    CHANNELS, CHANNELS, SMALL_FRAMES, TAGS, st.booleans(), st.binary(max_size=9), st.data(),
)  # fmt: skip
def test_parts_of_batches(
    made: tuple[Callable[..., Batch], list[Sent]],
    channel: int,
    published_on: int,
    frame_max: int,
    first_tag: int,
    again: bool,
    before: bytes,
    data: st.DataObject,
) -> None:
    """All of its messages, or a queue's selection of them, and of these a part."""
    make, sent = made
    batch = make(sent, channel=published_on, before=before)
    places = st.sets(st.sampled_from(range(len(sent))), min_size=1).map(sorted)
    selection = data.draw(st.none() | places)
    entry = QueueEntry(batch, None if selection is None else array("H", selection))
    taken = sent if selection is None else [sent[index] for index in selection]
    low, high = data.draw(intervals(len(taken)))
    framer = (channel, "ctag", frame_max)
    expected = naive(taken[low:high], framer, first_tag, again)
    messages = MessageRange(entry, low, high, again)
    assert DeliverFramer(*framer).frames(messages, first_tag) == expected


@given(
    st.builds(Sent, st.binary(max_size=600), NAMES, KEYS, PROPERTIES),
    CHANNELS, SMALL_FRAMES, TAGS, st.booleans(), st.text("ab\u00fc", max_size=100),
)  # fmt: skip
def test_whole(
    message: Sent, channel: int, frame_max: int, tag: int, again: bool, consumer_tag: str
) -> None:
    messages = MessageRange(QueueEntry(whole(message), None), 0, 1, again)
    framer = (channel, consumer_tag, frame_max)
    assert DeliverFramer(*framer).frames(messages, tag) == naive([message], framer, tag, again)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("size", [0, 1, 16, 95, 96, 97, 300])
@pytest.mark.parametrize("count", [11, 12, 40])
def test_tags_across_octets(boundary: int, size: int, count: int) -> None:
    sent = [Sent(bytes((number,)) * size) for number in range(count)]
    framer = (7, "ctag", FRAME_MAX)
    for first_tag in (boundary - count, boundary + 1 - count, boundary - 5, boundary, boundary + 1):
        messages = MessageRange(QueueEntry(strided(sent), None), 0, count)
        expected = naive(sent, framer, first_tag, False)
        assert DeliverFramer(*framer).frames(messages, first_tag) == expected


@pytest.mark.parametrize("size", [0, 1, 4088, 4089, 8176, 8177, 20_000])
@pytest.mark.parametrize("channel", [1, 9])
def test_contents_are_cut_for_a_small_frame_max(size: int, channel: int) -> None:
    message = Sent(bytes(range(256)) * 79, properties=commands.Basic.Properties(priority=1))
    message = Sent(message.body[:size], properties=message.properties)
    for batch in (strided([message, message]), scattered([message, message]), whole(message)):
        expected = message.content(channel, 4096)
        assert content_frames(batch, batch.count - 1, channel, 4096) == expected
        framer = (channel, "ctag", 4096)
        delivered = naive([message] * batch.count, framer, 1, True)
        messages = MessageRange(QueueEntry(batch, None), 0, batch.count, True)
        assert DeliverFramer(*framer).frames(messages, 1) == delivered
