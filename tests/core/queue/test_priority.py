"""x-max-priority: the backlog against a model, queues with it, and what lasts of its order."""

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
from tests.support.amqp import bodies
from warrenmq.core.message.batch import MessageRange, PagedOut, QueueEntry
from warrenmq.core.queue.priority import PriorityBacklog
from warrenmq.core.wire.properties import RANKED, MessageAttributes

from .support import House, Session, add, publish, ranges, ready, sequences, take

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
            for held in self.backlog
            for number in (self.paged_out[held] if isinstance(held, PagedOut) else sequences(held))
        ]

    @rule(count=st.integers(1, 6), priority=st.integers(0, 6))
    def append(self, count: int, priority: int) -> None:
        messages = self.backlog.append(QueueEntry(batch(count, self.next, of(priority)), None))
        self.waiting |= dict.fromkeys(sequences(messages), (min(priority, HIGHEST), False))
        self.next += count

    @rule(count=st.integers(1, 6))
    def freeze(self, count: int) -> None:
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

        def freeze(messages: MessageRange, before: PagedOut | None) -> PagedOut | None:
            if messages.entry.batch.attributes.special or messages.count < messages.entry.count:
                return None
            if before is None:
                before = PagedOut(0, None)
                self.paged_out[before] = []
            before.count += messages.count
            self.paged_out[before] += sequences(messages)
            return before

        before = ranges(self.backlog)
        list(self.backlog.page_out(keep, freeze))
        if len(self.waiting) <= keep:
            assert ranges(self.backlog) == before

    @invariant()
    def agrees(self) -> None:
        backlog = self.backlog
        is_sorted = not any(held.special for held in self.paged_out)
        assert sorted(self.numbers()) == sorted(self.expected())
        assert self.numbers() == self.expected() or not is_sorted
        assert backlog.count == len(self.waiting) == sum(held.count for held in backlog.levels())
        assert backlog.paged_out_ranges == len(self.paged_out)
        assert backlog.first_paged_out() is next(
            (held for held in backlog if isinstance(held, PagedOut)), None
        )
        head = backlog.head()
        assert (head is None) is not bool(self.waiting)
        assert is_sorted or head in self.paged_out
        if isinstance(head, MessageRange):
            assert head.sequence == self.expected()[0]


TestModel: Any = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=30)


def test_a_range_behind_higher_priorities_is_read_in_time() -> None:
    backlog = PriorityBacklog(9)
    backlog.append(QueueEntry(batch(5, 1, of(9)), None))
    backlog.append(QueueEntry(batch(3, 6), None))
    paged_out = PagedOut(10, None)
    backlog.append_range(paged_out)
    assert backlog.paged_out_within(8) == []
    assert backlog.paged_out_within(9) == [paged_out]


def test_the_newest_of_the_lowest_priority_are_the_last_to_be_wanted() -> None:
    backlog = PriorityBacklog(9)
    assert backlog.newest() is None
    low = backlog.append(QueueEntry(batch(1, 1, of(1)), None))
    backlog.append(QueueEntry(batch(1, 2, of(7)), None))
    assert backlog.newest() is low
    backlog.empty(low)
    newest = backlog.newest()
    assert newest is not None
    assert newest.sequence == 2


def test_levels_that_were_used_once_are_not_asked_for_good() -> None:
    backlog = PriorityBacklog(255)
    held = [backlog.append(QueueEntry(batch(1, at + 1, of(at)), None)) for at in range(256)]
    for messages in held[8:]:
        backlog.empty(messages)
    assert backlog.head() is held[7]
    assert len(backlog.levels()) == 8
    backlog.requeue(MessageRange(held[200].entry, 0, 1, True))
    head = backlog.head()
    assert head is not None
    assert (backlog.count, head.count, len(backlog.levels())) == (9, 1, 9)


def went_out(backlog: PriorityBacklog, keep: int) -> list[int]:
    """What is asked to go so that so many stay, in the order in which it is asked."""
    asked: list[int] = []

    def freeze(messages: MessageRange, before: PagedOut | None) -> None:
        asked.extend(sequences(messages))

    list(backlog.page_out(keep, freeze))
    return asked


