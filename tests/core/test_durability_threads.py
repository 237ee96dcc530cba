"""The durable store with its real threads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.amqp import Reply, method, publish

from .life import PERSISTENT, TRANSIENT, Life, acks, numbered

pytestmark = pytest.mark.promise

SEGMENT_BYTES = 20_000


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log", segment_bytes=SEGMENT_BYTES)
    found.declare("q")
    found.start()
    yield found
    found.abandon()


class Receiver:
    """Keeps what a client has been sent."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self.client = life.connect()
        self.replies: list[Reply] = []

    def send(self, data: bytes) -> None:
        self.replies += self.client.feed(data)

    def wait(self, name: str, count: int) -> list[Reply]:
        """Until so many of a kind have come, acks counted with all that they stand for."""

        def reached() -> bool:
            self.replies += self.client.come()
            return self._count(name) >= count

        self._life.wait(reached)
        return [reply for reply in self.replies if reply.name == name]

    def _count(self, name: str) -> int:
        if name == "Basic.Ack":
            return max((tag for tag, _ in acks(self.replies)), default=0)
        return sum(reply.name == name for reply in self.replies)


def data_of(bodies: list[bytes], queue: str = "q") -> bytes:
    return b"".join(publish(1, body, PERSISTENT, routing_key=queue) for body in bodies)


def fill(life: Life, count: int, *, batch: int = 50) -> None:
    publisher = Receiver(life)
    publisher.send(method(1, "Confirm.Select"))
    for first in range(0, count, batch):
        publisher.send(data_of(numbered(min(batch, count - first), first)))
    publisher.wait("Basic.Ack", count)
    tags = [tag for tag, _ in acks(publisher.replies)]
    assert tags == sorted(set(tags))


def test_a_paged_out_queue_is_consumed(life: Life) -> None:
    fill(life, 3_000)
    life.wait(lambda: life.store.progress.behind_bytes == 0)
    life.page_out()
    assert life.queue("q").paged_out_count > 2_000
    reader = Receiver(life)
    reader.send(method(1, "Basic.Consume", queue="q", consumer_tag="c", no_ack=True))
    found = reader.wait("Basic.Deliver", 3_000)
    assert [reply.body for reply in found] == numbered(3_000)
    assert life.queue("q").ready_count == 0


@pytest.mark.parametrize("name", ["Queue.Purge", "Queue.Delete"])
def test_queue_is_purged_or_deleted_during_page_in(life: Life, name: str) -> None:
    fill(life, 500)
    life.page_out()
    reader, other = Receiver(life), Receiver(life)
    reader.send(method(1, "Basic.Get", queue="q"))
    other.send(method(1, name, queue="q") + method(1, "Queue.Declare", queue="q", durable=True))
    other.wait("Queue.DeclareOk", 1)
    fill(life, 3)
    life.crash()
    assert life.bodies()[-3:] == numbered(3)
    assert life.queue("q").ready_count == 0


def test_transient_messages_are_paged_out_and_in(life: Life) -> None:
    life.client.declare("t")
    life.publish_together(numbered(2_000), "t", TRANSIENT)
    before = life.broker.memory.resident_bytes
    life.page_out("t", transient=True)
    life.wait(lambda: life.broker.memory.resident_bytes < before // 2)
    reader = Receiver(life)
    reader.send(method(1, "Basic.Consume", queue="t", consumer_tag="c", no_ack=True))
    assert [reply.body for reply in reader.wait("Basic.Deliver", 2_000)] == numbered(2_000)


def test_segments_are_compacted_and_removed(life: Life) -> None:
    """What survives is read while it is moved, again and again."""
    life.declare("kept")
    publisher, reader = Receiver(life), Receiver(life)
    publisher.send(method(1, "Confirm.Select"))
    reader.send(method(1, "Basic.Consume", queue="q", consumer_tag="c", no_ack=True))
    first = life.store.log.open_number

    def round_of(number: int, bodies: list[bytes]) -> None:
        publisher.send(data_of(bodies, "kept") + data_of([bytes(500)] * (20 - len(bodies))))
        publisher.wait("Basic.Ack", 20 * (number + 1))

    for number in range(150):
        round_of(number, numbered(1, number))
        if number % 10 == 5:
            life.page_out("kept")
    assert life.store.log.open_number - first > 50
    for number in range(150, 300):
        round_of(number, [])
    assert len(life.files()) < 50
    life.crash()
    assert life.bodies("kept") == numbered(150)


def test_a_stop_writes_everything(life: Life) -> None:
    life.publish_together(numbered(1_000))
    life.restart()
    assert life.drain() == [(body, False) for body in numbered(1_000)]
