"""Paging messages in: chunks, shared reads, and damage."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.life import PERSISTENT, Life, numbered, segments_of
from tests.support.amqp import bodies, method, publish
from warrenmq.core.message.queue_entry import MessageRange
from warrenmq.core.queue.classic import ClassicQueue
from warrenmq.core.queue.rules import Rules
from warrenmq.core.store import (
    batch_eviction,
    codec,
    entry_loader,
    read_size,
    reader,
)

KIB = 1024
pytestmark = segments_of(8 * KIB)


def fill(life: Life, count: int, queue: str = "q", first: int = 0, size: int = 6) -> None:
    """One record for each message, over several segments."""
    for body in numbered(count, first, size):
        life.client.feed(publish(1, body, PERSISTENT, routing_key=queue))
        life.turns(1, each_ms=10)
    life.write()


def in_memory(life: Life, queue: str = "q") -> int:
    return sum(held.count for held in life.classic(queue).backlog if isinstance(held, MessageRange))


def test_messages_are_read_in_chunks(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_size, "CHUNK_BYTES", 2_000)
    fill(life, 60)
    life.page_out()
    first = life.get()
    assert first is not None
    assert 5 < in_memory(life) < 30
    assert [first.body, *life.bodies()] == numbered(60)


def test_chunk_is_bounded_in_records(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_size, "CHUNK_RECORDS", 7)
    fill(life, 30)
    life.page_out()
    life.broker.tick()
    life.queue("q").when_head_ready(lambda: None)
    life.store.worker.deliver()
    assert in_memory(life) == 7
    assert life.bodies() == numbered(30)


def test_neighbours_are_read_with_one_call(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(life, 20)
    life.page_out()
    reads = count_reads(monkeypatch)
    life.get()
    assert len(reads) == 1


@pytest.mark.parametrize("together", [True, False])
def test_many_queues_are_read_with_few_jobs(
    life: Life, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    """Whether their messages share one record or have one each."""
    names = [f"q{number}" for number in range(300)]
    for name in names:
        life.declare(name)
    sent = [publish(1, name.encode(), PERSISTENT, routing_key=name) for name in names]
    for data in [b"".join(sent)] if together else sent:
        life.client.feed(data)
        life.turns(1)
    life.write()
    life.restart()
    reads = count_reads(monkeypatch)
    jobs, decoded = (
        count(monkeypatch, life.store.worker, "run"),
        count(monkeypatch, batch_eviction, "decode_messages"),
    )
    wanted = [method(1, "Basic.Consume", queue=name, consumer_tag=name) for name in names]
    found = bodies(life.client.feed(b"".join(wanted)))
    life.turns(3)
    assert sorted(found + life.client.bodies()) == sorted(map(str.encode, names))
    assert len(jobs) < 8
    assert len(reads) < 8 + 4 * len(life.files())
    assert len(decoded) < (8 if together else 301)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_record_of_many_queues_is_decoded_once(
    life: Life, monkeypatch: pytest.MonkeyPatch, is_clean: bool
) -> None:
    """Its shares not at all, unless they tell who was read when a process was killed."""
    names = [f"q{number}" for number in range(50)]
    for name in names:
        life.declare(name)
    data = [publish(1, name.encode(), PERSISTENT, routing_key=name) for name in names]
    life.client.feed(b"".join(data))
    life.write()
    life.restart() if is_clean else life.crash()
    read, listed = (
        count(monkeypatch, reader, "read_record"),
        count(monkeypatch, codec, "read_shares"),
    )
    assert [life.bodies(name) for name in names] == [[name.encode()] for name in names]
    places = {(arguments[0], arguments[3]) for arguments in read}
    assert len(read) == len(places) < 8
    assert len(listed) == (0 if is_clean else 1)


def test_requested_messages_are_read_before_those_with_a_ttl(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"ttl{number}" for number in range(20)]
    for name in names:
        life.declare(name)
        fill(life, 1, name)
    fill(life, 1)
    life.restart()
    paged_in = count(monkeypatch, ClassicQueue, "paged_in")
    for name in names:
        life.queue(name).apply(Rules(message_ttl_ms=60_000))
    for name in ("q", names[9]):
        life.queue(name).when_head_ready(lambda: None)
    life.turns()
    read = [queue.name for queue, *_ in paged_in if isinstance(queue, ClassicQueue)]
    assert read[:3] == [names[0], "q", names[9]]
    assert sorted(read) == sorted(["q", *names])


def test_messages_requested_during_a_read_are_read_next(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though one job has no room for it: it is not put back among what nobody waits for."""
    monkeypatch.setattr(read_size, "CHUNK_BYTES", 1)
    names = [f"ttl{number}" for number in range(4)]
    for name in names:
        life.declare(name)
        fill(life, 1, name)
    life.restart()
    paged_in = count(monkeypatch, ClassicQueue, "paged_in")
    read = entry_loader.EntryLoader.records
    reads: list[None] = []

    def interrupted(*given: Any) -> Any:
        reads.append(None)
        if len(reads) == 2:
            life.queue(names[3]).when_head_ready(lambda: None)
        return read(*given)

    monkeypatch.setattr(entry_loader.EntryLoader, "records", interrupted)
    for name in names:
        life.queue(name).apply(Rules(message_ttl_ms=60_000))
    life.turns(6)
    found = [queue.name for queue, *_ in paged_in if isinstance(queue, ClassicQueue)]
    assert found == [names[at] for at in (0, 1, 3, 2)]


