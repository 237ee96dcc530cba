"""Many readers of one stream, and what one of them costs the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.core.messages import batch
from tests.core.queue.reading import Reading, declare, fill, stream
from tests.core.queue.support import House, Session
from tests.support.amqp import Client, make_broker, publish, take_turns
from warrenmq.core.broker import CROWDED_MESSAGES
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.batch import QueueEntry
from warrenmq.core.message.model import FieldValue
from warrenmq.core.publish.local import LocalDelivery, LocalSession
from warrenmq.core.queue import header_rewriting as dressing
from warrenmq.core.queue import stream_offsets as showing
from warrenmq.core.queue import stream_spec
from warrenmq.core.queue.consumer import Consumer
from warrenmq.core.queue.rules import PLAIN
from warrenmq.core.queue.stream import StreamQueue


@pytest.fixture
def queue() -> StreamQueue:
    return StreamQueue("s", "/", House(), 1, durable=True, rules=PLAIN)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path / "log")
    declare(life)
    yield life
    life.abandon()


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
def looked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The messages that a filter was asked about."""
    found: list[bytes] = []
    plain = stream_spec.Filter.wants

    def wants(self: stream_spec.Filter, properties: bytes) -> bool:
        found.append(properties)
        return plain(self, properties)

    monkeypatch.setattr(stream_spec.Filter, "wants", wants)
    return found


# -- turns


def test_a_filter_looks_at_no_more_than_a_turn_allows(
    queue: StreamQueue, looked: list[bytes]
) -> None:
    enqueue(queue, 20_000, each=2_500)
    session = Session()
    add(queue, session, filter="none")
    more, turns = True, 0
    while more:
        more, turns = queue.dispatch(300), turns + 1
        assert len(looked) <= 300 * turns
    assert len(looked) == 20_000
    assert not session.got


def test_a_filter_that_finds_nothing_holds_up_nobody(
    queue: StreamQueue, looked: list[bytes]
) -> None:
    enqueue(queue, 20_000)
    searching, reading = Session(), Session()
    add(queue, searching, filter="none")
    add(queue, reading)
    queue.dispatch(1_000)
    assert len(reading.numbers()) >= 400
    assert len(looked) <= 600


def test_readers_share_a_turn(queue: StreamQueue) -> None:
    enqueue(queue, 3_000)
    sessions = [Session() for _ in range(4)]
    for session in sessions:
        add(queue, session)
    assert queue.dispatch(400)
    assert all(90 <= len(session.numbers()) <= 100 for session in sessions)


def test_more_readers_than_a_turn_has_messages(queue: StreamQueue) -> None:
    """They come one after the other, and each gets everything."""
    enqueue(queue, 3, each=3)
    sessions = [Session() for _ in range(50)]
    for session in sessions:
        add(queue, session)
    assert queue.dispatch(20)
    assert 5 <= sum(bool(session.got) for session in sessions) <= 20
    while queue.dispatch(20):
        pass
    assert [session.numbers() for session in sessions] == [[0, 1, 2]] * 50


