"""The backlog against a model of it: a list of sequence numbers, kept sorted."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.core.messages import batch
from warrenmq.core.message.batch import MessageRange, PagedOut, QueueEntry
from warrenmq.core.queue.backlog import AHEAD_RANGES, Backlog

from .support import head, ranges, sequences


def numbers(backlog: Backlog) -> list[int]:
    return sequences(*backlog)


def filled(*counts: int) -> Backlog:
    backlog, sequence = Backlog(), 1
    for count in counts:
        backlog.append(QueueEntry(batch(count, sequence), None))
        sequence += count
    return backlog


def take(backlog: Backlog, limit: int) -> MessageRange:
    return backlog.take(head(backlog), limit)


class Model(RuleBasedStateMachine):
    """Messages come in, are taken from the front, come back in pieces, or expire anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.backlog = Backlog()
        self.next = 1
        self.waiting: dict[int, bool] = {}
        self.taken: list[MessageRange] = []

    @rule(count=st.integers(1, 8), data=st.data())
    def append(self, count: int, data: st.DataObject) -> None:
        chosen = data.draw(
            st.none() | st.sets(st.sampled_from(range(count)), min_size=1).map(sorted)
        )
        selection = None if chosen is None else array("H", chosen)
        entry = QueueEntry(batch(count, self.next), selection)
        messages = self.backlog.append(entry)
        assert (messages.entry, messages.low, messages.high, messages.redelivered) == (
            entry,
            0,
            entry.count,
            False,
        )
        self.waiting |= dict.fromkeys(sequences(messages), False)
        self.next += count

    @precondition(lambda self: self.waiting)
    @rule(limit=st.integers(1, 10))
    def take(self, limit: int) -> None:
        messages = take(self.backlog, limit)
        got = sequences(messages)
        assert 1 <= len(got) <= limit
        assert got == sorted(self.waiting)[: len(got)]
        assert {self.waiting.pop(number) for number in got} == {messages.redelivered}
        self.taken.append(messages)

    @precondition(lambda self: self.taken)
    @rule(redelivered=st.booleans(), data=st.data())
    def put_back(self, redelivered: bool, data: st.DataObject) -> None:
        """Part of a delivery returns, as after odd acks; what remains may follow later."""
        messages = self.taken.pop(data.draw(st.integers(0, len(self.taken) - 1)))
        low = data.draw(st.integers(messages.low, messages.high - 1))
        high = data.draw(st.integers(low + 1, messages.high))
        for start, end in ((messages.low, low), (high, messages.high)):
            if start < end:
                self.taken.append(MessageRange(messages.entry, start, end, messages.redelivered))
        back = MessageRange(messages.entry, low, high, messages.redelivered or redelivered)
        self.waiting |= dict.fromkeys(sequences(back), back.redelivered)
        expected = sequences(back)
        held = self.backlog.requeue(back)
        assert set(expected) <= set(sequences(held))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        messages = data.draw(st.sampled_from(ranges(self.backlog)))
        for number in sequences(self.backlog.empty(messages)):
            del self.waiting[number]

    @invariant()
    def agrees(self) -> None:
        assert self.backlog.count == len(self.waiting)
        assert numbers(self.backlog) == sorted(self.waiting)
        flags = [
            messages.redelivered for messages in ranges(self.backlog) for _ in range(messages.count)
        ]
        assert flags == [self.waiting[number] for number in sorted(self.waiting)]
        if self.waiting:
            assert head(self.backlog).sequence == min(self.waiting)
        else:
            assert self.backlog.head() is None


TestModel: Any = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=30)


def test_nothing() -> None:
    backlog = Backlog()
    assert (backlog.head(), backlog.count, list(backlog)) == (None, 0, [])


@pytest.mark.parametrize("backwards", [False, True])
def test_requeued_messages_join_again(backwards: bool) -> None:
    backlog = filled(1_000)
    pieces = [take(backlog, 1) for _ in range(1_000)]
    for piece in reversed(pieces) if backwards else pieces:
        backlog.requeue(piece)
    assert numbers(backlog) == list(range(1, 1_001))
    assert len(list(backlog)) == 1


def test_a_redelivered_message_does_not_join_one_that_is_not() -> None:
    backlog = filled(3)
    first = take(backlog, 1)
    second = take(backlog, 1)
    backlog.requeue(first)
    backlog.requeue(MessageRange(second.entry, second.low, second.high, True))
    assert [messages.redelivered for messages in ranges(backlog)] == [False, True, False]


def test_what_is_put_back_is_given_as_the_range_that_holds_it() -> None:
    backlog = filled(5)
    first, second, third = (take(backlog, 1) for _ in range(3))
    held = backlog.requeue(first)
    assert held is first
    assert backlog.requeue(second) is first
    assert (first.low, first.high) == (0, 2)
    assert backlog.requeue(third) is first
    assert backlog.head() is first


def test_an_expired_range_among_the_returned_ones_is_no_obstacle() -> None:
    backlog = Backlog()
    backlog.append(QueueEntry(batch(5), array("H", [0, 2, 4])))
    first, second, third = (take(backlog, 1) for _ in range(3))
    backlog.empty(backlog.requeue(third))
    backlog.requeue(second)
    assert numbers(backlog) == [3]
    backlog.requeue(first)
    assert numbers(backlog) == [1, 3]


# -- paged-out ranges


def test_it_is_the_only_one_of_its_levels() -> None:
    backlog = filled(1)
    assert list(backlog.levels()) == [backlog]


def test_the_first_range_is_found_wherever_it_stands() -> None:
    """However far from the front, and behind what came back."""
    backlog = filled(*[1] * (2 * AHEAD_RANGES))
    returned = [take(backlog, 1) for _ in range(3)]
    assert backlog.first_paged_out() is None
    first, second = PagedOut(5, None), PagedOut(7, None)
    backlog.append_range(first)
    backlog.append(QueueEntry(batch(2, 900), None))
    backlog.append_range(second)
    for messages in returned:
        backlog.requeue(messages)
    assert backlog.first_paged_out() is first
    assert backlog.paged_out_within(1_000) == []
    assert (backlog.count, backlog.paged_out_ranges) == (2 * AHEAD_RANGES + 14, 2)


def test_ranges_are_found_one_after_another_as_they_are_read() -> None:
    backlog = filled(1)
    locations = [PagedOut(2, None), PagedOut(3, None)]
    sequence = 2
    for paged_out in locations:
        backlog.append_range(paged_out)
    for paged_out in locations:
        while paged_out.count:
            assert backlog.first_paged_out() is paged_out
            paged_out.count -= 1
            backlog.paged_in(paged_out, [MessageRange(QueueEntry(batch(1, sequence), None), 0, 1)])
            sequence += 1
    assert (backlog.first_paged_out(), backlog.paged_out_ranges) == (None, 0)
    assert numbers(backlog) == list(range(1, 7))


def test_a_range_that_is_gone_is_none() -> None:
    """Discarded by the store, and not yet come to."""
    backlog = Backlog()
    paged_out = PagedOut(0, None)
    backlog.append_range(paged_out)
    assert backlog.head() is None
    assert backlog.first_paged_out() is None
