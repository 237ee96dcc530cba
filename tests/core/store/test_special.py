"""Messages with an expiration or a priority, which are never in paged-out ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.core.store.test_paging import count
from tests.support.amqp import make_broker, take_turns
from warrenmq.core.message.queue_entry import PagedOut
from warrenmq.core.store import codec, read_size
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.store.work import Worker
from warrenmq.core.wire import properties as wire
from warrenmq.core.wire.properties import intern_attributes

URGENT = {**PERSISTENT, "priority": 3}
TIMED = {**PERSISTENT, "expiration": "600000"}
SPECIAL = pytest.mark.parametrize("properties", [URGENT, TIMED], ids=["priority", "expiration"])
Again = Callable[[Life], object]


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log", segment_bytes=3_000)
    found.declare("kept", arguments={"x-max-priority": 10})
    found.declare("churn")
    yield found
    found.abandon()


def fill(life: Life, properties: Mapping[str, object], special_at: int, count: int) -> None:
    """One record each; all but one are plain."""
    for number, body in enumerate(numbered(count)):
        life.publish(body, "kept", properties if number == special_at else PERSISTENT)
    life.write()


def held(life: Life) -> list[tuple[type, int]]:
    """What memory has of the queue, in order."""
    return [(type(part), part.count) for part in life.classic("kept").backlog]


@pytest.mark.parametrize(
    ("priority", "expiration", "special"),
    [
        (0, None, 0),
        (1, None, wire.RANKED),
        (255, None, wire.RANKED),
        (0, "5", wire.TIMED),
        (9, "5", 3),
    ],
)
def test_properties_that_make_a_message_special(
    priority: int, expiration: str | None, special: int
) -> None:
    for persistent in (False, True):
        attributes = intern_attributes(persistent, priority, expiration, False)
        assert attributes.special == special


@pytest.mark.parametrize("again", [Life.restart, Life.crash])
def test_priority_matters_only_in_priority_queues(tmp_path: Path, again: Again) -> None:
    """JMS clients send one with each message."""
    life = Life(tmp_path / "log", segment_bytes=3_000)
    life.declare("kept")
    for body in numbered(100):
        life.publish(body, "kept", URGENT)
    life.write()
    life.page_out("kept")
    assert {kind for kind, _ in held(life)} == {PagedOut}
    again(life)
    assert {kind for kind, _ in held(life)} == {PagedOut}
    assert life.bodies("kept") == numbered(100)
    life.abandon()


@SPECIAL
def test_a_start_reads_no_message(
    life: Life, properties: Mapping[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are looked at when the server has begun to serve, a chunk at a time, or when somebody
    asks for them."""
    monkeypatch.setattr(read_size, "CHUNK_RECORDS", 7)
    fill(life, properties, 30, 60)
    decoded = count(monkeypatch, codec, "_read_batch")
    life.stop()
    life.clock.restart()
    store = DurableStore(life.disk, clock=life.clock, segment_bytes=life.segment_bytes)
    broker = make_broker(store, life.clock)
    broker.restore()
    queue = broker.vhosts["/"].queues["kept"]
    assert not decoded and queue.paged_out_count == queue.ready_count == 60
    take_turns(broker)
    assert 0 < len(decoded) < 60
    life.clock.advance(600_001)
    take_turns(broker)
    assert queue.ready_count == (59 if "expiration" in properties else 60)
    store.stop()


@pytest.mark.parametrize("again", [Life.stop, Life.abandon])
def test_priority_order_holds_from_the_first_message(
    life: Life, again: Again, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also beside what comes in before what was there is read."""
    for number, priority in enumerate((0, 3, 0, 9, 3, 0)):
        life.publish(b"%d" % number, "kept", {**PERSISTENT, "priority": priority})
    life.write()
    again(life)
    monkeypatch.setattr(read_size, "CHUNK_RECORDS", 2)
    jobs: list[tuple[Any, Any]] = []
    monkeypatch.setattr(Worker, "run", lambda self, job, done: jobs.append((job, done)))
    life.open()
    life.client.send("Basic.Get", queue="kept", no_ack=True)
    life.client = life.connect()
    for number, priority in ((6, 3), (7, 9), (8, 0)):
        life.publish(b"%d" % number, "kept", {**PERSISTENT, "priority": priority})
    declared = life.client.call("Queue.Declare", queue="kept", passive=True)
    assert declared["message_count"] == 9
    assert life.queue("kept").paged_out_count == 6
    monkeypatch.undo()
    for job, done in jobs:
        done(job())
    life.turns()
    assert life.queue("kept").ready_count == 8
    assert life.bodies("kept") == [b"%d" % number for number in (7, 1, 4, 6, 0, 2, 5, 8)]
