"""Work that needs an index on disk waits for it without blocking others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.core.queue.reading import stream
from tests.support.amqp import method, take_turns
from tests.support.steps import reads_here
from warrenmq.core.queue.rules import Rules
from warrenmq.core.store.work import Worker

COUNT = 40


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    """Queue `q` and stream `s` have so many messages of an earlier process each."""
    life = Life(tmp_path / "log")
    life.declare("q")
    life.declare("s", arguments={"x-queue-type": "stream"})
    for body in numbered(COUNT):
        life.client.publish(body, PERSISTENT, routing_key="q")
        life.client.publish(body, PERSISTENT, routing_key="s")
    life.restart()
    assert life.queue("q").paged_out_count == life.queue("s").paged_out_count == COUNT
    yield life
    life.abandon()


def begin(life: Life, name: str) -> None:
    life.broker.tick()
    life.client.connection.receive(method(1, name, queue="q"))


def left(life: Life) -> int:
    """How many messages the store keeps, but for the stream's."""
    return sum(segment.unsettled for segment in life.store.log.segments.values()) - COUNT


@pytest.mark.parametrize("meanwhile", ["nothing", "delete", "move", "stop", "crash"])
def test_a_purge_that_waits_for_an_index(
    life: Life, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """It takes no turns, whatever happens to its queue until the index is there."""
    deliver = Worker.deliver
    monkeypatch.setattr(Worker, "deliver", lambda _: None)
    begin(life, "Queue.Purge")
    take_turns(life.broker)
    assert left(life) == COUNT
    other = life.connect()
    other.publish(b"late", PERSISTENT, routing_key="q")
    expected = [b"late"]
    if meanwhile == "delete":
        other.call("Queue.Delete", queue="q")
        other.declare("q", durable=True)
        other.publish(b"new", PERSISTENT, routing_key="q")
        expected = [b"new"]
    life.store.flush()
    if meanwhile == "crash":
        life.crash()
        expected = [*numbered(COUNT), b"late"]
    monkeypatch.setattr(Worker, "deliver", deliver)
    if meanwhile == "move":
        life.store.log.roll()
    if meanwhile == "stop":
        life.restart()
    life.write()
    assert left(life) == len(expected)
    life.crash()
    assert life.bodies() == expected


def test_the_broker_reads_no_index_itself(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    here = reads_here(monkeypatch)
    life.start()
    begin(life, "Queue.Purge")
    life.wait(lambda: not left(life))
    stream(life).apply(Rules(max_length_bytes=1_000))
    life.wait(lambda: 0 < stream(life).log.size_bytes <= 1_000)
    assert not here
    life.stop()  # which does what is left itself
