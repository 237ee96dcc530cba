"""The queue behind an exchange that delays, without its exchange; time is the house's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from warrenmq.core.message.batch import (
    Batch,
    MessageRange,
    PagedOut,
    QueueEntry,
    SingleMessage,
    envelope,
)
from warrenmq.core.message.model import Properties
from warrenmq.core.queue.delay import RELEASED, RELEASES_AT_ONCE, DelayQueue
from warrenmq.core.wire import properties as wire

from .support import House, NotingStore


class SlowStore(NotingStore):
    """Reads arrive when it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[Callable[[], None]] = []
        self.lost: Batch | None = None

    def fetch(self, batch: Batch, ready: Callable[[], None]) -> None:
        def arrive() -> None:
            batch.resident = batch is not self.lost
            ready()

        self.reads.append(arrive)

    def page_in(
        self,
        paged_out: PagedOut,
        ready: Callable[[Sequence[MessageRange]], None],
        *,
        is_urgent: bool = True,
    ) -> None:
        def arrive() -> None:
            ranges = paged_out.location
            assert isinstance(ranges, list)
            paged_out.count = 0
            ready(ranges)

        self.reads.append(arrive)

    def arrive(self) -> None:
        reads, self.reads = self.reads, []
        for read in reads:
            read()


def delay_queue(house: House) -> DelayQueue:
    return DelayQueue("delay\nx", "/", house, 1, durable=True)


def run(house: House, delay_ms: int, came_ms: int | None = None) -> QueueEntry:
    raw = wire.encode(Properties(headers={"x-delay": delay_ms}))
    number = house.store.reserve(1)
    at_ms = house.now_ms if came_ms is None else came_ms
    return QueueEntry(SingleMessage(envelope("x", "k"), raw, b"", number, wire.PLAIN, at_ms), None)


def released(house: House) -> list[int]:
    assert {reason for _, reason in house.dead_letters} <= {RELEASED}
    return [number for number, _ in house.dead_letters]


def test_they_leave_by_their_times() -> None:
    house = House()
    queue = delay_queue(house)
    for delay_ms in (3_000, 1_000, 2_000, 1_000):
        queue.enqueue(run(house, delay_ms))
    house.wait(999)
    assert (released(house), queue.ready_count) == ([], 4)
    house.wait(1)
    assert released(house) == [2, 4]
    house.wait(2_000)
    assert (released(house), queue.ready_count) == ([2, 4, 3, 1], 0)
    assert house.timers.next_ms is None


def test_a_turn_lets_a_bounded_number_go() -> None:
    house = House()
    queue = delay_queue(house)
    count = 2 * RELEASES_AT_ONCE + 10
    for _ in range(count):
        queue.enqueue(run(house, 5))
    house.now_ms += 5
    assert queue.dispatch(100_000)
    assert len(released(house)) == RELEASES_AT_ONCE
    while queue.dispatch(100_000):
        pass
    assert released(house) == list(range(1, count + 1))


@pytest.mark.parametrize("kind", ["stretch", "singles", "both", "many"])
def test_nothing_goes_out_before_all_is_known(kind: str) -> None:
    """What came before the start may be due before what comes now."""
    store = SlowStore()
    house = House(store=store)
    queue = delay_queue(house)
    count = 600 if kind == "many" else 2
    entries = [run(house, 500, came_ms=400 - number) for number in range(count)]
    held: list[PagedOut | MessageRange] = [MessageRange(single, 0, 1) for single in entries]
    if kind in ("stretch", "both"):
        held[0] = PagedOut(1, [held[0]])
    if kind == "stretch":
        held[1] = PagedOut(1, [held[1]])
    for part in held:
        if isinstance(part, MessageRange):
            part.entry.batch.resident = False
    queue.recover(held)
    while store.reads:
        queue.enqueue(run(house, 1))
        house.wait(10)
        assert released(house) == []
        store.arrive()
    house.turn()
    assert released(house)[:count] == list(range(count, 0, -1))


def test_a_message_that_cannot_be_read_holds_nobody() -> None:
    store = SlowStore()
    house = House(store=store)
    queue = delay_queue(house)
    lost, kept = run(house, 5), run(house, 5)
    for single in (lost, kept):
        single.batch.resident = False
    queue.recover([MessageRange(single, 0, 1) for single in (lost, kept)])
    store.lost = lost.batch
    store.arrive()
    house.wait(5)
    assert (released(house), queue.ready_count) == ([2], 0)


def test_a_queue_that_has_ended_has_no_appointments() -> None:
    house = House()
    queue = delay_queue(house)
    for delay_ms in (500, 50_000):
        queue.enqueue(run(house, delay_ms))
    queue.deleted = True
    assert queue.purge() == 2
    assert house.timers.next_ms is None
    house.wait(100_000)
    assert released(house) == []
