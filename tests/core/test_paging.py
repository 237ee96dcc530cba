"""Queues longer than memory: what is let go of, and that nobody notices but the memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.amqp import bodies, method, publish
from warrenmq.core.message.batch import Batch, MessageRange, PagedOut, QueueEntry
from warrenmq.core.message.model import Table
from warrenmq.core.queue.classic import ClassicQueue
from warrenmq.core.queue.queue import Queue
from warrenmq.core.store.page_in_scheduler import PageInScheduler
from warrenmq.core.store.read_size import CHUNK_BYTES

from .life import PERSISTENT, TRANSIENT, Life, numbered


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log")
    found.declare("q")
    yield found
    found.abandon()


def fill(
    life: Life, count: int, queue: str = "q", *, first: int = 0, batch: int = 10,
    transient: bool = False,
) -> None:  # fmt: skip
    """In reads of `batch` messages, written when this returns."""
    properties = TRANSIENT if transient else PERSISTENT
    for start in range(first, first + count, batch):
        some = numbered(min(batch, first + count - start), start)
        life.client.feed(b"".join(publish(1, body, properties, routing_key=queue) for body in some))
    life.write()
    life.client.come()


def ask(life: Life, queue: str = "q") -> None:
    """Somebody wants the oldest message, which is on its way from now on."""
    life.broker.tick()
    found = life.classic(queue)
    found.get(lambda: None)
    assert found.is_paging_in


def resident(queue: Queue) -> int:
    """Ready messages whose bytes are in memory."""
    assert isinstance(queue, ClassicQueue)
    return sum(
        held.count
        for held in queue.backlog
        if isinstance(held, MessageRange) and held.entry.batch.resident
    )


def alive(kind: type) -> int:
    gc.collect()
    return sum(isinstance(found, kind) for found in gc.get_objects())


# -- cold and back


def test_a_paged_out_queue_keeps_only_its_number(life: Life) -> None:
    fill(life, 2_000)
    batches = alive(Batch)
    life.page_out()
    assert life.queue("q").paged_out_count == 2_000
    assert life.client.messages("q") == 2_000
    assert alive(Batch) <= batches - 200
    assert len(list(life.classic("q").backlog)) == 1
    assert life.broker.memory.resident_bytes == 0
    assert life.bodies() == numbered(2_000)
    assert life.queue("q").paged_out_count == 0


def test_the_front_stays_in_memory(life: Life) -> None:
    fill(life, 200)
    life.page_out(head_bytes=50 * 60)
    queue = life.classic("q")
    first, *rest = queue.backlog
    assert isinstance(first, MessageRange)
    assert 0 < queue.paged_out_count < 200
    assert isinstance(rest[-1], PagedOut)
    assert life.bodies() == numbered(200)


def test_what_comes_in_behind_a_paged_out_range_stays_in_order(life: Life) -> None:
    fill(life, 50)
    life.page_out()
    fill(life, 50, first=50)
    assert life.queue("q").paged_out_count == 50
    life.page_out()
    assert life.queue("q").paged_out_count == 100
    fill(life, 20, first=100)
    assert life.bodies() == numbered(120)


def test_get_from_a_paged_out_queue(life: Life) -> None:
    fill(life, 30)
    life.page_out()
    for body in numbered(30):
        found = life.get()
        assert found is not None
        assert (found.body, found["redelivered"]) == (body, False)
    assert life.get() is None
    assert life.broker.memory.resident_bytes == 0


def test_several_gets_wait_for_one_read(life: Life) -> None:
    fill(life, 30)
    life.page_out()
    clients = [life.connect() for _ in range(3)]
    ask(life)
    for client in clients:
        client.connection.receive(_get())
    life.turns()
    found = [reply.body for client in clients for reply in client.come() if reply.body]
    assert found == numbered(3)


def _get() -> bytes:
    return method(1, "Basic.Get", queue="q", no_ack=True)


def test_purge_of_a_paged_out_queue(life: Life) -> None:
    fill(life, 30)
    life.page_out()
    assert life.purge() == 30
    assert life.get() is None
    fill(life, 3, first=40)
    life.crash()
    assert life.bodies() == numbered(3, 40)


def test_purge_while_messages_are_on_their_way(life: Life) -> None:
    fill(life, 30)
    life.page_out()
    ask(life)
    life.client.connection.receive(_purge())
    fill(life, 3, first=40)
    assert life.client.messages("q") == 3
    life.write()
    life.crash()
    assert life.bodies() == numbered(3, 40)


def _purge() -> bytes:
    return method(1, "Queue.Purge", queue="q")


def test_a_purge_leaves_what_is_unacked(life: Life) -> None:
    fill(life, 30)
    for _ in range(15):
        life.get(ack=False)
    life.page_out()
    life.purge()
    life.crash()
    assert life.bodies() == numbered(15)


def test_delete_of_a_paged_out_queue(life: Life) -> None:
    fill(life, 30)
    life.page_out()
    assert life.client.call("Queue.Delete", queue="q")["message_count"] == 30
    life.declare("q")
    life.write()
    assert life.bodies() == []
    life.crash()
    assert life.bodies() == []
    assert life.broker.memory.resident_bytes == 0


def test_delete_while_messages_are_on_their_way(life: Life) -> None:
    fill(life, 30)
    life.page_out()
    ask(life)
    assert life.client.call("Queue.Delete", queue="q").name == "Queue.DeleteOk"
    life.declare("q")
    fill(life, 3)
    assert life.bodies() == numbered(3)
    assert life.broker.memory.resident_bytes == 0


def test_requeue_into_a_paged_out_queue(life: Life) -> None:
    fill(life, 30)
    for _ in range(10):
        life.get(ack=False)
    life.page_out()
    assert life.queue("q").paged_out_count >= 10
    life.client.send("Basic.Nack", delivery_tag=0, multiple=True, requeue=True)
    expected = [(body, number < 10) for number, body in enumerate(numbered(30))]
    assert life.drain() == expected


def test_requeue_while_messages_are_on_their_way(life: Life) -> None:
    fill(life, 30)
    for _ in range(10):
        life.get(ack=False)
    life.page_out()
    ask(life)
    life.client.send("Basic.Nack", delivery_tag=4, multiple=True, requeue=True)
    expected = [number for number in range(30) if not 4 <= number < 10]
    assert life.drain() == [(b"%06d" % number, number < 4) for number in expected]


def test_consumers_share_a_paged_out_queue_in_order(life: Life) -> None:
    fill(life, 100)
    life.page_out()
    clients = [life.connect(), life.connect()]
    found = []
    for client in clients:
        client.send("Basic.Qos", prefetch_count=10)
        found.append(bodies(client.consume("q")))
    life.turns()
    for client, some in zip(clients, found, strict=True):
        some += client.bodies()
        assert some == sorted(some)
    assert sorted(found[0] + found[1]) == numbered(20)


def test_flags_are_kept_by_paging(life: Life) -> None:
    fill(life, 40)
    for _ in range(15):
        life.get(ack=False)
    life.restart()
    assert life.queue("q").paged_out_count == 40
    assert life.get(ack=False)["redelivered"]  # type: ignore[index]
    life.page_out()
    expected = [(body, 0 < number < 15) for number, body in enumerate(numbered(40))]
    assert life.drain() == expected[1:]


# -- one payload for many queues


def fan_out(life: Life, count: int) -> list[str]:
    names = [f"fan{number}" for number in range(4)]
    for name in names:
        life.declare(name)
        life.client.call("Queue.Bind", queue=name, exchange="amq.fanout")
    for body in numbered(count):
        life.client.publish(body * 300, PERSISTENT, exchange="amq.fanout")
    life.write()
    return names


def test_fan_out_is_read_once_for_all_queues(life: Life) -> None:
    names = fan_out(life, 50)
    for name in names:
        life.page_out(name)
    assert life.broker.memory.resident_bytes == 0
    reader = life.store._paging.reader
    before = reader.read_bytes
    clients = [life.connect() for _ in names]
    for client, name in zip(clients, names, strict=True):
        client.send("Basic.Qos", prefetch_count=1)
        client.consume(name)
    assert 50 * 1800 <= reader.read_bytes - before < 60 * 1800
    assert 50 * 1800 <= life.broker.memory.resident_bytes < 2 * 50 * 1800
    for name, client in zip(names, clients, strict=True):
        client.send("Connection.Close", reply_code=200)
        assert [body[:6] for body in life.bodies(name)] == numbered(50)


def test_a_batch_is_counted_once_and_until_the_last_queue_is_done(life: Life) -> None:
    names = fan_out(life, 10)
    assert life.broker.memory.resident_bytes < 2 * 10 * 1800
    for name in names[:-1]:
        life.bodies(name)
    assert life.broker.memory.resident_bytes >= 10 * 1800
    life.bodies(names[-1])
    assert life.broker.memory.resident_bytes == 0


@pytest.mark.parametrize("held", ["transient", "durable", "unacked"])
def test_messages_that_came_alone_are_counted_as_they_weigh(life: Life, held: str) -> None:
    if held == "unacked":
        life.client.consume("q", no_ack=False)
    fill(life, 500, batch=1, transient=held == "transient")
    tracemalloc.start()
    weighed, counted = tracemalloc.get_traced_memory()[0], life.broker.memory.resident_bytes
    fill(life, 2_000, batch=1, first=500, transient=held == "transient")
    life.client.replies.clear()
    gc.collect()
    weighed = tracemalloc.get_traced_memory()[0] - weighed
    tracemalloc.stop()
    assert life.broker.memory.resident_bytes - counted == pytest.approx(weighed, rel=0.15)


def test_a_queue_that_ends_while_what_it_had_is_discarded(life: Life) -> None:
    fill(life, 40, batch=1)
    life.page_out()
    queue = life.classic("q")
    cold = queue.backlog.first_paged_out()
    assert cold is not None
    steps = life.store.discard(queue, cold)
    next(steps)
    life.client.call("Queue.Delete", queue="q")
    assert not list(steps)
    assert all(segment.unsettled == 0 for segment in life.store.segments.values())


def test_a_message_for_a_durable_and_a_transient_queue(tmp_path: Path) -> None:
    """The durable queue is done with it, and its place on disk is gone."""
    life = Life(tmp_path / "log", segment_bytes=3_000)
    both(life)
    fill(life, 20, "")
    publish_to_both(life, 20)
    life.page_out("t", transient=True)
    life.turns()
    assert resident(life.queue("t")) == 0
    assert life.bodies("q") == numbered(20)
    life.page_out("t", transient=True)
    life.turns()
    before = life.files()
    churn(life)
    assert not set(before) & set(life.files())
    assert life.bodies("t") == numbered(20)
    assert not life.store._failed


def test_a_message_for_a_transient_queue_when_the_durable_ones_are_moved(tmp_path: Path) -> None:
    life = Life(tmp_path / "log", segment_bytes=3_000)
    both(life)
    publish_to_both(life, 40)
    for _ in range(19):
        life.get("q")
    assert life.get("q", ack=False) is not None
    for _ in range(20):
        life.get("q")
    before = life.files()
    churn(life)
    assert not set(before) & set(life.files())
    life.page_out("t", transient=True)
    life.turns()
    assert life.bodies("t") == numbered(40)


def both(life: Life) -> None:
    life.declare("q")
    life.client.declare("t")
    for name in ("q", "t"):
        life.client.call("Queue.Bind", queue=name, exchange="amq.fanout")


def publish_to_both(life: Life, count: int) -> None:
    data = [publish(1, body, PERSISTENT, exchange="amq.fanout") for body in numbered(count)]
    life.client.feed(b"".join(data))
    life.write()


def churn(life: Life, count: int = 100) -> None:
    """Until the segments that are there have been looked at and, if dead, have gone."""
    life.declare("churn")
    for _ in range(count):
        life.publish(bytes(200), "churn")
        life.get("churn")
        life.turns(2, each_ms=1_000)


def test_unacked_messages_of_a_deleted_queue(tmp_path: Path) -> None:
    """They are refused when nothing of them is on the disk any more."""
    life = Life(tmp_path / "log", segment_bytes=3_000)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    life.declare("q", arguments=arguments)
    life.declare("dead")
    fill(life, 10)
    for _ in range(5):
        life.get(ack=False)
    evict_unacked(life)
    life.client.call("Queue.Delete", queue="q")
    churn(life)
    life.client.send("Basic.Nack", delivery_tag=0, multiple=True)
    life.turns()
    assert not life.store._failed
    assert life.client.messages("dead") in (0, 5)


def evict_unacked(life: Life) -> None:
    for connection in life.broker.connections:
        for channel in connection.channels.values():
            for messages in channel.unacked.ranges():
                life.store.evict(messages.entry.batch)


# -- unacked


def test_unacked_messages_leave_memory_and_come_back(life: Life) -> None:
    fill(life, 30)
    delivered = life.client.consume("q", no_ack=False)
    assert len(bodies(delivered)) == 30
    evict_unacked(life)
    assert life.broker.memory.resident_bytes < 30 * 60 + 4_000
    assert not any(entry.batch.resident for entry in live_entries(life))
    life.client.call("Basic.Cancel", consumer_tag="c")
    life.client.send("Basic.Ack", delivery_tag=3)
    life.client.send("Basic.Nack", delivery_tag=0, multiple=True, requeue=True)
    expected = [number for number in range(30) if number != 2]
    assert life.drain() == [(b"%06d" % number, True) for number in expected]
    assert life.broker.memory.resident_bytes == 0


def live_entries(life: Life) -> list[QueueEntry]:
    return [
        messages.entry
        for connection in life.broker.connections
        for channel in connection.channels.values()
        for messages in channel.unacked.ranges()
    ]


def jobs_to_drain(life: Life, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many times the disk is asked while a queue is read to its end."""
    batches = life.store._paging.batches
    read_next, jobs = batches._read_next, count()
    monkeypatch.setattr(batches, "_read_next", lambda: (next(jobs), read_next()))
    assert [body[:6] for body in life.bodies()] == numbered(400)
    return next(jobs)