def test_an_error_in_one_record_leaves_out_that_record(
    life: Life, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fill(life, 9)
    life.restart()
    with monkeypatch.context() as patch:
        fail_once(patch, entry_loader, "share_of", 3)
        assert life.bodies() == [body for body in numbered(9) if body != b"000003"]
    assert "1 messages were skipped" in caplog.text
    life.restart()
    assert life.bodies() == [b"000003"]


def test_a_get_is_answered_after_an_error_while_paging_in(
    life: Life, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(read_size, "CHUNK_RECORDS", 3)
    fill(life, 9)
    life.restart()
    fail_once(monkeypatch, ClassicQueue, "paged_in", 0)
    came: list[bool] = []
    life.queue("q").when_head_ready(lambda: came.append(True))
    life.turns(6)
    assert came == [True]
    found = life.client.consume("q", no_ack=True)
    life.turns(6)
    assert bodies(found) + life.client.bodies() == numbered(6, 3)
    assert "internal error" in caplog.text


def test_an_error_in_a_callback_does_not_stop_the_others(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    life.declare("other")
    fill(life, 1, "q")
    fill(life, 1, "other")
    batches = [held.entry.batch for name in ("q", "other") for held in ranges_of(life, name)]
    for batch in batches:
        life.store.batches.evict(batch)
    came: list[int] = []
    life.store.batches.fetch(batches[0], lambda: came.append(1 // 0))
    life.store.batches.fetch(batches[0], lambda: came.append(0))
    life.store.batches.fetch(batches[1], lambda: came.append(1))
    life.turns()
    assert came == [0, 1]
    assert "ZeroDivisionError" in caplog.text


def ranges_of(life: Life, name: str) -> list[MessageRange]:
    return [held for held in life.classic(name).backlog if isinstance(held, MessageRange)]


def fail_once(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, at: int) -> None:
    """Has the owner's function raise at its call number `at`."""
    plain = getattr(owner, name)
    calls: list[None] = []

    def failing(*arguments: object) -> object:
        calls.append(None)
        if len(calls) == at + 1:
            raise RuntimeError("this went wrong")
        return plain(*arguments)

    monkeypatch.setattr(owner, name, failing)


def count(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[tuple[object, ...]]:
    """Notes each call of the owner's function."""
    calls: list[tuple[object, ...]] = []
    plain = getattr(owner, name)

    def counted(*arguments: object) -> object:
        calls.append(arguments)
        return plain(*arguments)

    monkeypatch.setattr(owner, name, counted)
    return calls


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    reads: list[int] = []
    plain = reader.RecordReader.read

    def read(self: reader.RecordReader, segment: int, offset: int, size: int) -> memoryview:
        reads.append(size)
        return plain(self, segment, offset, size)

    monkeypatch.setattr(reader.RecordReader, "read", read)
    return reads


def test_messages_are_read_beyond_the_limits_of_open_files(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "FILES_OPEN", 2)
    monkeypatch.setattr(reader, "INDEXES_KEPT", 1)
    names = ["q", "r", "s"]
    for name in names[1:]:
        life.declare(name)
    for first in range(0, 150, 5):
        for name in names:
            fill(life, 5, name, first)
    assert len(life.files()) > 4
    life.restart()
    clients = {name: life.connect() for name in names}
    found: dict[str, list[bytes]] = {name: [] for name in names}
    for client in clients.values():
        client.send("Basic.Qos", prefetch_count=7)
    for name, client in clients.items():
        found[name] += bodies(client.consume(name))
    for _ in range(40):
        for name, client in clients.items():
            life.turns(2)
            found[name] += client.bodies()
            found[name] += bodies(client.send("Basic.Ack", delivery_tag=0, multiple=True))
    assert found == {name: numbered(150) for name in names}


def damage(life: Life, body: bytes) -> None:
    for name in life.files():
        path = life.directory / name
        raw = path.read_bytes()
        at = raw.find(body)
        if at >= 0:
            path.write_bytes(raw[:at] + bytes((raw[at] ^ 1,)) + raw[at + 1 :])
            return
    raise AssertionError("not there")


@pytest.mark.parametrize("number", [0, 7, 19])
def test_a_damaged_record_is_left_out_and_not_deleted(life: Life, number: int) -> None:
    fill(life, 20)
    life.page_out()
    (damaged,) = numbered(1, number)
    damage(life, damaged)
    expected = [body for body in numbered(20) if body != damaged]
    assert life.bodies() == expected
    assert life.queue("q").ready_count == 0
    life.write()
    assert sum(segment.unsettled for segment in life.store.log.segments.values()) == 1


def test_a_damaged_record_of_an_evicted_batch(life: Life) -> None:
    fill(life, 3)
    for held in life.classic("q").backlog:
        assert isinstance(held, MessageRange)
        assert life.store.batches.evict(held.entry.batch)
    damage(life, b"000001")
    assert life.bodies() == [b"000000", b"000002"]
    assert life.queue("q").ready_count == 0


def test_a_disk_that_cannot_be_read_is_a_failure(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(life, 2)
    life.page_out()
    life.confirm()

    def read(*_: object) -> memoryview:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(reader.RecordReader, "read", read)
    life.connect().send("Basic.Get", queue="q")
    life.turns()
    assert [reply.name for reply in life.publish(b"one")] == ["Basic.Nack"]


def test_a_fetch_that_is_under_way_is_not_begun_again(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(life, 1)
    (held,) = life.classic("q").backlog
    assert isinstance(held, MessageRange)
    batch = held.entry.batch
    assert life.store.batches.evict(batch)
    reads = count_reads(monkeypatch)
    came: list[int] = []
    life.store.batches.fetch(batch, lambda: came.append(1))
    life.store.batches.fetch(batch, lambda: came.append(2))
    assert came == []
    life.store.turned()
    assert came == [1, 2]
    assert len(reads) == 1
    assert batch.resident