def test_who_has_read_everything_costs_nothing(
    queue: StreamQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does who has no credit: only those are asked for whom there is something."""
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


def test_a_reader_that_goes_leaves_the_line(queue: StreamQueue) -> None:
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


def test_a_long_stream_slows_no_publisher() -> None:
    """There is nobody who could not keep up: nothing is taken from it."""
    broker = make_broker()
    client, reader = Client(broker), Client(broker)
    client.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    reader.call("Basic.Qos", prefetch_count=1)
    reader.consume("s")
    read = publish(1, b"", {}, routing_key="s") * 4_000
    for _ in range(CROWDED_MESSAGES // 4_000 + 2):
        client.feed(read)
    assert broker.vhosts["/"].queues["s"].ready_count > CROWDED_MESSAGES
    assert not broker.crowded


# -- what they are shown


def test_who_takes_little_of_an_entry_has_little_of_it_dressed(
    queue: StreamQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many slow readers at different places must not dress a whole entry for each message."""
    enqueue(queue, 40_000, each=2_000)
    counts: list[int] = []
    plain = dressing.with_header

    def with_header(messages: object, *rest: object) -> object:
        counts.append(messages.count)  # type: ignore[attr-defined]
        return plain(messages, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(showing, "with_header", with_header)
    sessions = [Session() for _ in range(20)]
    consumers = [
        add(queue, session, prefetch=1, offset=2_000 * at + 5)
        for at, session in enumerate(sessions)
    ]
    for _ in range(10):
        queue.dispatch(2_000)
        for session, consumer in zip(sessions, consumers, strict=True):
            session.ack(consumer)
    assert sum(counts) == 200


def test_readers_at_the_end_share_what_is_dressed(
    queue: StreamQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    plain = dressing.with_header

    def with_header(messages: object, *rest: object) -> object:
        counts.append(messages.count)  # type: ignore[attr-defined]
        return plain(messages, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(showing, "with_header", with_header)
    for _ in range(20):
        add(queue, Session())
    enqueue(queue, 1_000, each=500)
    while queue.dispatch(2_000):
        pass
    assert counts == [500, 500]


def test_what_is_dressed_is_counted_and_let_go(life: Life) -> None:
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


def test_what_waits_for_an_ack_needs_no_memory(life: Life) -> None:
    life.client.feed(publish(1, b"x" * 10_000, PERSISTENT, routing_key="s") * 10)
    life.write()
    reading = Reading(life, "first")
    assert len(reading.more()) == 10
    life.page_out("s")
    assert life.broker.memory.resident_bytes < 5_000
    assert life.queue("s").unacked_count == 10
    reading.ack()
    assert life.queue("s").unacked_count == 0


def test_what_was_read_ahead_leaves_memory_too(life: Life) -> None:
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


@pytest.mark.parametrize("requeue", [True, False])
def test_recover_gives_credit_and_nothing_twice(life: Life, requeue: bool) -> None:
    """As reject does: there is nothing to come back."""
    fill(life, numbered(5))
    reading = Reading(life, "first", prefetch=2)
    assert reading.offsets() == [0, 1]
    reading.seen += reading.client.send("Basic.Recover", requeue=requeue)
    assert reading.offsets() == [0, 1, 2, 3]


def test_a_stop_of_a_channel_gives_nothing_back(life: Life) -> None:
    fill(life, numbered(5))
    reading, other = Reading(life, "first"), Reading(life, "next")
    assert len(reading.more()) == 5
    reading.client.send("Channel.Close", reply_code=200)
    assert (life.queue("s").unacked_count, life.queue("s").ready_count) == (0, 5)
    assert other.offsets() == []


def test_a_reader_by_time_can_go_while_its_place_is_searched(life: Life) -> None:
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


def test_an_exclusive_reader_is_alone(life: Life) -> None:
    life.client.call("Basic.Qos", prefetch_count=5)
    life.client.consume("s", "one", exclusive=True)
    other = life.connect()
    other.call("Basic.Qos", prefetch_count=5)
    reply = other.call("Basic.Consume", queue="s")
    assert (reply.name, reply["reply_code"]) == ("Channel.Close", 403)


def test_immediate_finds_a_reader_that_has_read_everything(life: Life) -> None:
    fill(life, numbered(3))
    replies = life.client.publish(b"no", PERSISTENT, routing_key="s", immediate=True)
    assert [reply["reply_code"] for reply in replies if reply.name == "Basic.Return"] == [313]
    reading = Reading(life, "next")
    assert reading.bodies() == []
    replies = life.client.publish(b"yes", PERSISTENT, routing_key="s", immediate=True)
    assert not [reply for reply in replies if reply.name == "Basic.Return"]
    assert reading.bodies() == [b"yes"]


# -- applications in this process


def local(life: Life, **arguments: FieldValue) -> tuple[LocalSession, list[LocalDelivery]]:
    got: list[LocalDelivery] = []
    session = LocalSession(
        life.broker, stream(life), prefetch=3, on_delivery=got.append, on_cancel=lambda: None,
        arguments={f"x-stream-{name}": value for name, value in arguments.items()},
    )  # fmt: skip
    take_turns(life.broker)
    return session, got


def test_an_application_reads_a_stream(life: Life) -> None:
    fill(life, numbered(5))
    session, got = local(life, offset="first")
    assert [delivery.message.body for delivery in got] == numbered(3)
    assert [(one.message.properties.headers or {})["x-stream-offset"] for one in got] == [0, 1, 2]
    assert len({delivery.sequence for delivery in got}) == 3
    got[0].ack()
    got[1].nack(requeue=True)
    take_turns(life.broker)
    assert [delivery.message.body for delivery in got] == numbered(5)
    session.close()
    assert stream(life).unacked_count == 0


def test_an_application_that_leaves_in_the_midst(life: Life) -> None:
    life.client.feed(
        b"".join(publish(1, body, PERSISTENT, routing_key="s") for body in numbered(3))
    )
    life.turns()
    sessions: list[LocalSession] = []
    got: list[LocalDelivery] = []

    def take(delivery: LocalDelivery) -> None:
        got.append(delivery)
        sessions[0].cancel()

    sessions.append(
        LocalSession(
            life.broker, stream(life), prefetch=3, on_delivery=take, on_cancel=lambda: None,
            arguments={"x-stream-offset": "first"},
        )
    )  # fmt: skip
    take_turns(life.broker)
    assert (len(got), stream(life).unacked_count) == (1, 1)
    assert stream(life).ring is None


def test_an_application_is_told_what_is_wrong(life: Life) -> None:
    with pytest.raises(ChannelError, match="x-stream-offset"):
        local(life, offset="soon")
    assert stream(life).ring is None
