"""Messages by due time, against a sorted list."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from tests.core.held import held_of
from tests.core.messages import batch
from warrenmq.core.message.batch import Batch
from warrenmq.core.message.queue_entry import MessageRange, QueueEntry
from warrenmq.core.queue.due import AHEAD_MS, DueHeap

from .support import sequences


def single(sequence: int) -> MessageRange:
    return MessageRange(QueueEntry(batch(1, sequence), None), 0, 1)


def taken(due: DueHeap, now_ms: int, limit: int = 1_000) -> list[int]:
    """The numbers of all that are due, having filtered at so many at once."""
    found = []
    more = True
    while more:
        more = due.promote_due_soon(now_ms, limit)[1]
        while (messages := due.take(now_ms)) is not None:
            found += sequences(messages)
    return found


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 4 * AHEAD_MS)),
        st.tuples(st.just("wait"), st.integers(0, 3 * AHEAD_MS)),
        st.tuples(st.just("empty"), st.integers(0, 50)),
    ),
    max_size=60,
)


@given(STEPS, st.integers(1, 5))
def test_messages_are_taken_by_due_time(steps: list[tuple[str, int]], limit: int) -> None:
    due, now_ms = DueHeap(), 10_000
    ranges: dict[int, MessageRange] = {}
    times: dict[int, int] = {}
    for action, number in steps:
        if action == "add":
            sequence = len(ranges) + 1
            ranges[sequence] = single(sequence)
            times[sequence] = now_ms + number
            due.add(times[sequence], ranges[sequence], now_ms)
        elif action == "empty":
            if number in times:
                ranges[number].low = 1
                del times[number]
        else:
            now_ms += number
            expected = sorted((at, which) for which, at in times.items() if at <= now_ms)
            assert taken(due, now_ms, limit) == [which for _, which in expected]
            for _, which in expected:
                del times[which]
        # It comes back in time for the next one, though perhaps for nothing.
        assert not times or (due.next_ms or 0) <= min(times.values())
    assert taken(due, now_ms + 10 * AHEAD_MS, limit) == sorted(
        times, key=lambda at: (times[at], at)
    )
    assert (len(due), due.next_ms) == (0, None)


def test_only_messages_due_soon_are_read() -> None:
    due = DueHeap()
    batches: list[Batch] = []
    for second in range(5):
        messages = single(second)
        batches.append(messages.entry.batch)
        due.add(10_000 + second * 1_000, messages, 0)
        messages.entry.batch.evict()
    assert due.promote_due_soon(0, 100) == ([], False)
    assert due.next_ms == 9_000
    assert due.promote_due_soon(9_000, 100) == (batches[:1], False)
    assert due.promote_due_soon(11_000, 1) == (batches[1:2], True)
    assert due.promote_due_soon(11_000, 1) == (batches[2:3], False)
    assert due.promote_due_soon(11_000, 1) == ([], False)


def test_messages_not_due_soon_are_evicted() -> None:
    due = DueHeap()
    for second in range(5):
        due.add(second * 1_000, single(second), 0)
    evicted: list[int] = []

    def evict(found: Batch, kept: int) -> bool:
        if found.sequence == kept:
            return False
        evicted.append(found.sequence)
        return True

    list(due.evict_not_due_soon(0, partial(evict, kept=4)))
    assert evicted == [2, 3]
    list(due.evict_not_due_soon(0, partial(evict, kept=0)))
    assert evicted == [2, 3, 4], "those have gone, this one could not go yet"


def test_released_messages_are_forgotten() -> None:
    due = DueHeap()
    for number in range(3_000):
        messages = single(number)
        due.add(10 * number + 1_500, messages, 10 * number)
        messages.low = 1
        taken(due, 10 * number)
    assert held_of(due, MessageRange) < 600