@pytest.mark.parametrize("arguments", [{"x-message-ttl": 60_000}, {"x-max-priority": 3}])
def test_messages_that_came_alone_are_read_many_at_a_time(
    life: Life, monkeypatch: pytest.MonkeyPatch, arguments: Table
) -> None:
    """They have a batch each, and where they may expire no range is made of them."""
    life.client.call("Queue.Delete", queue="q")
    life.declare("q", arguments=arguments)
    properties = {**PERSISTENT, "expiration": "60000"}
    for body in numbered(400):
        life.client.feed(publish(1, body + bytes(10_000), properties, routing_key="q"))
    life.write()
    life.page_out()
    assert resident(life.queue("q")) == 0
    assert 4 <= jobs_to_drain(life, monkeypatch) <= 4 * 400 * 10_000 // CHUNK_BYTES


def test_returned_messages_are_read_many_at_a_time(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(life, 400, batch=1)
    life.client.consume("q", no_ack=False)
    evict_unacked(life)
    life.client.call("Basic.Cancel", consumer_tag="c")
    life.client.send("Basic.Nack", delivery_tag=0, multiple=True, requeue=True)
    assert resident(life.queue("q")) == 0
    assert jobs_to_drain(life, monkeypatch) <= 8


def test_every_second_of_many_acked_needs_little(life: Life) -> None:
    count = 8_000
    fill(life, count, batch=1_000)
    before = alive(MessageRange) + alive(QueueEntry) + alive(Batch)
    delivered = life.client.consume("q")
    for _ in range(20):
        life.turns(1)
        delivered += life.client.come()
    tags = [reply["delivery_tag"] for reply in delivered]
    assert len(tags) == count
    life.client.feed(b"".join(method(1, "Basic.Ack", delivery_tag=tag) for tag in tags[::2]))
    life.write()
    evict_unacked(life)
    assert life.broker.memory.resident_bytes <= 16 * 700
    assert alive(MessageRange) + alive(QueueEntry) + alive(Batch) <= before + 200
    life.crash()
    assert life.bodies() == numbered(count)[1::2]


# -- transient


@pytest.fixture
def transient(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path / "log")
    life.client.declare("t")
    fill(life, 40, "t", transient=True)
    yield life
    life.abandon()


def test_transient_messages_are_let_go_of(transient: Life) -> None:
    before = transient.broker.memory.resident_bytes
    written = transient.store._writer.written_bytes
    transient.page_out("t", transient=True)
    transient.turns()
    assert resident(transient.queue("t")) == 0
    assert transient.broker.memory.resident_bytes < before - 40 * 50
    assert transient.store._writer.written_bytes == written
    assert not any("overflow" in name for name in transient.files(""))
    assert transient.bodies("t") == numbered(40)
    assert transient.broker.memory.resident_bytes == 0


def test_transient_messages_stay_if_only_kept_ones_are_asked_for(transient: Life) -> None:
    transient.page_out("t", transient=False)
    transient.turns()
    assert resident(transient.queue("t")) == 40


def test_transient_messages_in_a_durable_queue(life: Life) -> None:
    for number in range(10):
        life.publish(b"%06d" % number, properties=[PERSISTENT, TRANSIENT][number % 2])
    life.write()
    life.page_out(transient=True)
    life.turns()
    queue = life.queue("q")
    assert resident(queue) == 0
    assert queue.paged_out_count == 5
    assert life.bodies() == numbered(10)


def test_transient_messages_that_are_being_written_can_be_had(transient: Life) -> None:
    transient.page_out("t", transient=True)
    assert transient.get("t", ack=False) is not None
    transient.turns()
    transient.client.send("Basic.Nack", delivery_tag=1, requeue=True)
    assert transient.bodies("t") == numbered(40)


def test_transient_messages_can_be_purged_and_requeued(transient: Life) -> None:
    for _ in range(5):
        transient.get("t", ack=False)
    transient.page_out("t", transient=True)
    evict_unacked(transient)
    transient.turns()
    transient.client.send("Basic.Nack", delivery_tag=2, multiple=True, requeue=True)
    transient.turns()
    assert transient.client.call("Queue.Purge", queue="t")["message_count"] == 37
    transient.client.send("Basic.Nack", delivery_tag=0, multiple=True, requeue=True)
    assert transient.drain("t") == [(b"%06d" % number, True) for number in (2, 3, 4)]


def test_overflow_files_are_closed_when_nothing_in_them_is_wanted(
    transient: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.core.store.overflow.FILE_BYTES", 500)
    for first in range(100, 900, 100):
        fill(transient, 100, "t", first=first, transient=True)
        transient.page_out("t", transient=True)
        transient.turns()
    assert open_files(transient) > 4
    assert len(transient.bodies("t")) == 840
    gc.collect()
    assert open_files(transient) <= 1


def open_files(life: Life) -> int:
    """Unlinked files of the store that this process holds."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except OSError:
            continue
        found += target.startswith(str(life.directory)) and target.endswith("(deleted)")
    return found


@pytest.fixture
def stretched(tmp_path: Path) -> Iterator[Life]:
    """Six messages, each in a segment of its own, of which nothing is in memory."""
    found = Life(tmp_path / "log")
    found.declare("q")
    for first in range(6):
        fill(found, 1, first=first)
        found.store.roll()
    found.restart()
    assert found.classic("q").backlog.paged_out_ranges == 6
    yield found
    found.abandon()


def test_small_ranges_are_read_together(stretched: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two as they are asked for, the others with the next job."""
    jobs: list[int] = []
    read = PageInScheduler._read_requested

    def counted(page_in: PageInScheduler, requested: Sequence[Any]) -> Any:
        jobs.append(len(requested))
        return read(page_in, requested)

    monkeypatch.setattr(PageInScheduler, "_read_requested", counted)
    assert stretched.bodies("q") == numbered(6)
    assert jobs == [1, 1, 4]


def test_a_purge_while_several_ranges_are_read(stretched: Life) -> None:
    ask(stretched)
    assert len(stretched.classic("q").page_in_requests.reading) == 6
    assert stretched.purge() == 6
    stretched.publish(b"new", "q")
    stretched.write()
    assert stretched.bodies("q") == [b"new"]
    assert not stretched.classic("q").page_in_requests.reading
