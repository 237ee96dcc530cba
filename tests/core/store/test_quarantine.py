"""Messages whose queue definition was lost: kept, moved or dropped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.life import Life, numbered
from warrenmq.core.definitions.keys import is_fact
from warrenmq.core.definitions.kinds import QueueDefinition
from warrenmq.core.store.offline import OfflineLog


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path / "log")
    yield life
    life.abandon()


def lose_definition(life: Life, name: str) -> int:
    """Damages the record that defines a queue, in the log of a killed process; returns its id."""
    queue = life.queue(name)
    life.abandon()
    arguments = dict(queue.arguments)
    key = QueueDefinition("/", name, queue.id, False, arguments).key()
    for file in life.files():
        path = life.directory / file
        data = bytearray(path.read_bytes())
        if (at := data.find(key)) >= 0:
            data[at + 3] ^= 1
            path.write_bytes(data)
            return queue.id
    raise AssertionError(f"queue {name} is defined in the log")


def fill_and_lose(life: Life, count: int = 5) -> int:
    life.declare("q")
    life.declare("other")
    life.client.call("Queue.Bind", queue="q", exchange="amq.fanout")
    for body in numbered(count):
        life.publish(body)
    life.publish(b"other", "other")
    life.write()
    return lose_definition(life, "q")


def test_quarantined_messages_outlast_every_start(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    queue_id = fill_and_lose(life)
    for start in range(4):
        caplog.clear()
        life.open()
        assert life.store.recovered.quarantine == {queue_id: 5}
        assert len(life.broker.set_aside) == 1
        assert f"5 messages have no queue (queue id {queue_id})" in caplog.text
        life.publish(b"new", "other")
        assert life.queue("other").ready_count == start + 2
        life.write()
        if start % 2:
            life.stop()
        else:
            life.abandon()
    assert [
        messages.entry.batch.body(0) for messages in OfflineLog(life.disk).messages(queue_id)
    ] == (numbered(5))
    life.open()


def test_recreated_queue_does_not_get_quarantined_messages(life: Life) -> None:
    queue_id = fill_and_lose(life)
    life.open()
    life.declare("q")
    assert life.bodies() == []
    life.client.call("Queue.Delete", queue="q")
    life.restart()
    assert life.store.recovered.quarantine == {queue_id: 5}


def test_moved_messages_are_the_last_of_their_new_queue(life: Life) -> None:
    queue_id = fill_and_lose(life, 300)
    life.open()
    life.declare("q")
    target = life.queue("q").id
    life.publish(b"before")
    life.stop()
    log = OfflineLog(life.disk)
    assert log.counts()[queue_id] == 300
    assert log.move(queue_id, target, {}) == 300
    life.open()
    assert life.store.recovered.quarantine == {}
    assert life.bodies() == [b"before", *numbered(300)]
    life.restart()
    assert life.bodies() == []


def test_dropped_messages_are_gone(life: Life) -> None:
    queue_id = fill_and_lose(life)
    OfflineLog(life.disk).drop(queue_id)
    life.open()
    assert life.store.recovered.quarantine == {}
    assert life.queue("other").ready_count == 1


def test_facts_of_quarantined_messages_are_kept(life: Life) -> None:
    life.declare("q", arguments={"x-queue-type": "quorum"})
    life.publish(b"came back")
    reply = life.get(ack=False)
    assert reply is not None
    life.client.send("Basic.Reject", delivery_tag=reply["delivery_tag"], requeue=True)
    life.write()
    lose_definition(life, "q")
    for _ in range(3):
        life.open()
        assert sum(map(is_fact, life.store.definitions)) == 1
        life.stop()
    life.open()
