"""x-max-priority: the backlog against a model, paging, and recovery."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.core.life import PERSISTENT, TRANSIENT, Life
from tests.core.messages import batch
from warrenmq.core.message.queue_entry import MessageRange, PagedOut, QueueEntry
from warrenmq.core.queue.priority import PriorityBacklog
from warrenmq.core.wire.properties import RANKED, MessageAttributes

from .support import ranges, sequences

HIGHEST = 4


def of(priority: int, expiration: str | None = None) -> MessageAttributes:
    return MessageAttributes(priority=priority, expiration=expiration)


class Model(RuleBasedStateMachine):
    """Messages of all priorities come in, go out, come back in pieces, expire anywhere, and those
    without a priority get paged out and are read again. What an earlier process left is sorted
    before anything goes out. The model is a table from number to priority (clipped) and flag."""

    def __init__(self) -> None:
        super().__init__()
        self.backlog = PriorityBacklog(HIGHEST)
        self.next = 1
        self.waiting: dict[int, tuple[int, bool]] = {}
        self.paged_out: dict[PagedOut, list[int]] = {}
        self.taken: list[MessageRange] = []

    def expected(self) -> list[int]:
        return sorted(self.waiting, key=lambda number: (-self.waiting[number][0], number))

    def numbers(self) -> list[int]:
        return [
            number
            for messages in self.backlog
            for number in (
                self.paged_out[messages] if isinstance(messages, PagedOut) else sequences(messages)
            )
        ]

    @rule(count=st.integers(1, 6), priority=st.integers(0, 6))
    def append(self, count: int, priority: int) -> None:
        messages = self.backlog.append(QueueEntry(batch(count, self.next, of(priority)), None))
        self.waiting |= dict.fromkeys(sequences(messages), (min(priority, HIGHEST), False))
        self.next += count

    @rule(count=st.integers(1, 6))
    def page_out_range(self, count: int) -> None:
        paged_out = PagedOut(count, None)
        self.backlog.append_range(paged_out)
        self.paged_out[paged_out] = list(range(self.next, self.next + count))
        self.waiting |= dict.fromkeys(self.paged_out[paged_out], (0, False))
        self.next += count

    @rule(priorities=st.lists(st.integers(0, 6), min_size=1, max_size=6))
    def recover(self, priorities: list[int]) -> None:
        paged_out = PagedOut(len(priorities), None, special=RANKED)
        self.backlog.append_range(paged_out)
        self.paged_out[paged_out] = list(range(self.next, self.next + len(priorities)))
        for number, priority in zip(self.paged_out[paged_out], priorities, strict=True):
            self.waiting[number] = (min(priority, HIGHEST), False)
        self.next += len(priorities)

    @precondition(lambda self: self.paged_out)
    @rule(count=st.integers(1, 6), data=st.data())
    def page_in(self, count: int, data: st.DataObject) -> None:
        """As the store does it: some at the front become ranges, or are lost."""
        paged_out = data.draw(st.sampled_from(list(self.paged_out)))
        found, self.paged_out[paged_out] = (
            self.paged_out[paged_out][:count],
            self.paged_out[paged_out][count:],
        )
        paged_out.count -= len(found)
        ranks = [self.waiting[number][0] for number in found]
        read = [
            MessageRange(QueueEntry(batch(1, number, of(rank)), None), 0, 1)
            for number, rank in zip(found, ranks, strict=True)
        ]
        if not paged_out.count:
            del self.paged_out[paged_out]
            if data.draw(st.booleans()):
                paged_out.lost, read = len(found), []
                for number in found:
                    del self.waiting[number]
        self.backlog.paged_in(paged_out, read)

    @precondition(lambda self: isinstance(self.backlog.head(), MessageRange))
    @rule(limit=st.integers(1, 10))
    def take(self, limit: int) -> None:
        head = self.backlog.head()
        assert isinstance(head, MessageRange)
        messages = self.backlog.take(head, limit)
        got = sequences(messages)
        assert got == self.expected()[: len(got)]
        assert {self.waiting.pop(number)[1] for number in got} == {messages.redelivered}
        self.taken.append(messages)

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        messages = self.taken.pop(data.draw(st.integers(0, len(self.taken) - 1)))
        low = data.draw(st.integers(messages.low, messages.high - 1))
        if messages.low < low:
            self.taken.append(MessageRange(messages.entry, messages.low, low, messages.redelivered))
        back = MessageRange(messages.entry, low, messages.high, True)
        priority = min(messages.entry.batch.attributes.priority, HIGHEST)
        self.waiting |= dict.fromkeys(sequences(back), (priority, True))
        self.backlog.requeue(back)

    @precondition(lambda self: bool(ranges(self.backlog)))
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        for number in sequences(
            self.backlog.empty(data.draw(st.sampled_from(ranges(self.backlog))))
        ):
            del self.waiting[number]

    @rule(keep=st.integers(0, 8))
    def page_out(self, keep: int) -> None:
        """What a store can read again gets paged out, all else stays as it is."""

        def page_out_range(messages: MessageRange, before: PagedOut | None) -> PagedOut | None:
            if messages.entry.batch.attributes.special or messages.count < messages.entry.count:
                return None
            if before is None:
                before = PagedOut(0, None)
                self.paged_out[before] = []
            before.count += messages.count
            self.paged_out[before] += sequences(messages)
            return before

        before = ranges(self.backlog)
        list(self.backlog.page_out(keep, page_out_range))
        if len(self.waiting) <= keep:
            assert ranges(self.backlog) == before

    @invariant()
    def agrees(self) -> None:
        backlog = self.backlog
        is_sorted = not any(messages.special for messages in self.paged_out)
        assert sorted(self.numbers()) == sorted(self.expected())
        assert self.numbers() == self.expected() or not is_sorted
        assert (
            backlog.count
            == len(self.waiting)
            == sum(messages.count for messages in backlog.levels())
        )
        assert backlog.paged_out_ranges == len(self.paged_out)
        assert backlog.first_paged_out() is next(
            (messages for messages in backlog if isinstance(messages, PagedOut)), None
        )
        head = backlog.head()
        assert (head is None) is not bool(self.waiting)
        assert is_sorted or head in self.paged_out
        if isinstance(head, MessageRange):
            assert head.sequence == self.expected()[0]


TestModel: Any = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=30)


def test_read_ahead_counts_messages_of_higher_priorities() -> None:
    backlog = PriorityBacklog(9)
    backlog.append(QueueEntry(batch(5, 1, of(9)), None))
    backlog.append(QueueEntry(batch(3, 6), None))
    paged_out = PagedOut(10, None)
    backlog.append_range(paged_out)
    assert backlog.paged_out_within(8) == []
    assert backlog.paged_out_within(9) == [paged_out]


def test_empty_levels_are_removed() -> None:
    backlog = PriorityBacklog(255)
    ranges = [backlog.append(QueueEntry(batch(1, at + 1, of(at)), None)) for at in range(256)]
    for messages in ranges[8:]:
        backlog.empty(messages)
    assert backlog.head() is ranges[7]
    assert len(backlog.levels()) == 8
    backlog.requeue(MessageRange(ranges[200].entry, 0, 1, True))
    head = backlog.head()
    assert head is not None
    assert (backlog.count, head.count, len(backlog.levels())) == (9, 1, 9)


def paged_out_by(backlog: PriorityBacklog, keep: int) -> list[int]:
    """What is asked to go so that so many stay, in the order in which it is asked."""
    asked: list[int] = []

    def page_out_range(messages: MessageRange, before: PagedOut | None) -> None:
        asked.extend(sequences(messages))

    list(backlog.page_out(keep, page_out_range))
    return asked


def test_the_lowest_priority_is_paged_out_first() -> None:
    backlog = PriorityBacklog(9)
    for number in range(1, 11):
        backlog.append(QueueEntry(batch(1, number, of(5 * (number % 2))), None))
    assert paged_out_by(backlog, 10) == []
    assert paged_out_by(backlog, 8) == [8, 10]
    assert paged_out_by(backlog, 3) == [2, 4, 6, 8, 10, 9, 7]


def test_evicted_batches_are_not_visited_again() -> None:
    backlog = PriorityBacklog(9)
    for number in range(1, 6):
        backlog.append(QueueEntry(batch(1, number, of(5)), None))
    for messages in ranges(backlog)[1:]:
        messages.entry.batch.evict()
    assert paged_out_by(backlog, 0) == []


# -- on disk


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log")
    found.declare("q", arguments={"x-max-priority": 9})
    yield found
    found.abandon()


def fill(life: Life, priorities: Sequence[int], *, transient: bool = False) -> list[bytes]:
    """Publishes one message of each; returns them in the expected order."""
    properties = TRANSIENT if transient else PERSISTENT
    sent = []
    for number, priority in enumerate(priorities):
        body = b"%d-%06d" % (priority, number)
        life.publish(body, properties={**properties, "priority": priority})
        sent.append((-priority, number, body))
    life.write()
    return [body for *_, body in sorted(sent)]


MIXED = [0, 3, 0, 0, 9, 1, 3, 0, 0, 0, 9, 0]


def test_only_messages_without_priority_are_paged_out(life: Life) -> None:
    expected = fill(life, MIXED)
    life.page_out()
    queue = life.classic("q")
    assert queue.paged_out_count == MIXED.count(0)
    assert all(not messages.entry.batch.resident for messages in ranges(queue.backlog))
    assert life.broker.memory.resident_bytes < 600 * len(MIXED)
    assert life.bodies() == expected


def test_a_priority_overtakes_messages_being_paged_in(life: Life) -> None:
    expected = fill(life, [0] * 20)
    life.page_out()
    life.broker.tick()
    queue = life.classic("q")
    queue.when_head_ready(lambda: None)
    assert queue.is_paging_in
    life.client.publish(b"now", {**PERSISTENT, "priority": 5}, routing_key="q")
    life.turns()
    assert life.bodies() == [b"now", *expected]


def test_segments_without_priorities_are_not_read(tmp_path: Path) -> None:
    life = Life(tmp_path / "log", segment_bytes=4_096)
    life.declare("q", arguments={"x-max-priority": 9})
    expected = fill(life, [0] * 100 + [7] + [0] * 100 + [2])
    assert len(life.files()) > 3
    life.crash()
    queue = life.queue("q")
    assert 0 < queue.paged_out_count < 200
    assert queue.ready_count == 202
    assert life.bodies() == expected
    life.abandon()
