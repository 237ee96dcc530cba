"""Durable messages on a real directory, through restarts."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.amqp import bodies, method, names, publish
from warrenmq.core.queue import delivery_marks
from warrenmq.core.store import log
from warrenmq.core.store.reader import RecordReader
from warrenmq.core.store.work import Worker

from .life import PERSISTENT, TRANSIENT, Life, acks, numbered, torn_lives

pytestmark = pytest.mark.promise


def unflagged(count: int, first: int = 0) -> list[tuple[bytes, bool]]:
    return [(body, False) for body in numbered(count, first)]


def flagged(count: int, first: int = 0) -> list[tuple[bytes, bool]]:
    return [(body, True) for body in numbered(count, first)]


def publish_all(life: Life, count: int, queue: str = "q", first: int = 0) -> None:
    """In one read, written when this returns."""
    life.publish_together(numbered(count, first), queue)
    life.write()
    life.client.come()


# -- confirms, syncs and what is written


def test_confirm_follows_the_sync(life: Life) -> None:
    life.confirm()
    life.write()
    syncs = life.store.writer.syncs
    assert acks(life.client.publish(b"one", PERSISTENT, routing_key="q")) == []
    assert life.store.writer.syncs == syncs + 1
    life.turns(1)
    assert acks(life.client.come()) == [(1, False)]
    life.crash()
    assert life.drain() == [(b"one", False)]


def test_bytes_of_each_sync_are_measured(life: Life) -> None:
    life.write()
    life.confirm()
    writes, syncs = life.store.write_metrics, life.store.writer.syncs
    committed = writes.commit_bytes.sum
    life.client.publish(b"a" * 5_000, PERSISTENT, routing_key="q")
    assert writes.commit_bytes.sum > committed + 5_000
    assert writes.commit_bytes.sum == life.store.writer.written_bytes
    assert writes.sync_s.cumulative()[-1] == life.store.writer.syncs == syncs + 1


def test_nothing_is_confirmed_while_the_sync_is_under_way(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.confirm()
    reports: list[Any] = []
    monkeypatch.setattr(life.store.worker, "post", reports.append)
    assert life.publish(b"one") == []
    assert life.publish(b"two") == []
    for report in reports:
        report()
    reports.clear()
    life.turns(2)
    assert acks(life.client.come()) == [(1, False)]
    for report in reports:
        report()
    life.turns(1)
    assert acks(life.client.come()) == [(2, False)]


def test_declaration_outside_of_a_read_requests_a_turn(life: Life) -> None:
    """As over HTTP: the next read of another client may be long in coming."""
    turns: list[str] = []
    life.broker.on_work = lambda: turns.append("turn")
    vhost = life.broker.vhosts["/"]
    vhost.declare_queue("brief", durable=False)
    assert not turns
    vhost.declare_queue("kept", durable=True)
    assert turns


def test_unconfirmed_publishes_are_not_synced_at_once(life: Life) -> None:
    life.write()
    writer = life.store.writer
    syncs, written = writer.syncs, writer.written_bytes
    for body in numbered(100):
        life.client.publish(body, PERSISTENT, routing_key="q")
        life.clock.advance(10)
    life.turns()
    assert writer.written_bytes > written
    assert writer.syncs == syncs


def test_unconfirmed_publishes_are_synced_after_five_seconds(life: Life) -> None:
    life.write()
    syncs = life.store.writer.syncs
    life.publish(b"one")
    life.turns(3, each_ms=1_600)
    assert life.store.writer.syncs == syncs
    life.turns(2, each_ms=1_600)
    assert life.store.writer.syncs == syncs + 1
    life.turns(5, each_ms=6_000)
    assert life.store.writer.syncs == syncs + 1


def test_unconfirmed_publishes_are_synced_after_sync_bytes(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert log.SYNC_BYTES == 16 * 2**20
    monkeypatch.setattr(log, "SYNC_BYTES", 100_000)
    life.write()
    syncs = life.store.writer.syncs
    life.publish(bytes(90_000))
    life.write()
    assert life.store.writer.syncs == syncs
    life.publish(bytes(10_000))
    life.write()
    assert life.store.writer.syncs == syncs + 1


def test_acks_are_written_without_a_sync(life: Life) -> None:
    publish_all(life, 50)
    life.get(ack=True)  # waits for the mark that these may go out
    life.write()
    writer = life.store.writer
    syncs, written = writer.syncs, writer.written_bytes
    for _ in range(49):
        life.get(ack=True)
    life.write()
    assert writer.written_bytes > written
    assert writer.syncs == syncs
    life.crash()
    assert life.drain() == []


def test_delivering_writes_nothing(life: Life) -> None:
    for first in range(0, 6_000, 1_000):
        publish_all(life, 1_000, first=first)
    writer = life.store.writer
    before = writer.written_bytes, writer.syncs
    life.client.call("Basic.Qos", prefetch_count=1)
    delivered = life.client.consume("q", "first")
    life.write()
    delivered += life.client.come()
    assert writer.written_bytes - before[0] < 100, "that somebody reads"
    assert writer.syncs <= before[1] + 1
    before = writer.written_bytes, writer.syncs
    life.client.call("Basic.Qos", prefetch_count=0)
    delivered += life.client.consume("q", "second")
    life.write()
    delivered += life.client.come()
    assert bodies(delivered) == numbered(6_000)
    assert (writer.written_bytes, writer.syncs) == before


def test_a_message_for_many_queues_is_stored_once(life: Life) -> None:
    written = life.store.writer.written_bytes
    for number in range(20):
        life.declare(f"fan{number}")
        life.client.call("Queue.Bind", queue=f"fan{number}", exchange="amq.fanout")
    life.write()
    written = life.store.writer.written_bytes
    life.publish(bytes(100_000), "", exchange="amq.fanout")
    life.write()
    assert 100_000 < life.store.writer.written_bytes - written < 101_000
    life.crash()
    assert {life.queue(f"fan{number}").ready_count for number in range(20)} == {1}


def test_transient_messages_leave_nothing(life: Life) -> None:
    life.client.declare("t")
    life.confirm()
    assert life.get("q") is None
    life.write()
    written = life.store.writer.written_bytes
    assert acks(life.client.publish(b"one", TRANSIENT, routing_key="q")) == [(1, False)]
    assert acks(life.client.publish(b"two", TRANSIENT, routing_key="t")) == [(2, False)]
    assert acks(life.client.publish(b"three", PERSISTENT, routing_key="t")) == [(3, False)]
    life.get("t", ack=False)
    life.client.call("Queue.Purge", queue="t")
    life.write()
    assert life.store.writer.written_bytes == written
    life.restart()
    assert set(life.broker.vhosts["/"].queues) == {"q"}
    assert life.drain() == []


def test_transient_confirm_waits_for_an_earlier_persistent_one(life: Life) -> None:
    life.confirm()
    data = publish(1, b"one", PERSISTENT, routing_key="q") + publish(1, b"two", routing_key="q")
    assert acks(life.client.feed(data)) == []
    life.turns(1)
    assert acks(life.client.come()) == [(2, True)]


# -- the redelivered flag


@pytest.mark.parametrize("kind", [{"x-max-priority": 5}, {"x-queue-type": "quorum"}])
def test_after_a_clean_stop_the_flag_is_exact_for_each_priority(
    life: Life, kind: dict[str, object]
) -> None:
    """The highest go first, so older ones of a lower priority wait behind what was delivered."""
    life.declare("ranked", arguments=kind)
    for body, priority in ((b"low", 0), (b"middle", 2), (b"high", 4), (b"higher", 5)):
        life.publish(body, "ranked", {**PERSISTENT, "priority": priority})
    for _ in range(2):
        life.get("ranked", ack=False)
    life.restart()
    life.restart()
    assert life.drain("ranked") == [
        (b"higher", True), (b"high", True), (b"middle", False), (b"low", False)
    ]  # fmt: skip
    life.client.call("Queue.Delete", queue="ranked")
    life.restart()
    assert not life.store.marks.by_priority


def test_delivery_mark_covers_many_gets(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_marks, "LOGGED_AHEAD", 30)
    publish_all(life, 50)
    assert life.get(ack=False) is not None
    life.write()
    written = life.store.writer.written_bytes
    for _ in range(20):
        assert life.get(ack=False) is not None
    life.write()
    assert life.store.writer.written_bytes == written
    life.crash()
    assert life.drain() == flagged(31) + unflagged(19, 31)


def test_messages_after_the_last_consumer_are_new_after_a_crash(life: Life) -> None:
    publish_all(life, 3)
    life.client.consume("q", "c")
    life.client.call("Basic.Cancel", consumer_tag="c")
    publish_all(life, 3, first=3)
    life.crash()
    assert life.drain() == flagged(3) + unflagged(3, 3)


# -- rules


def test_queues_with_a_ttl_are_read_after_the_start(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None before the server can listen, with few jobs, and none on the broker's thread."""
    arguments = {
        "x-message-ttl": 60_000,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "q",
    }
    queues = [f"ttl{number}" for number in range(100)]
    for name in queues:
        life.declare(name, arguments=arguments)
        life.publish(name.encode(), name)
    life.turns(1, each_ms=50_000)
    for name in queues:
        life.publish(b"young", name)
    life.stop()
    threads: list[threading.Thread] = []
    plain = RecordReader.read

    def read(self: RecordReader, segment: int, offset: int, size: int) -> memoryview:
        threads.append(threading.current_thread())
        return plain(self, segment, offset, size)

    monkeypatch.setattr(RecordReader, "read", read)
    life.clock.advance(11_000)
    life.before_restore = threads.clear  # type: ignore[method-assign]
    monkeypatch.setattr(life, "connect", lambda: life.client)
    life.open()
    assert threads == []
    life.start()
    assert [life.queue(name).ready_count for name in queues] == [2] * 100
    life.wait(lambda: life.queue("q").ready_count == 100)
    assert threading.main_thread() not in threads
    assert 0 < len(threads) < 50
    monkeypatch.undo()
    life.client = life.connect()
    assert [life.queue(name).ready_count for name in queues] == [1] * 100
    assert [life.queue(name).paged_out_count for name in queues] == [0] * 100


