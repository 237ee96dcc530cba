"""The pager: which messages are paged out, when, and how many."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.amqp import publish
from warrenmq.core import slices
from warrenmq.core.message import batch
from warrenmq.core.message.queue_entry import MessageRange
from warrenmq.core.queue.backlog import STEP_RANGES
from warrenmq.core.resources import alarms as alarms_module
from warrenmq.core.resources import pager
from warrenmq.core.resources.alarms import Bounds, Reading
from warrenmq.core.store import record_cache as recent

from ..life import PERSISTENT, TRANSIENT, Life

KIB = 1024
BUDGET = 64 * KIB
HEAD = 4 * KIB
READ_HEAD = 16 * KIB
SIZE = 1_000
BESIDE = 600
"""What a message takes beside its bytes, in these tests."""
PREFETCH = 2


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    monkeypatch.setattr(batch, "BATCH_BYTES", BESIDE)
    monkeypatch.setattr(batch, "STORED_BYTES", 0)
    monkeypatch.setattr(pager, "KEPT_BUDGET_BYTES", BUDGET)
    monkeypatch.setattr(pager, "TRANSIENT_BUDGET_BYTES", 4 * BUDGET)
    monkeypatch.setattr(pager, "_UNREAD_HEAD_BYTES", HEAD)
    monkeypatch.setattr(pager, "_READ_HEAD_BYTES", READ_HEAD)
    monkeypatch.setattr(pager, "_STEP_BYTES", 8 * KIB)
    found = Life(tmp_path / "log")
    for name in ("a", "b", "c"):
        found.declare(name)
    yield found
    found.abandon()


def body(number: int) -> bytes:
    return b"%0*d" % (SIZE, number)


def fill(life: Life, queue: str, count: int, first: int = 0, *, transient: bool = False) -> None:
    properties = TRANSIENT if transient else PERSISTENT
    for number in range(first, first + count):
        life.client.feed(publish(1, body(number), properties, routing_key=queue))
        life.clock.advance(10)
    life.write()


def in_memory(life: Life, queue: str) -> int:
    return sum(
        held.count
        for held in life.classic(queue).backlog
        if isinstance(held, MessageRange) and held.entry.batch.resident
    )


def unacked(life: Life) -> list[MessageRange]:
    return list(life.client.connection.channels[1].deliveries.unacked.ranges())


def taken(life: Life, queue: str) -> bool:
    found = life.queue(queue)
    return in_memory(life, queue) < found.ready_count


def test_messages_are_paged_out_beyond_the_budget(life: Life) -> None:
    largest = 0
    for first in range(0, 400, 20):
        fill(life, "a", 20, first)
        largest = max(largest, life.broker.memory.resident_bytes)
    assert largest <= BUDGET + 30 * (SIZE + 700)
    assert life.queue("a").ready_count == 400
    assert life.queue("a").paged_out_count > 300
    assert [found[:SIZE] for found in life.bodies("a")] == [body(number) for number in range(400)]
    assert life.broker.memory.resident_bytes == 0


def test_the_largest_queue_is_paged_out_first(life: Life) -> None:
    fill(life, "a", 8)
    fill(life, "b", 12)
    fill(life, "c", 8)
    fill(life, "b", 15, 12)
    assert taken(life, "b")
    assert not taken(life, "c")
    assert not taken(life, "a")


def test_queues_without_consumers_are_paged_out_first(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pager, "_UNREAD_HEAD_BYTES", 0)
    life.client.call("Basic.Qos", prefetch_count=PREFETCH)
    life.client.consume("b")
    fill(life, "b", 17)
    fill(life, "c", 9)
    fill(life, "a", 14)
    assert taken(life, "a")
    assert not taken(life, "b")


def test_the_newest_messages_are_paged_out_first(life: Life) -> None:
    fill(life, "a", 100)
    first = next(iter(life.classic("a").backlog))
    assert isinstance(first, MessageRange)
    assert first.entry.batch.resident
    assert in_memory(life, "a") >= HEAD // (SIZE + 100) - 1


def test_a_consumed_queue_keeps_a_longer_front(life: Life) -> None:
    life.client.call("Basic.Qos", prefetch_count=PREFETCH)
    life.client.consume("a")
    fill(life, "a", 100)
    assert READ_HEAD // (SIZE + 100) - 1 <= in_memory(life, "a") < 100


def test_unacked_messages_are_paged_out_last_oldest_first(life: Life) -> None:
    life.client.consume("a")
    fill(life, "a", 80)
    held = [messages.entry.batch.resident for messages in unacked(life)]
    assert held == sorted(held)
    assert 0 < held.count(True) < 80
    life.client.call("Basic.Cancel", consumer_tag="c")
    life.client.send("Basic.Nack", delivery_tag=0, multiple=True, requeue=True)
    assert life.drain("a") == [(body(number), True) for number in range(80)]
    assert life.broker.memory.resident_bytes == 0


def test_ready_messages_are_paged_out_before_unacked_ones(life: Life) -> None:
    life.client.call("Basic.Qos", prefetch_count=10)
    life.client.consume("a")
    fill(life, "a", 10)
    fill(life, "b", 60)
    assert taken(life, "b")
    assert all(messages.entry.batch.resident for messages in unacked(life))


def test_paging_stops_at_half_of_the_budget(life: Life) -> None:
    fill(life, "a", 55)
    found = []
    for number in range(55, 200):
        fill(life, "a", 1, number)
        found.append(life.broker.memory.resident_bytes)
    steps = sum(after < before for before, after in pairwise(found))
    assert 1 <= steps <= 10
    assert min(found) <= BUDGET // 2


def test_transient_messages_have_a_larger_budget(life: Life) -> None:
    fill(life, "a", 80, transient=True)
    assert not taken(life, "a")
    fill(life, "a", 200, 80, transient=True)
    life.turns()
    assert taken(life, "a")
    assert life.broker.memory.resident_bytes < 4 * BUDGET
    found = life.bodies("a")
    assert found == [body(number) for number in range(280)]
    assert life.broker.memory.resident_bytes == 0


@pytest.mark.parametrize("consumed", [True, False], ids=["unacked", "ready"])
def test_slices_do_not_grow_with_memory(
    life: Life, monkeypatch: pytest.MonkeyPatch, consumed: bool
) -> None:
    monkeypatch.setattr(pager, "KEPT_BUDGET_BYTES", 1024 * KIB)
    if consumed:
        life.client.consume("a")
    fill(life, "a", 500)
    monkeypatch.setattr(pager, "KEPT_BUDGET_BYTES", BUDGET)
    monkeypatch.setattr(slices, "SLICE_S", -1)
    memory = life.broker.memory
    gone: list[int] = []
    while not gone or life.broker.pager.is_busy:
        before = memory.resident_bytes
        life.broker.turn()
        gone.append(before - memory.resident_bytes)
    assert sum(gone) > 300 * SIZE
    assert max(gone) <= STEP_RANGES * (SIZE + 800)


def test_the_cache_is_emptied_before_an_alarm(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "DROPPED_AT_ONCE", 10)
    fill(life, "a", 50)
    life.restart()
    assert len(life.bodies("a")) == 50
    alarms, cache = life.broker.alarms, life.store.cache
    assert alarms.used_bytes == cache.size_bytes > 50 * SIZE
    alarms.bounds = Bounds(memory=cache.max_bytes * alarms_module.CACHE_SHARE)
    assert alarms.ceiling_bytes > cache.size_bytes
    alarms.measure(Reading(other_bytes=alarms.bounds.memory - 25 * SIZE))
    sizes = [cache.size_bytes]
    for _ in range(6):
        life.broker.turn()
        sizes.append(cache.size_bytes)
        assert not alarms.any
    assert sizes[0] > sizes[1] > sizes[2]
    assert 0 < cache.size_bytes <= 25 * SIZE


def test_a_small_memory_limit_makes_a_small_cache(life: Life) -> None:
    fill(life, "a", 50)
    life.restart()
    life.broker.alarms.bounds = Bounds(memory=160 * KIB)
    assert len(life.bodies("a")) == 50
    assert 0 < life.store.cache.size_bytes <= 20 * KIB
