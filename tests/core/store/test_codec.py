"""Encoding and decoding of batches and their shares."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.messages import Sent, scattered, strided
from tests.core.wire.support import fields
from warrenmq.core.message.batch import Batch, SingleMessage
from warrenmq.core.message.envelope import envelope
from warrenmq.core.message.queue_entry import QueueEntry
from warrenmq.core.store.codec import decode_messages, read_offsets, read_shares
from warrenmq.core.store.encoder import encode_messages
from warrenmq.core.store.message_format import numbers, octets
from warrenmq.core.wire.properties import intern_attributes

from .fake_queue import FakeQueue

WALL_MS = 1_700_000_000_123
attributes = st.builds(
    intern_attributes,
    st.just(True),
    st.integers(0, 255),
    st.none() | st.just("60000"),
    st.just(False),
)
names = st.sampled_from(["", "x", "logs.all", "n" * 120])


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    sequence, kind = draw(st.integers(0, 2**63)), draw(attributes)
    exchange, key = draw(names), draw(names)
    body = draw(st.binary(max_size=20))
    if draw(st.booleans()):
        return SingleMessage(
            envelope(exchange, key), b"\x10\x00\x02", body, sequence, kind, 0,
            tuple(draw(st.lists(names, max_size=3))),
        )  # fmt: skip
    count = draw(st.integers(1, 6))
    before = draw(st.binary(max_size=9))
    if draw(st.booleans()):
        alike = [Sent(bytes((at,)) * len(body), exchange, key) for at in range(count)]
        return strided(alike, sequence=sequence, attributes=kind, before=before)
    sent = [Sent(body[at:], exchange, key) for at in range(count)]
    return scattered(sent, sequence=sequence, attributes=kind, before=before)


def encoded(batch: Batch, entries: list[tuple[FakeQueue, QueueEntry]], **flags: Any) -> memoryview:
    return memoryview(b"".join(encode_messages(batch, entries, WALL_MS, **flags)))


@given(batches(), st.booleans())
def test_batch_round_trip(batch: Batch, redelivered: bool) -> None:
    body = encoded(batch, [], redelivered=redelivered)
    messages = decode_messages(body, batch.sequence, 1_000 - WALL_MS)
    read = messages.batch
    assert (read.sequence, read.count) == (batch.sequence, batch.count)
    assert fields(read.attributes) == fields(batch.attributes)
    assert read.arrived_ms == 1_000
    assert messages.record.arrived_wall_ms == WALL_MS
    assert messages.redelivered is redelivered
    assert read.bcc_keys == batch.bcc_keys
    for at in range(batch.count):
        assert read.envelope(at) == batch.envelope(at)
        assert read.properties(at) == batch.properties(at)
        assert read.body(at) == batch.body(at)
        assert read.body_bytes(at) == batch.body_bytes(at)


@given(batches())
def test_evicted_batch_is_restored_from_its_record(batch: Batch) -> None:
    bodies = [batch.body(at) for at in range(batch.count)]
    read = decode_messages(encoded(batch, []), batch.sequence, 0).batch
    batch.evict()
    batch.restore(read)
    assert [batch.body(at) for at in range(batch.count)] == bodies


@st.composite
def shared(draw: st.DrawFn) -> tuple[Batch, list[tuple[FakeQueue, QueueEntry]]]:
    batch = draw(batches())
    indices = st.sets(st.integers(0, batch.count - 1), min_size=1).map(sorted)
    entries: list[tuple[FakeQueue, QueueEntry]] = []
    for queue_id in draw(st.lists(st.integers(1, 2**62), unique=True, max_size=5)):
        queue = FakeQueue(queue_id)
        queue.has_consumers = draw(st.booleans())
        alike = draw(st.booleans())
        chosen = entries[-1][1].selection if entries and alike else draw(st.none() | indices)
        entries.append((queue, QueueEntry(batch, chosen)))
    return batch, entries


@given(shared())
def test_every_queue_finds_its_share(
    held: tuple[Batch, list[tuple[FakeQueue, QueueEntry]]],
) -> None:
    batch, entries = held
    body = encoded(batch, entries)
    messages = decode_messages(body, batch.sequence, 0)
    for queue, entry in entries:
        selection = None if entry.selection is None else array("I", entry.selection)
        assert messages.of(queue.id) == (selection, queue.has_consumers)
    assert messages.of(0) is None
    count, special, _ = read_shares(body)
    assert (count, special) == (batch.count, batch.attributes.special)


@given(shared(), st.lists(st.tuples(st.integers(1, 2**62), st.integers(0, 2**62)), max_size=3))
def test_numbers_of_queues_that_number_their_messages(
    held: tuple[Batch, list[tuple[FakeQueue, QueueEntry]]], offsets: list[tuple[int, int]]
) -> None:
    batch, entries = held
    body = memoryview(b"".join(encode_messages(batch, entries, WALL_MS, offsets=offsets)))
    assert list(read_offsets(body)) == offsets
    messages = decode_messages(body, batch.sequence, 0)
    assert [messages.batch.body(at) for at in range(batch.count)] == [
        batch.body(at) for at in range(batch.count)
    ]
    assert messages.batch.bcc_keys == batch.bcc_keys
    assert [messages.of(queue.id) is not None for queue, _ in entries] == [True] * len(entries)


def test_queues_with_one_selection_share_it() -> None:
    batch = strided([Sent(b"a"), Sent(b"b")])
    chosen = array("I", [1])
    entries = [(FakeQueue(number), QueueEntry(batch, chosen)) for number in (1, 2, 3)]
    assert len(decode_messages(encoded(batch, entries), 1, 0).shares) == 1


def test_bytes_around_a_batch_are_not_written() -> None:
    batch = strided([Sent(b"mine")], before=b"theirs" * 100)
    assert len(encoded(batch, [])) < 300


@given(st.lists(st.integers(0, 2**32 - 1)))
def test_numbers_are_little_endian(values: list[int]) -> None:
    raw = octets(array("I", values))
    assert raw == b"".join(value.to_bytes(4, "little") for value in values)
    assert numbers("I", raw) == array("I", values)


@pytest.mark.parametrize("value", [0, 1, 2**64 - 1])
def test_large_numbers(value: int) -> None:
    assert numbers("Q", octets(array("Q", [value]))) == array("Q", [value])


def test_a_message_may_have_many_and_long_blind_keys() -> None:
    keys = tuple(str(number) * 90 for number in range(300))
    batch = SingleMessage(
        envelope("x", "k"), b"\0\0", b"", 1, intern_attributes(True, 0, None, False), 0, keys
    )
    assert decode_messages(encoded(batch, []), 1, 0).batch.bcc_keys == keys


def test_more_than_65536_queues_may_have_shares_of_their_own() -> None:
    batch = strided([Sent(b"a"), Sent(b"b")])
    entries = [(FakeQueue(number), QueueEntry(batch, [number % 2])) for number in range(66_000)]
    assert len(decode_messages(encoded(batch, entries), 1, 0).shares) == len(entries)
