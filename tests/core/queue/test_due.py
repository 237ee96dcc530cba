"""Messages by their times, against a sorted list of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.core.messages import batch
from warrenmq.core.message.batch import Batch, MessageRange, QueueEntry
from warrenmq.core.queue.due import AHEAD_MS, Due

from .support import sequences


def single(sequence: int) -> MessageRange:
    return MessageRange(QueueEntry(batch(1, sequence), None), 0, 1)


def taken(due: Due, now_ms: int, limit: int = 1_000) -> list[int]:
    """The numbers of all that are due, having looked at so many at once."""
    found = []
    more = True
    while more:
        more = due.move_near(now_ms, limit)[1]
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
def test_they_come_by_their_times(steps: list[tuple[str, int]], limit: int) -> None:
    due, now_ms = Due(), 10_000
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


def test_only_what_is_soon_has_to_be_read() -> None:
    due = Due()
    batches: list[Batch] = []
    for second in range(5):
        messages = single(second)
        batches.append(messages.entry.batch)
        due.add(10_000 + second * 1_000, messages, 0)
        messages.entry.batch.evict()
    assert due.move_near(0, 100) == ([], False)
    assert due.next_ms == 9_000
    assert due.move_near(9_000, 100) == (batches[:1], False)
    assert due.move_near(11_000, 1) == (batches[1:2], True)
    assert due.move_near(11_000, 1) == (batches[2:3], False)
    assert due.move_near(11_000, 1) == ([], False)


def test_what_is_not_soon_may_go() -> None:
    due = Due()
    for second in range(5):
        due.add(second * 1_000, single(second), 0)
    evicted: list[int] = []

    def evict(found: Batch) -> bool:
        if found.sequence == 4:
            return False
        evicted.append(found.sequence)
        return True

    list(due.evict_far(0, evict))
    assert evicted == [2, 3]
    list(due.evict_far(0, evict))
    assert evicted == [2, 3], "they have gone"
    assert len(due._fresh) == 1, "this one could not go yet"


def test_what_has_gone_is_not_kept_for_paging() -> None:
    due = Due()
    for number in range(3_000):
        messages = single(number)
        due.add(10 * number + 1_500, messages, 10 * number)
        messages.low = 1
        taken(due, 10 * number)
    assert len(due._fresh) < 600
