from __future__ import annotations

from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands

from warrenmq.core.message.batch import BATCH_BYTES, Batch, MemoryUsage
from warrenmq.core.message.envelope import envelope, split_envelope
from warrenmq.core.message.queue_entry import MessageRange, QueueEntry

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


@given(st.lists(SENT, min_size=1, max_size=5), st.integers(1, 65_535), st.binary(max_size=9))
def test_batches_hold_their_messages(sent: list[Sent], channel: int, before: bytes) -> None:
    alike = [replace(sent[0], body=bytes((at,)) * len(sent[0].body)) for at in range(len(sent))]
    for messages, make in ((alike, strided), (sent, scattered)):
        batch = make(messages, channel=channel, before=before)
        assert (batch.count, batch.resident) == (len(messages), True)
        assert batch.size_bytes == len(batch.data) - len(before)
        for index, one in enumerate(messages):
            assert_holds(batch, index, one)
    single = whole(sent[0])
    assert single.count == 1
    assert single.size_bytes >= len(sent[0].body) + len(sent[0].raw_properties)
    assert_holds(single, 0, sent[0])


@given(SENT, SENT)
def test_sizes_are_known_without_the_data(first: Sent, second: Sent) -> None:
    for batch in (strided([first, first]), scattered([first, second]), whole(first)):
        sizes = [batch.body_bytes(index) for index in range(batch.count)]
        size_bytes = batch.size_bytes
        batch.data = b""
        assert [batch.body_bytes(index) for index in range(batch.count)] == sizes
        assert batch.size_bytes == size_bytes


@given(SENT, SENT)
def test_memory_usage_counts_a_batch_while_it_is_resident(first: Sent, second: Sent) -> None:
    for make in (
        lambda: strided([first, first]), lambda: scattered([first, second]), lambda: whole(first)
    ):  # fmt: skip
        usage = MemoryUsage()
        batch: Batch = make()
        size = batch.size_bytes
        for _ in range(2):
            batch.charge(usage)
            assert usage.resident_bytes == BATCH_BYTES + size
        batch.evict()
        assert (usage.resident_bytes, batch.resident) == (BATCH_BYTES, False)
        batch.restore(make())
        assert (usage.resident_bytes, batch.resident) == (BATCH_BYTES + size, True)
        assert batch.body(0) == first.body
        del batch
        assert usage.resident_bytes == 0


# -- entries and ranges


@pytest.mark.parametrize("selection", [None, array("H", [1, 4])])
def test_an_entry_has_all_messages_or_a_selection(selection: array[int] | None) -> None:
    entry = QueueEntry(strided([Sent(b"a")] * 5, sequence=100), selection)
    chosen = list(range(5)) if selection is None else list(selection)
    assert (entry.count, entry.deadline_ms) == (len(chosen), None)
    assert [entry.index(at) for at in range(entry.count)] == chosen
    assert [entry.sequence(at) for at in range(entry.count)] == [100 + at for at in chosen]
    messages = MessageRange(entry, 1, 2)
    assert (messages.count, messages.sequence) == (1, 100 + chosen[1])


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
