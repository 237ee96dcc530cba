from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands

from warrenmq.core.message.batch import Batch, MessageRange, QueueEntry, envelope, split_envelope
from warrenmq.core.wire.properties import PLAIN

from ..messages import Sent, scattered, strided, whole

NAMES = st.text("abc.-_", max_size=20)
KEYS = st.text("abc.#*\u00fc", max_size=40)
PROPERTIES = st.builds(
    commands.Basic.Properties,
    content_type=st.sampled_from([None, "text/plain"]),
    headers=st.sampled_from([None, {}, {"k": "v"}]),
    priority=st.sampled_from([None, 7]),
)
SENT = st.builds(Sent, st.binary(max_size=50), NAMES, KEYS, PROPERTIES)


def assert_holds(batch: Batch, index: int, message: Sent) -> None:
    assert split_envelope(batch.envelope(index)) == (message.exchange, message.routing_key)
    assert batch.properties(index) == message.raw_properties
    assert batch.body(index) == message.body
    assert batch.body_bytes(index) == len(message.body)


@given(SENT, st.integers(1, 5), st.integers(1, 65_535), st.binary(max_size=9))
def test_strided(message: Sent, count: int, channel: int, before: bytes) -> None:
    size = len(message.body)
    bodies = [bytes((number,)) * size for number in range(count)]
    sent = [
        Sent(body, message.exchange, message.routing_key, message.properties) for body in bodies
    ]
    batch = strided(sent, channel=channel, before=before)
    assert (batch.count, batch.resident) == (count, True)
    assert batch.size_bytes == len(batch.data) - len(before)
    for index, one in enumerate(sent):
        assert_holds(batch, index, one)


@given(st.lists(SENT, min_size=1, max_size=5), st.integers(1, 65_535), st.binary(max_size=9))
def test_scattered(sent: list[Sent], channel: int, before: bytes) -> None:
    batch = scattered(sent, channel=channel, before=before)
    assert batch.count == len(sent)
    assert batch.size_bytes == len(batch.data) - len(before)
    for index, one in enumerate(sent):
        assert_holds(batch, index, one)


@given(SENT)
def test_whole(message: Sent) -> None:
    batch = whole(message)
    assert batch.count == 1
    assert batch.size_bytes >= len(message.body) + len(message.raw_properties)
    assert_holds(batch, 0, message)


@given(SENT, SENT)
def test_sizes_can_be_asked_when_the_data_is_gone(first: Sent, second: Sent) -> None:
    for batch in (strided([first, first]), scattered([first, second]), whole(first)):
        sizes = [batch.body_bytes(index) for index in range(batch.count)]
        size_bytes = batch.size_bytes
        batch.data = b""
        assert [batch.body_bytes(index) for index in range(batch.count)] == sizes
        assert batch.size_bytes == size_bytes


# -- runs and ranges


def test_an_entry_of_all_messages() -> None:
    entry = QueueEntry(strided([Sent(b"a")] * 5, sequence=100), None)
    assert (entry.count, entry.deadline_ms) == (5, None)
    assert [entry.index(at) for at in range(5)] == [0, 1, 2, 3, 4]
    assert [entry.sequence(at) for at in range(5)] == [100, 101, 102, 103, 104]


def test_an_entry_of_some_messages() -> None:
    entry = QueueEntry(strided([Sent(b"a")] * 5, sequence=100), array("H", [1, 4]))
    assert entry.count == 2
    assert [entry.index(at) for at in range(2)] == [1, 4]
    assert [entry.sequence(at) for at in range(2)] == [101, 104]


def test_a_range() -> None:
    entry = QueueEntry(strided([Sent(b"a")] * 5, sequence=100), array("H", [0, 2, 3]))
    messages = MessageRange(entry, 1, 3)
    assert (messages.count, messages.sequence, messages.redelivered) == (2, 102, False)
    assert MessageRange(entry, 0, 1, True).redelivered


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=6), st.data())
def test_the_bodies_of_a_range(bodies: list[bytes], data: st.DataObject) -> None:
    batch = scattered([Sent(body) for body in bodies])
    chosen = sorted(data.draw(st.sets(st.sampled_from(range(len(bodies))), min_size=1)))
    entry = QueueEntry(batch, array("H", chosen))
    low = data.draw(st.integers(0, len(chosen)))
    high = data.draw(st.integers(low, len(chosen)))
    assert MessageRange(entry, low, high).body_bytes() == sum(
        len(bodies[at]) for at in chosen[low:high]
    )


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_the_bodies_of_a_range_of_alike_messages(size: int) -> None:
    entry = QueueEntry(strided([Sent(bytes(size))] * 6), None)
    assert MessageRange(entry, 2, 6).body_bytes() == 4 * size
    assert (
        MessageRange(
            QueueEntry(strided([Sent(bytes(size))] * 6), array("H", [0, 5])), 0, 2
        ).body_bytes()
        == 2 * size
    )
    assert MessageRange(QueueEntry(whole(Sent(bytes(size))), None), 0, 1).body_bytes() == size


# -- envelopes


@given(NAMES, KEYS)
def test_envelopes(exchange: str, routing_key: str) -> None:
    raw = envelope(exchange, routing_key)
    assert split_envelope(raw) == (exchange, routing_key)
    method = commands.Basic.Publish(exchange=exchange, routing_key=routing_key).marshal()
    assert raw == method[2:-1]


@pytest.mark.parametrize(("exchange", "key"), [("x" * 256, ""), ("", "\u00fc" * 128)])
def test_an_envelope_holds_255_bytes_of_each(exchange: str, key: str) -> None:
    with pytest.raises(ValueError, match="255 bytes"):
        envelope(exchange, key)
    assert len(envelope("x" * 255, "\u00fc" * 127)) == 1 + 255 + 1 + 254


def test_attributes_and_time_are_the_batches() -> None:
    batch = whole(Sent(b"a"), sequence=7, arrived_ms=500)
    assert (batch.sequence, batch.attributes, batch.arrived_ms) == (7, PLAIN, 500)
