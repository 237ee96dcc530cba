"""Many readers of one stream: fairness, shared entries, and memory."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.core.messages import batch
from tests.core.queue.reading import Reading, declare, fill, stream
from tests.core.queue.support import FakeContext, Session
from tests.support.amqp import Client, make_broker, publish
from warrenmq.core.broker import CONSUMERS_BEHIND_MESSAGES
from warrenmq.core.message.model import FieldValue
from warrenmq.core.message.queue_entry import QueueEntry
from warrenmq.core.queue import header_rewriting, stream_offsets, stream_spec
from warrenmq.core.queue.consumer import Consumer
from warrenmq.core.queue.rules import PLAIN
from warrenmq.core.queue.stream import StreamQueue


@pytest.fixture
def queue() -> StreamQueue:
    return StreamQueue("s", "/", FakeContext(), 1, durable=True, rules=PLAIN)


@pytest.fixture
def life(life: Life) -> Life:
    declare(life)
    return life


def enqueue(queue: StreamQueue, count: int, *, each: int = 500) -> None:
    """Batches, as reads of a socket bring them."""
    for _ in range(count // each):
        queue.enqueue(QueueEntry(batch(each, queue.log.end), None))


def add(
    queue: StreamQueue, session: Session, prefetch: int = 10_000, **arguments: FieldValue
) -> Consumer:
    given: dict[str, FieldValue] = {"x-stream-offset": "first"}
    given |= {f"x-stream-{name}": value for name, value in arguments.items()}
    consumer = Consumer("c", queue, session, prefetch=prefetch, arguments=given)
    queue.add_consumer(consumer)
    return consumer


@pytest.fixture
def filtered(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The messages that a filter was asked about."""
    found: list[bytes] = []
    plain = stream_spec.StreamFilter.wants

    def wants(self: stream_spec.StreamFilter, properties: bytes) -> bool:
        found.append(properties)
        return plain(self, properties)

    monkeypatch.setattr(stream_spec.StreamFilter, "wants", wants)
    return found


# -- turns


def test_a_filter_is_bounded_per_turn(queue: StreamQueue, filtered: list[bytes]) -> None:
    enqueue(queue, 20_000, each=2_500)
    session = Session()
    add(queue, session, filter="none")
    more, turns = True, 0
    while more:
        more, turns = queue.dispatch(300), turns + 1
        assert len(filtered) <= 300 * turns
    assert len(filtered) == 20_000
    assert not session.got


def test_a_filter_without_matches_delays_no_other(
    queue: StreamQueue, filtered: list[bytes]
) -> None:
    enqueue(queue, 20_000)
    searching, reading = Session(), Session()
    add(queue, searching, filter="none")
    add(queue, reading)
    queue.dispatch(1_000)
    assert len(reading.numbers()) >= 400
    assert len(filtered) <= 600


def test_readers_share_a_turn(queue: StreamQueue) -> None:
    enqueue(queue, 3_000)
    sessions = [Session() for _ in range(4)]
    for session in sessions:
        add(queue, session)
    assert queue.dispatch(400)
    assert all(90 <= len(session.numbers()) <= 100 for session in sessions)


def test_more_readers_than_a_turn_has_messages(queue: StreamQueue) -> None:
    enqueue(queue, 3, each=3)
    sessions = [Session() for _ in range(50)]
    for session in sessions:
        add(queue, session)
    assert queue.dispatch(20)
    assert 5 <= sum(bool(session.got) for session in sessions) <= 20
    while queue.dispatch(20):
        pass
    assert [session.numbers() for session in sessions] == [[0, 1, 2]] * 50