def test_queue_that_rejects_by_bytes_is_read_after_the_start(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is, it takes as much as its limit beside what it had. The first publish has it read
    before all that nobody waits for."""
    life.declare("full", arguments={"x-max-length-bytes": 12, "x-overflow": "reject-publish"})
    publish_all(life, 2, "full")
    life.stop()
    jobs: list[tuple[Any, Any]] = []
    monkeypatch.setattr(Worker, "run", lambda self, job, done: jobs.append((job, done)))
    life.open()
    life.confirm()
    sent = [names(life.client.publish(b"%06d" % at, routing_key="full")) for at in (2, 3, 4)]
    assert sent == [["Basic.Ack"], ["Basic.Ack"], ["Basic.Nack"]]
    declared = life.client.call("Queue.Declare", queue="full", passive=True)
    assert declared["message_count"] == 4
    monkeypatch.undo()
    for job, done in jobs:
        done(job())
    assert names(life.publish(b"five", "full")) == ["Basic.Nack"]
    taken = [life.get("full") for _ in range(3)]
    assert [reply.body for reply in taken if reply] == numbered(3)
    assert names(life.publish(b"six", "full")) == ["Basic.Ack"]
    assert names(life.publish(b"seven", "full")) == ["Basic.Nack"]


def test_length_limit_reads_nothing_until_it_is_exceeded(life: Life) -> None:
    life.declare("limited", arguments={"x-max-length": 3})
    publish_all(life, 3, "limited")
    life.restart()
    life.turns()
    assert life.queue("limited").paged_out_count == 3
    life.publish(b"%06d" % 3, "limited")
    assert life.bodies("limited") == numbered(3, first=1)


@pytest.mark.parametrize(("set_by_s", "left_ms"), [(-86_400, 60_000), (30, 30_000)])
def test_a_clock_that_was_set_gives_no_more_than_the_ttl(
    life: Life, set_by_s: float, left_ms: int
) -> None:
    life.declare("ttl", arguments={"x-message-ttl": 60_000})
    life.publish(b"one", "ttl")
    life.stop()
    life.clock.step(set_by_s)
    life.open()
    life.turns(2, each_ms=left_ms // 2 - 5)
    assert life.queue("ttl").ready_count == 1
    life.turns(3, each_ms=10)
    assert life.queue("ttl").ready_count == 0


def test_limit_in_bytes_counts_recovered_messages(life: Life) -> None:
    life.declare("short", arguments={"x-max-length-bytes": 30})
    publish_all(life, 5, "short")
    life.crash()
    assert life.classic("short").ready_bytes == 30
    publish_all(life, 2, "short", first=5)
    assert life.bodies("short") == numbered(5, 2)
    assert life.classic("short").ready_bytes == 0


# -- dead letters


def dead_lettering(life: Life) -> None:
    life.declare("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    life.declare("source", arguments=arguments)
    publish_all(life, 10, "source")
    life.write()


def test_a_dead_letter_is_moved_wholly_or_not_at_all(life: Life, tmp_path: Path) -> None:
    dead_lettering(life)

    def reject() -> None:
        life.get("source", ack=False)
        life.client.send("Basic.Nack", delivery_tag=1)

    for torn in torn_lives(life, tmp_path, reject):
        assert sorted(torn.bodies("source") + torn.bodies("dead")) == numbered(10)


def test_a_crash_at_commit_ok_finds_the_dead_letters_of_the_transaction(life: Life) -> None:
    life.declare("d", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    life.declare("marker")
    publish_all(life, 500, "d")
    life.client.call("Tx.Select")
    for _ in range(500):
        life.client.send("Basic.Get", queue="d")
    life.client.send("Basic.Nack", delivery_tag=500, multiple=True, requeue=False)
    life.client.publish(b"marker", PERSISTENT, routing_key="marker")
    life.client.connection.receive(method(1, "Tx.Commit"))
    while names(life.client.come()) != ["Tx.CommitOk"]:
        life.broker.turn()
    life.crash()
    assert [life.queue(name).ready_count for name in ("d", "marker")] == [0, 1]
    assert life.bodies("q") == numbered(500)


class Killed(BaseException):
    """The process ends here."""


def test_message_of_a_get_is_redelivered_after_a_kill(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However soon after the answer: that it may go out is on disk before."""
    publish_all(life, 3)
    written: list[bytes] = []

    def write(data: bytes | bytearray) -> None:
        written.append(bytes(data))
        raise Killed

    monkeypatch.setattr(life.client.transport, "write", write)
    life.client.connection.receive(method(1, "Basic.Get", queue="q"))
    with pytest.raises(Killed):
        life.turns()
    assert b"000000" in written[0]
    life.crash()
    back = life.drain()
    assert [body for body, _ in back] == numbered(3)
    assert back[0] == (b"000000", True)
