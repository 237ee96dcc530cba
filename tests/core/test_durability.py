"""What the broker promises of durable messages, on a real directory and through restarts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.amqp import bodies, method, names, publish
from warrenmq.core.queue import classic
from warrenmq.core.store import durable as log
from warrenmq.core.store.reader import Reader
from warrenmq.core.store.work import Worker

from .life import PERSISTENT, TRANSIENT, Life, acks, numbered


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log")
    found.declare("q")
    yield found
    found.abandon()


def unflagged(count: int, first: int = 0) -> list[tuple[bytes, bool]]:
    return [(body, False) for body in numbered(count, first)]


def flagged(count: int, first: int = 0) -> list[tuple[bytes, bool]]:
    return [(body, True) for body in numbered(count, first)]


def publish_all(life: Life, count: int, queue: str = "q", first: int = 0) -> None:
    """In one read, written when this returns."""
    data = [publish(1, body, PERSISTENT, routing_key=queue) for body in numbered(count, first)]
    life.client.feed(b"".join(data))
    life.write()
    life.client.come()


# -- confirms, syncs and what is written


def test_a_confirm_comes_after_the_sync(life: Life) -> None:
    life.confirm()
    life.write()
    syncs = life.store._writer.syncs
    assert acks(life.client.publish(b"one", PERSISTENT, routing_key="q")) == []
    assert life.store._writer.syncs == syncs + 1
    life.turns(1)
    assert acks(life.client.come()) == [(1, False)]
    life.crash()
    assert life.drain() == [(b"one", False)]


def test_nothing_is_confirmed_while_the_sync_is_under_way(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.confirm()
    reports: list[Any] = []
    monkeypatch.setattr(life.store._worker, "post", reports.append)
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


def test_no_sync_when_nobody_waits(life: Life) -> None:
    life.write()
    writer = life.store._writer
    syncs, written = writer.syncs, writer.written_bytes
    for body in numbered(100):
        life.client.publish(body, PERSISTENT, routing_key="q")
        life.clock.advance(10)
    life.turns()
    assert writer.written_bytes > written
    assert writer.syncs == syncs


def test_what_nobody_waits_for_is_synced_after_five_seconds(life: Life) -> None:
    life.write()
    syncs = life.store._writer.syncs
    life.publish(b"one")
    life.turns(3, each_ms=1_600)
    assert life.store._writer.syncs == syncs
    life.turns(2, each_ms=1_600)
    assert life.store._writer.syncs == syncs + 1
    life.turns(5, each_ms=6_000)
    assert life.store._writer.syncs == syncs + 1


def test_what_nobody_waits_for_is_synced_after_so_many_bytes(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert log.SYNC_BYTES == 16 * 2**20
    monkeypatch.setattr(log, "SYNC_BYTES", 100_000)
    life.write()
    syncs = life.store._writer.syncs
    life.publish(bytes(90_000))
    life.write()
    assert life.store._writer.syncs == syncs
    life.publish(bytes(10_000))
    life.write()
    assert life.store._writer.syncs == syncs + 1


def test_acks_are_written_without_a_sync(life: Life) -> None:
    publish_all(life, 50)
    life.get(ack=True)  # waits for the mark that these may go out
    life.write()
    writer = life.store._writer
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
    writer = life.store._writer
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
    written = life.store._writer.written_bytes
    for number in range(20):
        life.declare(f"fan{number}")
        life.client.call("Queue.Bind", queue=f"fan{number}", exchange="amq.fanout")
    life.write()
    written = life.store._writer.written_bytes
    life.publish(bytes(100_000), "", exchange="amq.fanout")
    life.write()
    assert 100_000 < life.store._writer.written_bytes - written < 101_000
    life.crash()
    assert {life.queue(f"fan{number}").ready_count for number in range(20)} == {1}


def test_transient_messages_leave_nothing(life: Life) -> None:
    life.client.declare("t")
    life.confirm()
    assert life.get("q") is None
    life.write()
    written = life.store._writer.written_bytes
    assert acks(life.client.publish(b"one", TRANSIENT, routing_key="q")) == [(1, False)]
    assert acks(life.client.publish(b"two", TRANSIENT, routing_key="t")) == [(2, False)]
    assert acks(life.client.publish(b"three", PERSISTENT, routing_key="t")) == [(3, False)]
    life.get("t", ack=False)
    life.client.call("Queue.Purge", queue="t")
    life.write()
    assert life.store._writer.written_bytes == written
    life.restart()
    assert set(life.broker.vhosts["/"].queues) == {"q"}
    assert life.drain() == []


def test_a_transient_confirm_waits_for_the_persistent_one_before_it(life: Life) -> None:
    life.confirm()
    data = publish(1, b"one", PERSISTENT, routing_key="q") + publish(1, b"two", routing_key="q")
    assert acks(life.client.feed(data)) == []
    life.turns(1)
    assert acks(life.client.come()) == [(2, True)]


# -- order and what is back


def test_order_is_kept_over_restarts(life: Life) -> None:
    for first in range(0, 90, 10):
        publish_all(life, 10, first=first)
        [life.crash, life.restart][first % 20 == 0]()
    assert life.bodies() == numbered(90)


def test_requeued_messages_come_back_at_their_place(life: Life) -> None:
    publish_all(life, 10)
    for _ in range(6):
        life.get(ack=False)
    life.client.send("Basic.Ack", delivery_tag=2)
    life.client.send("Basic.Nack", delivery_tag=4, requeue=True)
    life.client.send("Basic.Reject", delivery_tag=1, requeue=True)
    life.restart()
    kept = [0, *range(2, 10)]
    assert life.drain() == [(b"%06d" % number, number < 6) for number in kept]


def test_purged_messages_stay_away(life: Life) -> None:
    publish_all(life, 10)
    life.get(ack=False)
    assert life.purge() == 9
    publish_all(life, 2, first=50)
    life.write()
    life.crash()
    assert life.bodies() == [b"000000", *numbered(2, 50)]


@pytest.mark.parametrize("end", ["restart", "crash"])
def test_a_queue_declared_again_is_empty(life: Life, end: str) -> None:
    publish_all(life, 10)
    life.client.call("Queue.Delete", queue="q")
    life.declare("q")
    publish_all(life, 3, first=20)
    life.write()
    getattr(life, end)()
    assert life.bodies() == numbered(3, 20)
    getattr(life, end)()
    assert set(life.broker.vhosts["/"].queues) == {"q"}


@pytest.mark.parametrize("end", ["restart", "crash"])
def test_a_deleted_queue_stays_away(life: Life, end: str) -> None:
    publish_all(life, 10)
    life.client.call("Queue.Bind", queue="q", exchange="amq.fanout")
    life.client.call("Queue.Delete", queue="q")
    life.write()
    getattr(life, end)()
    assert life.broker.vhosts["/"].queues == {}
    assert all(not segment.unsettled for segment in life.store.segments.values())


def test_bindings_and_exchanges_come_back(life: Life) -> None:
    client = life.client
    client.call("Exchange.Declare", exchange="x", exchange_type="topic", durable=True)
    client.call("Exchange.Declare", exchange="y", exchange_type="headers", durable=True)
    client.call("Exchange.Bind", source="x", destination="y", routing_key="a.#")
    arguments = {"kind": "b", "x-match": "all"}
    client.call("Queue.Bind", queue="q", exchange="y", arguments=arguments)
    client.call("Queue.Bind", queue="q", exchange="x", routing_key="c.*")
    client.call("Queue.Unbind", queue="q", exchange="x", routing_key="c.*")
    life.write()
    life.crash()
    properties = {"delivery_mode": 2, "headers": {"kind": "b"}}
    life.client.publish(b"yes", properties, exchange="x", routing_key="a.b")
    life.client.publish(b"no", PERSISTENT, exchange="x", routing_key="c.d")
    assert life.bodies() == [b"yes"]


def test_exclusive_and_auto_delete_queues(life: Life) -> None:
    life.declare("mine", exclusive=True)
    life.declare("leaves", auto_delete=True)
    life.declare("left", auto_delete=True)
    life.client.consume("left", "c")
    life.client.call("Basic.Cancel", consumer_tag="c")
    life.publish(b"one", "leaves")
    life.write()
    life.crash()
    assert set(life.broker.vhosts["/"].queues) == {"q", "leaves"}
    delivered = life.client.consume("leaves", "d")
    life.turns()
    assert bodies(delivered) + life.client.bodies() == [b"one"]
    life.client.call("Basic.Cancel", consumer_tag="d")
    life.restart()
    assert set(life.broker.vhosts["/"].queues) == {"q"}


# -- the redelivered flag


def test_after_a_clean_stop_the_flag_is_exact(life: Life) -> None:
    publish_all(life, 20)
    for _ in range(5):
        life.get(ack=False)
    life.restart()
    assert life.drain() == flagged(5) + unflagged(15, 5)


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
    assert not life.store.priority_marks


def test_the_flag_stays_over_several_restarts(life: Life) -> None:
    publish_all(life, 6)
    for _ in range(4):
        life.get(ack=False)
    life.restart()
    life.get(ack=True)
    life.restart()
    life.restart()
    assert life.drain() == flagged(3, 1) + unflagged(2, 4)


def test_after_a_clean_stop_what_a_consumer_was_not_sent_is_new(life: Life) -> None:
    life.client.call("Basic.Qos", prefetch_count=3)
    life.client.consume("q")
    publish_all(life, 8)
    life.restart()
    assert life.drain() == flagged(3) + unflagged(5, 3)


def test_what_was_never_deliverable_is_new_after_a_crash(life: Life) -> None:
    publish_all(life, 20)
    life.crash()
    assert life.drain() == unflagged(20)


def test_what_came_in_beside_a_consumer_is_flagged_after_a_crash(life: Life) -> None:
    life.confirm()
    life.client.consume("q")
    publish_all(life, 20)
    life.crash()
    assert life.drain() == flagged(20)


def test_the_mark_of_a_get_is_kept_for_so_many_gets(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classic, "LOGGED_AHEAD", 30)
    publish_all(life, 50)
    assert life.get(ack=False) is not None
    life.write()
    written = life.store._writer.written_bytes
    for _ in range(20):
        assert life.get(ack=False) is not None
    life.write()
    assert life.store._writer.written_bytes == written
    life.crash()
    assert life.drain() == flagged(31) + unflagged(19, 31)


def test_what_came_in_behind_the_last_consumer_is_new(life: Life) -> None:
    publish_all(life, 3)
    life.client.consume("q", "c")
    life.client.call("Basic.Cancel", consumer_tag="c")
    publish_all(life, 3, first=3)
    life.crash()
    assert life.drain() == flagged(3) + unflagged(3, 3)


def test_a_delivery_that_no_commit_followed_is_flagged(life: Life) -> None:
    publish_all(life, 3)
    life.write()
    assert len(bodies(life.client.consume("q"))) == 3
    life.write()
    life.crash()
    assert life.drain() == flagged(3)


# -- rules


def ttl(**arguments: Any) -> dict[str, Any]:
    return {"arguments": arguments}


def test_a_queue_ttl_counts_from_the_arrival(life: Life) -> None:
    life.declare("ttl", **ttl(**{"x-message-ttl": 60_000}))
    life.publish(b"one", "ttl")
    life.turns(1, each_ms=20_000)
    life.publish(b"two", "ttl")
    life.restart()
    life.turns(2, each_ms=19_990)
    assert life.queue("ttl").ready_count == 2
    life.turns(2, each_ms=20)
    assert life.bodies("ttl") == [b"two"]


def test_a_message_ttl_counts_from_the_arrival(life: Life) -> None:
    own = {"delivery_mode": 2, "expiration": "60000"}
    life.publish(b"long")
    life.publish(b"short", properties=own)
    life.publish(b"behind")
    life.write()
    life.clock.advance(49_000)
    life.crash()
    life.turns(1, each_ms=9_990)
    assert life.queue("q").ready_count == 3
    life.turns(2, each_ms=1_000)
    assert life.bodies() == [b"long", b"behind"]


def test_what_expired_meanwhile_is_gone_after_the_restart(life: Life) -> None:
    life.declare("ttl", **ttl(**{"x-message-ttl": 60_000}))
    publish_all(life, 5, "ttl")
    life.stop()
    life.clock.advance(61_000)
    life.open()
    life.turns(2, each_ms=1)
    assert life.queue("ttl").ready_count == 0
    life.restart()
    assert life.queue("ttl").ready_count == 0


def test_queues_with_a_ttl_are_read_behind_the_start(
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
        life.declare(name, **ttl(**arguments))
        life.publish(name.encode(), name)
    life.turns(1, each_ms=50_000)
    for name in queues:
        life.publish(b"young", name)
    life.stop()
    threads: list[threading.Thread] = []
    plain = Reader.read

    def read(self: Reader, segment: int, offset: int, size: int) -> memoryview:
        threads.append(threading.current_thread())
        return plain(self, segment, offset, size)

    monkeypatch.setattr(Reader, "read", read)
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


def test_a_queue_that_refuses_by_bytes_is_read_behind_the_start(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is, it takes as much as its limit beside what it had. The first publish has it read
    before all that nobody waits for."""
    life.declare("full", **ttl(**{"x-max-length-bytes": 12, "x-overflow": "reject-publish"}))
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


