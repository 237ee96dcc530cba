"""x-delivery-limit and x-delayed-retry-type: counting, headers, storage."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.life import Life
from tests.core.messages import batch
from tests.support.amqp import Reply
from warrenmq.core.definitions.facts import DeliveryCounts
from warrenmq.core.definitions.keys import DefinitionKind
from warrenmq.core.message.queue_entry import MessageRange, QueueEntry
from warrenmq.core.queue.queue import Queue
from warrenmq.core.queue.redelivery import (
    ACQUIRED_HEADER,
    COUNT_HEADER,
    RedeliveryCounter,
    ReturnCounts,
)
from warrenmq.core.queue.rules import RetryDelay, Rules
from warrenmq.core.wire.properties import PERSISTENT as LASTING
from warrenmq.core.wire.properties import decode

from .support import FakeContext, publish, ready, sequences, take

COUNT, ACQUIRED = COUNT_HEADER.decode(), ACQUIRED_HEADER.decode()


def counts_of(messages: MessageRange, header: str = COUNT) -> list[int | None]:
    """What a consumer reads of each message."""
    entry = messages.entry
    raw = [entry.batch.properties(entry.index(at)) for at in range(messages.low, messages.high)]
    found: list[Any] = [(decode(properties).headers or {}).get(header) for properties in raw]
    return found


# -- counting


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["failed", "returned", "gone"]), st.integers(0, 9), st.integers(1, 10)
    ),
    min_size=1,
    max_size=12,
)


@given(STEPS, st.booleans())
def test_counts_agree_with_a_table(steps: list[tuple[str, int, int]], quorum: bool) -> None:
    context = FakeContext()
    entry = QueueEntry(batch(10, 100, LASTING), None)
    returns = RedeliveryCounter(context, 1, durable=True, quorum=quorum)
    table = dict.fromkeys(range(100, 110), ReturnCounts(0, 0))
    for step, low, size in steps:
        messages = MessageRange(entry, low, min(10, low + size))
        if step == "gone":
            returns.forget(messages)
            table |= dict.fromkeys(sequences(messages), ReturnCounts(0, 0))
        else:
            failed = step == "failed"
            for number in sequences(messages):
                counted, every = table[number]
                table[number] = ReturnCounts(counted + (failed or not quorum), every + 1)
            parts = list(returns.count_returns(messages, failed=failed))
            assert all(part.redelivered for part, _ in parts)
            assert [(times, *sequences(part)) for part, times in parts] == _alike(table, messages)
        everything = MessageRange(entry, 0, 10, True)
        loaded = RedeliveryCounter(context, 1, durable=True, quorum=quorum)
        for shown in (returns.with_headers(everything), loaded.with_headers(everything)):
            assert counts_of(shown) == [times.counted or None for times in table.values()]
            assert counts_of(shown, ACQUIRED) == [
                times.total or None if quorum else None for times in table.values()
            ]


def _alike(table: dict[int, ReturnCounts], messages: MessageRange) -> list[tuple[object, ...]]:
    """Counts and numbers, of neighbours with the same counts."""
    alike = groupby(sequences(messages), key=lambda number: table[number])
    return [(times, *numbers) for times, numbers in alike]


# -- delayed retries

ALL = RetryDelay("all", 1_000, 3_500)


def retrying(context: FakeContext, delay: RetryDelay = ALL) -> Queue:
    queue = context.queue(durable=True, queue_type="quorum")
    assert queue.rules is not None
    queue.apply(Rules(delivery_limit=-1, max_priority=31, retry_delay=delay))
    return queue


def test_each_return_waits_longer_up_to_a_maximum(context: FakeContext) -> None:
    queue = retrying(context)
    publish(context, queue)
    for wait_ms in (1_000, 2_000, 3_000, 3_500, 3_500):
        (messages,) = take(queue, 1)
        queue.requeue(messages)
        context.wait(wait_ms - 1)
        assert (queue.ready_count, queue.unacked_count) == (0, 0)
        context.wait(1)
        assert ready(queue) == [1]


@pytest.mark.parametrize(
    ("kind", "failed", "given_back"),
    [("all", True, True), ("failed", True, False), ("returned", False, True)],
)
def test_kinds_of_delayed_retry(
    context: FakeContext, kind: str, failed: bool, given_back: bool
) -> None:
    queue = retrying(context, RetryDelay(kind, 10, 10))
    publish(context, queue, 2)
    first, second = (messages for _ in range(2) for messages in take(queue, 1))
    queue.requeue(first, failed=True)
    queue.requeue(second, failed=False)
    assert (1 not in ready(queue), 2 not in ready(queue)) == (failed, given_back)
    context.wait(10)
    assert ready(queue) == [1, 2]


def test_delayed_retries_of_a_deleted_queue_are_forgotten(context: FakeContext) -> None:
    queue = retrying(context)
    publish(context, queue)
    for messages in take(queue, 1):
        queue.requeue(messages)
    queue.deleted = True
    queue.purge()
    assert context.timers.next_ms is None
    context.wait(10_000)
    assert queue.ready_count == 0


# -- on disk, and over AMQP


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log")
    found.declare("dead")
    found.declare("q", arguments=LIMITED)
    yield found
    found.abandon()


LIMITED = {
    "x-delivery-limit": 3, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead",
}  # fmt: skip


def send_back(life: Life, count: int = 1, queue: str = "q") -> list[Reply]:
    """The next messages, got and rejected."""
    found = []
    for _ in range(count):
        reply = life.get(queue, ack=False)
        assert reply is not None
        found.append(reply)
    for reply in found:
        life.client.send("Basic.Reject", delivery_tag=reply["delivery_tag"], requeue=True)
    life.write()
    return found


def facts(life: Life) -> list[bytes]:
    """What the store keeps of counts, of whatever queue."""
    life.write()
    return [key for key in life.store.definitions if key[0] == DefinitionKind.DELIVERY_COUNT]


def test_a_count_is_kept_until_the_dead_letter_is_published(life: Life) -> None:
    life.publish(b"a")
    for _ in range(3):
        send_back(life)
    assert life.get("q", ack=False) is not None
    (piece,) = life.client.connection.channels[1].deliveries.unacked.take_all()
    queue = life.queue("q")
    queue.requeue(piece.messages)
    assert queue.ready_count == 0
    assert list(DeliveryCounts(life.broker.facts, queue.id).load().values()) == [4]
    life.turns()
    assert facts(life) == []
    assert life.bodies("dead") == [b"a"]


@pytest.mark.parametrize(
    "ends",
    ["Ack", "Reject", "Nack", "purge", "delete", "expired", "maxlen", "no ack"],
)
def test_messages_that_end_leave_no_count(life: Life, ends: str) -> None:
    life.declare("other", arguments={**LIMITED, "x-message-ttl": 1_000, "x-max-length": 2})
    for body in (b"a", b"b"):
        life.publish(body, "other")
    send_back(life, 2, "other")
    assert len(facts(life)) == 2
    match ends:
        case "purge":
            life.purge("other")
        case "delete":
            life.client.call("Queue.Delete", queue="other")
        case "expired":
            life.turns(3, each_ms=500)
        case "maxlen":
            for body in (b"c", b"d"):
                life.publish(body, "other")
        case "no ack":
            life.bodies("other")
        case _:
            for reply in (life.get("other", ack=False) for _ in range(2)):
                assert reply is not None
                life.client.send(f"Basic.{ends}", delivery_tag=reply["delivery_tag"])
    life.turns()
    assert facts(life) == []