def test_the_lowest_priority_goes_first() -> None:
    """As much of it as is over what is to stay in all."""
    backlog = PriorityBacklog(9)
    for number in range(1, 11):
        backlog.append(QueueEntry(batch(1, number, of(5 * (number % 2))), None))
    assert went_out(backlog, 10) == []
    assert went_out(backlog, 8) == [8, 10]
    assert went_out(backlog, 3) == [2, 4, 6, 8, 10, 9, 7]


def test_what_went_before_is_not_asked_again() -> None:
    backlog = PriorityBacklog(9)
    for number in range(1, 6):
        backlog.append(QueueEntry(batch(1, number, of(5)), None))
    for messages in ranges(backlog)[1:]:
        messages.entry.batch.evict()
    assert went_out(backlog, 0) == []


# -- queues


def test_higher_ones_go_first_and_the_older_of_alike_ones() -> None:
    house, session = House(), Session()
    queue = house.queue(max_priority=5)
    for priority in (1, 5, 0, 5, 3):
        publish(house, queue, 2, of(priority))
    assert ready(queue) == [3, 4, 7, 8, 9, 10, 1, 2, 5, 6]
    add(queue, session, no_ack=True)
    house.turn()
    assert session.numbers() == [3, 4, 7, 8, 9, 10, 1, 2, 5, 6]


def test_above_the_highest_counts_as_the_highest() -> None:
    house = House()
    queue = house.queue(max_priority=2)
    for priority in (2, 255, 1, 3):
        publish(house, queue, 1, of(priority))
    assert ready(queue) == [1, 2, 4, 3]


def test_priorities_mean_nothing_to_a_queue_without_them() -> None:
    house = House()
    for queue in (house.queue(), house.queue(max_priority=0), house.queue(max_length=9)):
        house.store.reserve(10)
        for priority in (0, 9, 3):
            publish(house, queue, 1, of(priority))
        assert ready(queue) == sorted(ready(queue))


def test_quorum_queues_have_32_of_them() -> None:
    house = House()
    queue = house.queue(durable=True, queue_type="quorum")
    for priority in (30, 31, 200, 4, 5):
        publish(house, queue, 1, of(priority))
    assert ready(queue) == [2, 3, 1, 5, 4]


def test_what_comes_back_goes_to_its_place_among_its_like() -> None:
    house = House()
    queue = house.queue(max_priority=5)
    publish(house, queue, 3, of(1))
    publish(house, queue, 2, of(4))
    held = list(take(queue, 4))
    assert sequences(*held) == [4, 5, 1, 2]
    publish(house, queue, 1, of(4))
    for messages in reversed(held):
        queue.requeue(messages)
    assert ready(queue) == [4, 5, 6, 1, 2, 3]
    assert [messages.redelivered for messages in ranges(queue.backlog)] == [
        True,
        False,
        True,
        False,
    ]


def test_a_late_urgent_message_overtakes_what_waits_for_credit() -> None:
    house, session = House(), Session()
    queue = house.queue(max_priority=5)
    consumer = add(queue, session, prefetch=1)
    publish(house, queue, 3)
    house.turn()
    publish(house, queue, 1, of(5))
    house.turn()
    session.ack(consumer)
    house.turn()
    assert session.numbers() == [4]


def test_each_priority_expires_by_itself() -> None:
    """Older ones of a lower priority stand behind younger ones, and are due before them."""
    house = House()
    queue = house.queue(max_priority=5, message_ttl=100)
    publish(house, queue, 2, of(0))
    house.wait(50)
    publish(house, queue, 2, of(5))
    publish(house, queue, 1, of(5, "10"))
    house.wait(11)
    assert (ready(queue), house.dead_letters) == ([3, 4, 1, 2], [(5, "expired")])
    house.wait(40)
    assert (ready(queue), house.dead_letters[1:]) == ([3, 4], [(1, "expired"), (2, "expired")])
    house.wait(50)
    assert ready(queue) == []


