"""Messages that a queue must know one by one, by a time or a priority of their own: they never are
in paged-out ranges, whatever they come back from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.core.queue.support import ranges
from tests.core.store.test_compactor import churn, unmoved
from tests.core.store.test_paging import count
from tests.support.amqp import make_broker, take_turns
from warrenmq.core.message.batch import MessageRange, PagedOut
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


def in_order(properties: Mapping[str, object], special_at: int, count: int) -> list[bytes]:
    """How the bodies come out of a queue with priorities."""
    bodies = numbered(count)
    if "priority" in properties:
        bodies.insert(0, bodies.pop(special_at))
    return bodies


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
def test_which_are(priority: int, expiration: str | None, special: int) -> None:
    for persistent in (False, True):
        attributes = intern_attributes(persistent, priority, expiration, False)
        assert attributes.special == special


@pytest.mark.parametrize("again", [Life.restart, Life.crash])
def test_a_priority_counts_only_where_the_queue_orders_by_it(tmp_path: Path, again: Again) -> None:
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


def test_paging_leaves_them_between_ranges(life: Life) -> None:
    """A queue with something that expires makes no ranges at all."""
    fill(life, URGENT, 4, 10)
    life.page_out("kept")
    assert held(life) == [(MessageRange, 1), (PagedOut, 4), (PagedOut, 5)]
    (messages,) = ranges(life.classic("kept").backlog)
    assert not messages.entry.batch.resident
    assert life.bodies("kept") == in_order(URGENT, 4, 10)


@SPECIAL
@pytest.mark.parametrize("again", [Life.restart, Life.crash])
def test_they_are_known_one_by_one_after_a_restart(
    life: Life, properties: Mapping[str, object], again: Again
) -> None:
    """Of their segment all are; other segments are ranges. Sizes are known, bytes not read."""
    fill(life, properties, 4, 60)
    assert len(life.files()) > 2
    again(life)
    found = held(life)
    assert found[0] == (MessageRange, 1)
    assert found[-1][0] is PagedOut
    special = [
        messages
        for messages in ranges(life.classic("kept").backlog)
        if messages.entry.batch.attributes.special
    ]
    assert [messages.entry.batch.resident for messages in special] == [False]
    assert special[0].body_bytes() == 6
    assert life.bodies("kept") == in_order(properties, 4, 60)


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
def test_priorities_hold_from_the_first_message_on(
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


@SPECIAL
@pytest.mark.parametrize("again", [Life.restart, Life.crash])
def test_a_checkpoint_says_which_segments_have_them(
    life: Life, properties: Mapping[str, object], again: Again
) -> None:
    """Their segment is complete and is not read from its beginning again."""
    fill(life, properties, 0, 1)
    for _ in range(4):
        churn(life, 20, size=100)
    assert life.files(".state")
    again(life)
    again(life)
    assert held(life) == [(MessageRange, 1)]
    (messages,) = ranges(life.classic("kept").backlog)
    attributes = messages.entry.batch.attributes
    assert (attributes.priority, attributes.expiration) == (
        properties.get("priority", 0), properties.get("expiration"),
    )  # fmt: skip


@SPECIAL
def test_moved_ones_are_still_known(life: Life, properties: Mapping[str, object]) -> None:
    fill(life, properties, 0, 1)
    before = unmoved(life)
    churn(life, 60)
    assert not before & set(life.files())
    life.page_out("kept")
    life.crash()
    assert sum(kind is MessageRange for kind, _ in held(life)) >= 1
    special = [
        messages
        for messages in ranges(life.classic("kept").backlog)
        if messages.entry.batch.attributes.special
    ]
    assert [messages.count for messages in special] == [1]
    life.restart()
    assert life.bodies("kept") == numbered(1)


@pytest.mark.parametrize("again", [Life.restart, Life.crash])
def test_those_that_were_settled_stay_away(life: Life, again: Again) -> None:
    """Some of a record, out of order."""
    life.client.call("Queue.Bind", queue="kept", exchange="amq.fanout")
    fill(life, URGENT, 2, 4)
    taken = [life.get("kept", ack=False) for _ in range(4)]
    assert [reply.body for reply in taken if reply] == in_order(URGENT, 2, 4)
    for reply in taken[0:3:2]:
        assert reply is not None
        life.client.send("Basic.Ack", delivery_tag=reply["delivery_tag"])
    life.write()
    again(life)
    assert life.drain("kept") == [(b"000000", True), (b"000003", True)]