def test_a_limit_reads_nothing_before_something_is_over_it(life: Life) -> None:
    life.declare("limited", **ttl(**{"x-max-length": 3}))
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
    life.declare("ttl", **ttl(**{"x-message-ttl": 60_000}))
    life.publish(b"one", "ttl")
    life.stop()
    life.clock.step(set_by_s)
    life.open()
    life.turns(2, each_ms=left_ms // 2 - 5)
    assert life.queue("ttl").ready_count == 1
    life.turns(3, each_ms=10)
    assert life.queue("ttl").ready_count == 0


def test_an_idle_queue_gets_its_full_time_again(life: Life) -> None:
    life.declare("idle", **ttl(**{"x-expires": 60_000}))
    life.turns(1, each_ms=50_000)
    life.restart()
    life.turns(1, each_ms=59_000)
    assert "idle" in life.broker.vhosts["/"].queues
    life.turns(2, each_ms=1_001)
    assert "idle" not in life.broker.vhosts["/"].queues
    life.restart()
    assert "idle" not in life.broker.vhosts["/"].queues


def test_a_length_limit_counts_what_is_there_after_a_restart(life: Life) -> None:
    life.declare("short", **ttl(**{"x-max-length": 5}))
    publish_all(life, 5, "short")
    life.restart()
    publish_all(life, 2, "short", first=5)
    assert life.bodies("short") == numbered(5, 2)


def test_a_length_limit_in_bytes_counts_what_is_there_after_a_restart(life: Life) -> None:
    life.declare("short", **ttl(**{"x-max-length-bytes": 30}))
    publish_all(life, 5, "short")
    life.crash()
    assert life.classic("short").ready_bytes == 30
    publish_all(life, 2, "short", first=5)
    assert life.bodies("short") == numbered(5, 2)
    assert life.classic("short").ready_bytes == 0


def test_a_full_queue_refuses_right_after_a_restart(life: Life) -> None:
    life.declare("full", **ttl(**{"x-max-length": 2, "x-overflow": "reject-publish"}))
    publish_all(life, 2, "full")
    life.restart()
    life.confirm()
    assert names(life.publish(b"three", "full")) == ["Basic.Nack"]


# -- dead letters


def dead_lettering(life: Life) -> None:
    life.declare("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    life.declare("source", arguments=arguments)
    publish_all(life, 10, "source")
    life.write()


def test_dead_letters_are_in_one_place_after_a_crash(life: Life) -> None:
    dead_lettering(life)
    for _ in range(4):
        life.get("source", ack=False)
    life.client.send("Basic.Nack", delivery_tag=3, multiple=True)
    life.write()
    life.crash()
    assert life.bodies("dead") == numbered(3)
    assert life.bodies("source") == numbered(7, 3)


def test_a_dead_letter_is_moved_wholly_or_not_at_all(life: Life, tmp_path: Path) -> None:
    """The file is cut at every record that the move has written."""
    dead_lettering(life)
    length = life.store._writer._end
    life.get("source", ack=False)
    life.client.send("Basic.Nack", delivery_tag=1)
    life.write()
    end = life.store._writer._end
    segment = life.directory / life.files()[-1]
    whole = segment.read_bytes()
    life.abandon()
    for cut in {*range(length, end, 7), end}:
        copy = tmp_path / f"cut{cut}"
        copy.mkdir()
        for path in life.directory.iterdir():
            (copy / path.name).write_bytes(path.read_bytes())
        (copy / segment.name).write_bytes(whole[:cut])
        found = Life(copy)
        places = found.bodies("source") + found.bodies("dead")
        assert sorted(places) == numbered(10)
        found.abandon()


def test_a_crash_at_commit_ok_finds_the_dead_letters_of_the_transaction(life: Life) -> None:
    life.declare("d", **ttl(**{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}))
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


def test_what_was_got_comes_back_redelivered_after_a_kill(
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