def test_over_its_length_it_drops_what_would_go_next() -> None:
    """The head is the highest priority, as RabbitMQ has it."""
    house = House()
    queue = house.queue(max_priority=5, max_length=2)
    publish(house, queue, 2, of(0))
    publish(house, queue, 1, of(5))
    assert (ready(queue), house.dead_letters) == ([1, 2], [(3, "maxlen")])


def test_purge_takes_every_priority() -> None:
    house = House()
    queue = house.queue(durable=True, max_priority=5)
    for priority in range(4):
        publish(house, queue, 2, of(priority))
    assert (queue.purge(), queue.ready_count, ready(queue)) == (8, 0, [])
    assert sorted(house.settled) == list(range(1, 9))
    publish(house, queue, 1, of(3))
    assert ready(queue) == [9]


# -- on disk


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log")
    found.declare("q", arguments={"x-max-priority": 9})
    yield found
    found.abandon()


def fill(life: Life, priorities: Sequence[int], *, transient: bool = False) -> list[bytes]:
    """One message of each; gives them as they are to come out."""
    properties = TRANSIENT if transient else PERSISTENT
    sent = []
    for number, priority in enumerate(priorities):
        body = b"%d-%06d" % (priority, number)
        life.publish(body, properties={**properties, "priority": priority})
        sent.append((-priority, number, body))
    life.write()
    return [body for *_, body in sorted(sent)]


MIXED = [0, 3, 0, 0, 9, 1, 3, 0, 0, 0, 9, 0]


def test_only_what_has_no_priority_gets_cold(life: Life) -> None:
    expected = fill(life, MIXED)
    life.page_out()
    queue = life.classic("q")
    assert queue.paged_out_count == MIXED.count(0)
    assert all(not messages.entry.batch.resident for messages in ranges(queue.backlog))
    assert life.broker.memory.resident_bytes < 600 * len(MIXED)
    assert life.bodies() == expected


def test_transient_ones_leave_memory_too(life: Life) -> None:
    expected = fill(life, MIXED, transient=True)
    life.page_out(transient=True)
    life.turns()
    assert all(not messages.entry.batch.resident for messages in ranges(life.classic("q").backlog))
    assert life.bodies() == expected


def test_an_urgent_one_overtakes_paged_out_ones(life: Life) -> None:
    fill(life, [0] * 20)
    life.page_out()
    life.publish(b"now", properties={**PERSISTENT, "priority": 5})
    reply = life.get()
    assert reply is not None
    assert reply.body == b"now"
    assert life.queue("q").paged_out_count == 20


def test_one_that_comes_while_others_are_read_back_is_next(life: Life) -> None:
    expected = fill(life, [0] * 20)
    life.page_out()
    life.broker.tick()
    queue = life.classic("q")
    queue.get(lambda: None)
    assert queue.is_paging_in
    life.client.publish(b"now", {**PERSISTENT, "priority": 5}, routing_key="q")
    life.turns()
    assert life.bodies() == [b"now", *expected]


@pytest.mark.parametrize("again", [Life.restart, Life.crash])
def test_the_order_is_the_same_after_a_restart(life: Life, again: Any) -> None:
    expected = fill(life, MIXED)
    again(life)
    assert life.queue("q").paged_out_count == 0  # One part holds all; some in it have a priority.
    assert life.bodies() == expected


@pytest.mark.parametrize("again", [Life.restart, Life.crash])
def test_what_was_delivered_is_back_in_its_place(life: Life, again: Any) -> None:
    expected = fill(life, MIXED)
    life.client.call("Basic.Qos", prefetch_count=5)
    delivered = life.client.consume("q")
    assert bodies(delivered) == expected[:5]
    life.client.call("Basic.Cancel", consumer_tag="c")
    life.client.send("Basic.Ack", delivery_tag=2)
    life.write()
    again(life)
    found = life.drain()
    assert [body for body, _ in found] == [expected[0], *expected[2:]]
    assert [flag for _, flag in found[:4]] == [True] * 4


def test_segments_without_priorities_come_back_cold(tmp_path: Path) -> None:
    """And go where those of priority 0 are, older ones first."""
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
