"""Cursors of streams: messages that are evicted, moved, dropped or unreadable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.core.queue.reading import Reading, declare, fill, stream
from tests.support.amqp import Client, make_broker, publish, take_turns
from tests.support.manual_store import ManualStore
from warrenmq.core.message.queue_entry import MessageRange, PagedOut
from warrenmq.core.queue.cursor import Cursor
from warrenmq.core.queue.retention import WHOLE
from warrenmq.core.store import read_size, relocation
from warrenmq.core.store.copied_records import CompactedSegment
from warrenmq.core.store.segment import Segment


@pytest.fixture
def life(life: Life) -> Life:
    declare(life)
    return life


def damage(life: Life, *bodies: bytes, crashed: bool = False) -> None:
    """Flips a bit in the records with these bodies, between two lives."""
    if crashed:
        life.abandon()
    else:
        life.stop()
    for name in life.files():
        path = life.directory / name
        data = bytearray(path.read_bytes())
        for body in bodies:
            if (at := data.find(body)) >= 0:
                data[at] ^= 1
        path.write_bytes(data)
    life.open()


@pytest.mark.parametrize("lost", [[0], [0, 2], [2, 3], [1, 3]])
def test_offsets_after_a_crash_with_damage(life: Life, lost: list[int]) -> None:
    life.declare("q")
    for number in range(5):
        read = publish(1, b"%06d" % number, PERSISTENT, routing_key="s") * (number + 1)
        life.client.feed(publish(1, b"other", PERSISTENT, routing_key="q") + read)
        life.write()
    firsts = [0, 1, 3, 6, 10]
    damage(life, *(b"%06d" % number for number in lost), crashed=True)
    left = [
        (offset, b"%06d" % number)
        for number in range(5)
        for offset in range(firsts[number], firsts[number] + number + 1)
        if number not in lost
    ]
    for again in (False, True, False, True):
        fill(life, [b"new"])
        left.append((left[-1][0] + 1, b"new"))
        reading = Reading(life, "first")
        assert list(zip(reading.offsets(), reading.bodies(), strict=True)) == left
        life.write()
        if again:
            life.crash()
        else:
            life.restart()
    assert len(life.bodies("q")) == 5 - len(lost)


def drop(life: Life, over: Callable[[], int]) -> None:
    stream(life).log.dropping.begin(over, lambda: None)
    life.turns()


def test_lost_messages_are_dropped_with_the_rest(life: Life) -> None:
    for number in range(20):
        fill(life, [b"%06d" % number])
    life.write()
    damage(life, b"000003", crashed=True)
    log = stream(life).log
    fill(life, [b"new"])
    log.compute_sizes(lambda: None)
    life.turns()
    drop(life, lambda: 600 * (log.first < 4))
    first = log.first
    assert 4 <= first <= 10
    life.write()
    life.crash()
    assert stream(life).log.first == first
    assert Reading(life, "first").offsets() == list(range(first, 21))


@pytest.mark.parametrize("lost", [1, 4])
def test_a_damaged_index_and_record(
    life: Life, lost: int, caplog: pytest.LogCaptureFixture
) -> None:
    fill(life, numbered(5))
    life.stop()
    body = b"%06d" % lost
    (name,) = [name for name in life.files() if body in (life.directory / name).read_bytes()]
    path = life.directory / name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    data[data.find(body)] ^= 1
    path.write_bytes(data)
    life.open()
    fill(life, [b"new"])
    reading = Reading(life, "first")
    assert reading.offsets() == [at for at in range(6) if at != lost]
    assert reading.bodies() == [*(body for body in numbered(5) if int(body) != lost), b"new"]
    assert "no sound record at offset" in caplog.text
    assert Reading(life, 4).offsets() == [4, 5][lost == 4 :]


class UnreadableStore(ManualStore):
    """Reads arrive, but what was written is not there."""

    def arrive(self) -> int:
        reads = self.take_reads()
        for _, ready in reads:
            ready()
        return len(reads)


def late(store: ManualStore) -> tuple[Client, Client]:
    """A publisher, and a reader from the beginning, of a stream on such a store."""
    broker = make_broker(store)
    publisher, reader = Client(broker), Client(broker)
    arguments = {"x-queue-type": "stream"}
    publisher.declare("s", durable=True, arguments=arguments)
    reader.call("Basic.Qos", prefetch_count=100)
    reader.consume("s", arguments={"x-stream-offset": "first"})
    return publisher, reader


def offsets(reader: Client) -> list[int]:
    take_turns(reader.broker)
    found = [reply for reply in reader.come() if reply.name == "Basic.Deliver"]
    return [reply.headers["x-stream-offset"] for reply in found]


def test_unreadable_batches_are_left_out() -> None:
    store = UnreadableStore()
    store.paging = False
    publisher, reader = late(store)
    for body in numbered(3):
        publisher.publish(body, PERSISTENT, routing_key="s")
    (first, *_) = store.batches.written
    store.batches.evict(first)
    store.commit()
    assert offsets(reader) == []
    assert store.arrive() == 1
    assert offsets(reader) == [1, 2]
    assert not store.reads


def test_compaction_during_a_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path / "log", segment_bytes=8_192)
    declare(life)
    life.declare("q")
    for number in range(60):
        life.publish(b"%06d" % number, "s")
        life.client.feed(publish(1, b"x" * 90, PERSISTENT, routing_key="q") * 5)
    life.write()
    life.page_out("s")
    reading = Reading(life, "first", prefetch=1)
    assert reading.offsets() == [0]
    life.drain("q")
    asked = Cursor(stream(life).log, life.store, 7, lambda: None)
    moves: list[bool] = []
    plain = relocation.relocate

    def relocate(copy: CompactedSegment, segments: dict[int, Segment]) -> Iterator[None]:
        asked.release_read_ahead()
        asked.next()
        moves.append(asked.is_reading)
        return plain(copy, segments)

    monkeypatch.setattr("warrenmq.core.store.compactor.relocate", relocate)
    for _ in range(20):
        life.store.log.roll()
        life.write()
    assert any(moves)
    asked.next()
    life.turns()
    messages = asked.next()
    assert (
        isinstance(messages, MessageRange)
        and messages.entry.batch.body(messages.entry.index(messages.low)) == b"000007"
    )
    for number in range(1, 60):
        reading.ack()
        assert reading.offsets()[-1] == number
    life.abandon()


def test_a_range_is_dropped_during_a_read(life: Life) -> None:
    fill(life, numbered(20))
    life.restart()
    fill(life, numbered(3, 20))
    log = stream(life).log
    woken: list[int] = []
    cursor = Cursor(log, life.store, 0, lambda: woken.append(log.first))
    assert cursor.next() is None
    drop(life, lambda: WHOLE * isinstance(log.chunks.at(log.first).content, PagedOut))
    assert woken == [20]
    messages = cursor.next()
    assert messages is not None and cursor.offset == 20


def test_a_range_is_split_during_a_read(life: Life) -> None:
    fill(life, numbered(20))
    life.restart()
    fill(life, numbered(3, 20))
    log = stream(life).log
    log.compute_sizes(lambda: None)
    life.turns()
    cursor = Cursor(log, life.store, 5, lambda: None)
    assert cursor.next() is None
    drop(life, lambda: 300 * (not log.first))
    messages = cursor.next()
    assert 0 < log.first <= 5
    assert messages is not None
    assert (cursor.offset, messages.entry.batch.body(messages.low)) == (5, b"000005")


def test_a_removed_segment_is_left_out(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(life, numbered(5))
    life.restart()
    fill(life, [b"new"])

    def gone(*args: object) -> bytes:
        raise FileNotFoundError

    monkeypatch.setattr(type(life.store.paging.reader), "read", gone)
    assert Reading(life, "first").bodies() == [b"new"]
    assert not life.store.has_failed


def test_a_message_larger_than_a_chunk_or_a_frame(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_size, "CHUNK_BYTES", 1_000)
    bodies = [b"%d" % number * 300_000 for number in range(3)]
    fill(life, bodies)
    fill(life, [b""])
    assert Reading(life, "first").bodies() == [*bodies, b""]
    life.restart()
    reading = Reading(life, "first")
    assert reading.bodies() == [*bodies, b""]
    assert reading.offsets() == [0, 1, 2, 3]


def test_messages_with_priorities_and_expirations_are_paged_out(life: Life) -> None:
    for number in range(20):
        properties = {**PERSISTENT, "priority": number % 10, "expiration": "1"}
        life.publish(b"%06d" % number, "s", properties)
    life.write()
    life.page_out("s")
    life.clock.advance(1_000)
    assert stream(life).paged_out_count == 20
    life.crash()
    assert stream(life).paged_out_count == 20
    assert Reading(life, "first").bodies() == numbered(20)


def test_compacted_messages_are_paged_out(tmp_path: Path) -> None:
    life = Life(tmp_path / "log", segment_bytes=8_192)
    declare(life)
    life.declare("q")
    for number in range(60):
        read = publish(1, b"%06d" % number, PERSISTENT, routing_key="s")
        read += publish(1, b"x" * 90, PERSISTENT, routing_key="q") * 7
        read += publish(1, b"%06d" % (1_000 + number), PERSISTENT, routing_key="s")
        life.client.feed(read)
        life.turns(1, each_ms=10)
    life.write()
    life.drain("q")
    for _ in range(20):
        life.store.log.roll()
        life.write()
    log = stream(life).log
    assert log.resident_count == 120
    life.page_out("s")
    assert (log.resident_count, log.resident_bytes) == (0, 0)
    assert any(messages.is_moved for messages in life.store.log.segments.values())
    expected = [b"%06d" % at for number in range(60) for at in (number, 1_000 + number)]
    assert Reading(life, "first").bodies() == expected
    life.crash()
    assert len(list(stream(life).log.chunks)) < 20, "neighbours come back as one"
    assert Reading(life, "first").bodies() == expected
    for again in range(3):
        fill(life, [b"new"])
        life.write()
        life.crash()
        assert Reading(life, "first").offsets() == list(range(121 + again))
    life.abandon()


def test_a_loss_between_two_distant_sequence_numbers(life: Life) -> None:
    fill(life, numbered(2))
    life.clock.advance(3_600_000)
    life.crash()
    fill(life, numbered(3, 2))
    damage(life, b"000002", crashed=True)
    for _ in range(3):
        assert Reading(life, "first").offsets() == [0, 1, 3, 4]
        life.crash()
