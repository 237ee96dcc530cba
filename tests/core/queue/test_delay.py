"""The inner queue of a delayed exchange, on a manual clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

import pytest

from tests.support.manual_store import ManualStore
from warrenmq.core.message.batch import SingleMessage
from warrenmq.core.message.envelope import envelope
from warrenmq.core.message.model import Properties
from warrenmq.core.message.queue_entry import MessageRange, PagedOut, QueueEntry, RangeLocation
from warrenmq.core.queue.delay import RELEASED, RELEASES_AT_ONCE, DelayQueue
from warrenmq.core.store.port import PageIn
from warrenmq.core.wire import properties as wire

from .support import FakeContext


class Range(RangeLocation):
    """A paged-out message, in memory."""

    def __init__(self, messages: MessageRange) -> None:
        self.messages = messages


class SlowPageIn(PageIn):
    """Paged-out ranges arrive with the batches of a store."""

    def __init__(self, store: ManualStore) -> None:
        self._batches = store.batches

    def request(
        self,
        paged_out: PagedOut,
        ready: Callable[[Sequence[MessageRange]], None],
        *,
        is_urgent: bool = True,
    ) -> None:
        assert isinstance(paged_out.location, Range)
        messages = paged_out.location.messages

        def arrive() -> None:
            paged_out.count = 0
            ready([messages])

        self._batches.reads.append((messages.entry.batch, arrive))


def delay_queue(context: FakeContext) -> DelayQueue:
    return DelayQueue("delay\nx", "/", context, 1, durable=True)


def run(context: FakeContext, delay_ms: int, came_ms: int | None = None) -> QueueEntry:
    raw = wire.encode(Properties(headers={"x-delay": delay_ms}))
    number = context.store.reserve(1)
    at_ms = context.now_ms if came_ms is None else came_ms
    return QueueEntry(SingleMessage(envelope("x", "k"), raw, b"", number, wire.PLAIN, at_ms), None)


def released(context: FakeContext) -> list[int]:
    assert {reason for _, reason in context.dead_letters} <= {RELEASED}
    return [number for number, _ in context.dead_letters]


def test_a_turn_releases_a_bounded_number(context: FakeContext) -> None:
    queue = delay_queue(context)
    count = 2 * RELEASES_AT_ONCE + 10
    for _ in range(count):
        queue.enqueue(run(context, 5))
    context.now_ms += 5
    assert queue.dispatch(100_000)
    assert len(released(context)) == RELEASES_AT_ONCE
    while queue.dispatch(100_000):
        pass
    assert released(context) == list(range(1, count + 1))


@pytest.mark.parametrize(("count", "paged_out"), [(2, 0), (2, 1), (2, 2), (600, 0)])
def test_nothing_is_released_before_all_is_read(count: int, paged_out: int) -> None:
    store = ManualStore(first_sequence=1)
    store.page_in = SlowPageIn(store)
    context = FakeContext(store=store)
    queue = delay_queue(context)
    recovered: list[PagedOut | MessageRange] = []
    for number in range(count):
        messages = MessageRange(run(context, 500, came_ms=400 - number), 0, 1)
        batch = messages.entry.batch
        store.batches.written[batch] = copy(batch)
        store.batches.evict(batch)
        recovered.append(PagedOut(1, Range(messages)) if number < paged_out else messages)
    queue.recover(recovered)
    while store.reads:
        queue.enqueue(run(context, 1))
        context.wait(10)
        assert released(context) == []
        store.arrive()
    context.turn()
    assert released(context)[:count] == list(range(count, 0, -1))


def test_an_unreadable_message_delays_no_other() -> None:
    store = ManualStore(first_sequence=1)
    context = FakeContext(store=store)
    queue = delay_queue(context)
    lost, kept = run(context, 5), run(context, 5)
    for single in (lost, kept):
        single.batch.resident = False
    queue.recover([MessageRange(single, 0, 1) for single in (lost, kept)])
    for batch, ready in store.take_reads():
        batch.resident = batch is kept.batch
        ready()
    context.wait(5)
    assert (released(context), queue.ready_count) == ([2], 0)


def test_a_deleted_delay_queue_has_no_timer(context: FakeContext) -> None:
    queue = delay_queue(context)
    for delay_ms in (500, 50_000):
        queue.enqueue(run(context, delay_ms))
    queue.deleted = True
    assert queue.purge() == 2
    assert context.timers.next_ms is None
    context.wait(100_000)
    assert released(context) == []
