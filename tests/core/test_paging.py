"""Queues longer than memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.amqp import bodies, method, publish
from warrenmq.core.message.batch import Batch
from warrenmq.core.message.model import Table
from warrenmq.core.message.queue_entry import MessageRange, PagedOut, QueueEntry
from warrenmq.core.queue.classic import ClassicQueue
from warrenmq.core.queue.queue import Queue
from warrenmq.core.store.read_size import CHUNK_BYTES
from warrenmq.core.store.work import Worker

from .life import PERSISTENT, TRANSIENT, Life, numbered


def fill(
    life: Life, count: int, queue: str = "q", *, first: int = 0, batch: int = 10,
    transient: bool = False,
) -> None:  # fmt: skip
    """In reads of `batch` messages, written when this returns."""
    properties = TRANSIENT if transient else PERSISTENT
    for start in range(first, first + count, batch):
        some = numbered(min(batch, first + count - start), start)
        life.publish_together(some, queue, properties)
    life.write()
    life.client.come()


def ask(life: Life, queue: str = "q") -> None:
    """Somebody wants the oldest message, which is on its way from now on."""
    life.broker.tick()
    found = life.classic(queue)
    found.when_head_ready(lambda: None)
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


# -- out and back


def test_paged_out_queue_keeps_only_a_count_in_memory(life: Life) -> None:
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


def test_front_of_a_queue_stays_in_memory(life: Life) -> None:
    fill(life, 200)
    life.page_out(head_bytes=50 * 60)
    queue = life.classic("q")
    first, *rest = queue.backlog
    assert isinstance(first, MessageRange)
    assert 0 < queue.paged_out_count < 200
    assert isinstance(rest[-1], PagedOut)
    assert life.bodies() == numbered(200)


def test_several_gets_wait_for_one_read(life: Life) -> None:
    fill(life, 30)
    life.page_out()
    clients = [life.connect() for _ in range(3)]
    ask(life)
    for client in clients:
        client.connection.receive(method(1, "Basic.Get", queue="q", no_ack=True))
    life.turns()
    found = [reply.body for client in clients for reply in client.come() if reply.body]
    assert found == numbered(3)


@pytest.mark.parametrize("returned", [4, 10])
def test_requeue_while_messages_are_on_their_way(life: Life, returned: int) -> None:
    fill(life, 30)
    for _ in range(10):
        life.get(ack=False)
    life.page_out()
    ask(life)
    life.client.send("Basic.Nack", delivery_tag=returned, multiple=True, requeue=True)
    expected = [*range(returned), *range(10, 30)]
    assert life.drain() == [(b"%06d" % number, number < returned) for number in expected]


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
    reader = life.store.paging.reader
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
    assert life.broker.memory.resident_bytes == 0


def test_a_batch_is_counted_once_and_until_the_last_queue_is_done(life: Life) -> None:
    names = fan_out(life, 10)
    assert life.broker.memory.resident_bytes < 2 * 10 * 1800
    for name in names[:-1]:
        life.bodies(name)
    assert life.broker.memory.resident_bytes >= 10 * 1800
    life.bodies(names[-1])
    assert life.broker.memory.resident_bytes == 0


@pytest.mark.parametrize("held", ["transient", "durable", "unacked"])
def test_single_messages_are_counted_with_their_real_memory(life: Life, held: str) -> None:
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


def test_queue_is_deleted_while_a_range_is_discarded(life: Life) -> None:
    fill(life, 40, batch=1)
    life.page_out()
    queue = life.classic("q")
    paged_out = queue.backlog.first_paged_out()
    assert paged_out is not None
    steps = life.store.discard(queue, paged_out)
    next(steps)
    life.client.call("Queue.Delete", queue="q")
    assert not list(steps)
    assert all(segment.unsettled == 0 for segment in life.store.log.segments.values())


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
    assert not life.store.has_failed
    assert life.client.messages("dead") in (0, 5)


def evict_unacked(life: Life) -> None:
    for connection in life.broker.connections:
        for messages in connection.unacked():
            life.store.batches.evict(messages.entry.batch)


# -- unacked


def jobs_to_drain(life: Life, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many times the disk is asked while a queue is read to its end."""
    run, jobs = Worker.run, count()
    monkeypatch.setattr(Worker, "run", lambda *given: (next(jobs), run(*given)))
    assert [body[:6] for body in life.bodies()] == numbered(400)
    return next(jobs)


@pytest.mark.parametrize("arguments", [{"x-message-ttl": 60_000}, {"x-max-priority": 3}])
def test_single_messages_are_read_many_at_a_time(
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


def test_alternate_acks_need_little_memory(life: Life) -> None:
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


def test_transient_messages_are_paged_out(transient: Life) -> None:
    before = transient.broker.memory.resident_bytes
    written = transient.store.writer.written_bytes
    transient.page_out("t", transient=True)
    transient.turns()
    assert resident(transient.queue("t")) == 0
    assert transient.broker.memory.resident_bytes < before - 40 * 50
    assert transient.store.writer.written_bytes == written
    assert not any("overflow" in name for name in transient.files(""))
    assert transient.bodies("t") == numbered(40)
    assert transient.broker.memory.resident_bytes == 0


def test_transient_messages_stay_unless_requested(transient: Life) -> None:
    transient.page_out("t", transient=False)
    transient.turns()
    assert resident(transient.queue("t")) == 40


def test_unused_overflow_files_are_closed(transient: Life, monkeypatch: pytest.MonkeyPatch) -> None:
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
        found.store.log.roll()
    found.restart()
    assert found.classic("q").backlog.paged_out_ranges == 6
    yield found
    found.abandon()


def test_small_ranges_are_read_together(stretched: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two as they are asked for, the others with the next job."""
    run, jobs = Worker.run, count()
    monkeypatch.setattr(Worker, "run", lambda *given: (next(jobs), run(*given)))
    assert stretched.bodies("q") == numbered(6)
    assert next(jobs) == 3


def test_a_purge_while_several_ranges_are_read(stretched: Life) -> None:
    ask(stretched)
    assert len(stretched.classic("q").page_in_requests.reading) == 6
    assert stretched.purge() == 6
    stretched.publish(b"new", "q")
    stretched.write()
    assert stretched.bodies("q") == [b"new"]
    assert not stretched.classic("q").page_in_requests.reading