def test_readers_at_the_end_are_not_visited(
    queue: StreamQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue(queue, 10, each=10)
    idle = [add(queue, Session()) for _ in range(10)]
    stuck = [add(queue, Session(), prefetch=1) for _ in range(10)]
    queue.dispatch(2_000)
    session = Session()
    consumer = add(queue, session, prefetch=2)
    asked: list[Consumer] = []
    plain = Consumer.credit

    def credit(self: Consumer) -> int:
        asked.append(self)
        return plain(self)

    monkeypatch.setattr(Consumer, "credit", credit)
    queue.dispatch(2_000)
    session.ack(consumer)
    queue.dispatch(2_000)
    assert session.numbers() == [2, 3]
    assert not {*idle, *stuck} & {*asked}


def test_a_removed_reader_is_not_scheduled(queue: StreamQueue) -> None:
    enqueue(queue, 100, each=100)
    sessions = [Session() for _ in range(3)]
    consumers = [add(queue, session) for session in sessions]
    queue.remove_consumer(consumers[1])
    queue.dispatch(2_000)
    enqueue(queue, 100, each=100)
    queue.remove_consumer(consumers[0])
    queue.dispatch(2_000)
    assert [len(session.numbers()) for session in sessions] == [100, 0, 200]
    queue.remove_consumer(consumers[2])
    assert queue.ring is None


def test_a_long_stream_does_not_slow_publishers() -> None:
    broker = make_broker()
    client, reader = Client(broker), Client(broker)
    client.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    reader.call("Basic.Qos", prefetch_count=1)
    reader.consume("s")
    read = publish(1, b"", {}, routing_key="s") * 4_000
    for _ in range(CONSUMERS_BEHIND_MESSAGES // 4_000 + 2):
        client.feed(read)
    assert broker.vhosts["/"].queues["s"].ready_count > CONSUMERS_BEHIND_MESSAGES
    assert not broker.consumers_behind


# -- what they are shown


@pytest.fixture
def rewritten(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages were rewritten at once."""
    counts: list[int] = []
    plain = header_rewriting.with_header

    def with_header(messages: object, *rest: object) -> object:
        counts.append(messages.count)  # type: ignore[attr-defined]
        return plain(messages, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(stream_offsets, "with_header", with_header)
    return counts


def test_only_delivered_messages_are_rewritten_for_small_prefetches(
    queue: StreamQueue, rewritten: list[int]
) -> None:
    enqueue(queue, 40_000, each=2_000)
    sessions = [Session() for _ in range(20)]
    consumers = [
        add(queue, session, prefetch=1, offset=2_000 * at + 5)
        for at, session in enumerate(sessions)
    ]
    for _ in range(10):
        queue.dispatch(2_000)
        for session, consumer in zip(sessions, consumers, strict=True):
            session.ack(consumer)
    assert sum(rewritten) == 200


def test_readers_at_the_end_share_rewritten_entries(
    queue: StreamQueue, rewritten: list[int]
) -> None:
    for _ in range(20):
        add(queue, Session())
    enqueue(queue, 1_000, each=500)
    while queue.dispatch(2_000):
        pass
    assert rewritten == [500, 500]


def test_rewritten_entries_are_counted_and_freed(life: Life) -> None:
    body = b"x" * 10_000
    life.client.feed(publish(1, body, PERSISTENT, routing_key="s") * 10)
    life.write()
    memory = life.broker.memory
    plain = memory.resident_bytes
    quick, slow = Reading(life, "first"), Reading(life, "first", prefetch=5)
    assert (len(quick.more()), len(slow.more())) == (10, 5)
    assert memory.resident_bytes > plain + 100_000, "one of them will want the rest"
    slow.ack()
    assert len(slow.more()) == 10
    slow.ack()
    slow.more()
    assert memory.resident_bytes <= plain


def test_unacked_deliveries_take_no_memory(life: Life) -> None:
    life.client.feed(publish(1, b"x" * 10_000, PERSISTENT, routing_key="s") * 10)
    life.write()
    reading = Reading(life, "first")
    assert len(reading.more()) == 10
    life.page_out("s")
    assert life.broker.memory.resident_bytes < 5_000
    assert life.queue("s").unacked_count == 10
    reading.ack()
    assert life.queue("s").unacked_count == 0


def test_readers_at_one_offset_share_entries(life: Life) -> None:
    """Each record is in memory once, until the last of them has read it."""
    fill(life, [b"x" * 10_000] * 20)
    life.restart()
    memory = life.broker.memory
    readings = [Reading(life, "first", prefetch=1)]
    assert readings[0].offsets() == [0]
    alone = memory.resident_bytes
    assert alone > 200_000
    readings += [Reading(life, "first", prefetch=1) for _ in range(4)]
    assert all(reading.offsets() == [0] for reading in readings)
    assert memory.resident_bytes == alone
    *rest, gone = readings
    gone.client.send("Connection.Close", reply_code=200)
    for reading in rest:
        for _ in range(20):
            reading.ack()
        assert reading.offsets() == list(range(20))
    assert memory.resident_bytes < 5_000


ENDS: dict[str, dict[str, Any]] = {
    "Basic.Cancel": {"consumer_tag": "c"},
    "Connection.Close": {"reply_code": 200},
    "Queue.Delete": {"queue": "s"},
}


@pytest.mark.parametrize("end", ENDS)
def test_read_ahead_ends_with_its_last_reader(life: Life, end: str) -> None:
    """At once: the garbage collector leaves old objects alone."""
    fill(life, [b"x" * 10_000] * 20)
    life.restart()
    client = life.connect()
    client.call("Basic.Qos", prefetch_count=1)
    client.consume("s", arguments={"x-stream-offset": "first"})
    life.turns()
    assert life.broker.memory.resident_bytes > 150_000
    gc.disable()
    try:
        client.send(end, **ENDS[end])
        life.turns()
        assert life.broker.memory.resident_bytes < 5_000
    finally:
        gc.enable()


def test_read_ahead_is_freed_by_paging_out(life: Life) -> None:
    for _ in range(20):
        fill(life, [b"x" * 10_000])
    life.restart()
    readings = [Reading(life, "first", prefetch=1) for _ in range(5)]
    assert all(reading.offsets() == [0] for reading in readings)
    assert life.broker.memory.resident_bytes > 150_000
    life.page_out("s")
    assert life.broker.memory.resident_bytes < 5_000
    for reading in readings:
        reading.ack()
        assert reading.offsets() == [0, 1]


def test_a_reader_is_removed_during_its_search(life: Life) -> None:
    fill(life, numbered(50))
    life.restart()
    client = life.connect()
    client.call("Basic.Qos", prefetch_count=5)
    client.receive(b"")
    life.broker.tick()
    queue = stream(life)
    session = Session()
    consumer = add(queue, session, offset="1h")
    queue.remove_consumer(consumer)
    life.turns()
    assert not session.got
    consumer = add(queue, session, offset="1h")
    life.client.call("Queue.Delete", queue="s")
    life.turns()
    assert not session.got and session.cancels == [consumer]
