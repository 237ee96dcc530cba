"""x-delivery-limit and x-delayed-retry-type: what is counted, shown, kept, and when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.life import PERSISTENT, TRANSIENT, Life
from tests.core.messages import batch
from tests.support.amqp import Reply, bodies
from tests.support.amqp import publish as publish_frames
from warrenmq.core.definitions.facts import DeliveryCounts, queue_owner
from warrenmq.core.definitions.keys import Kind
from warrenmq.core.message.batch import MessageRange, QueueEntry
from warrenmq.core.publish.local import LocalDelivery, LocalSession
from warrenmq.core.queue.queue import Queue
from warrenmq.core.queue.redelivery import (
    ACQUIRED_HEADER,
    COUNT_HEADER,
    DelayedRetries,
    RedeliveryCounter,
    ReturnCounts,
)
from warrenmq.core.queue.rules import RetryDelay, Rules
from warrenmq.core.timers import Timers
from warrenmq.core.wire.properties import PERSISTENT as LASTING
from warrenmq.core.wire.properties import PLAIN, decode

from .support import House, Session, add, publish, ranges, ready, sequences, take

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
def test_counts_are_those_of_a_table(steps: list[tuple[str, int, int]], quorum: bool) -> None:
    """Ranges of ten messages come back and go; what is kept on disk is the same at any time."""
    house = House()
    entry = QueueEntry(batch(10, 100, LASTING), None)
    returns = RedeliveryCounter(house, 1, durable=True, quorum=quorum)
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
        loaded = RedeliveryCounter(house, 1, durable=True, quorum=quorum)
        for shown in (returns.with_headers(everything), loaded.with_headers(everything)):
            assert counts_of(shown) == [times.counted or None for times in table.values()]
            assert counts_of(shown, ACQUIRED) == [
                times.total or None if quorum else None for times in table.values()
            ]


def _alike(table: dict[int, ReturnCounts], messages: MessageRange) -> list[tuple[object, ...]]:
    """Counts and numbers, of neighbours with the same counts."""
    alike = groupby(sequences(messages), key=lambda number: table[number])
    return [(times, *numbers) for times, numbers in alike]


def test_nothing_is_made_for_messages_that_never_came_back() -> None:
    house = House()
    returns = RedeliveryCounter(house, 1, durable=False)
    entry = QueueEntry(batch(4), None)
    list(returns.count_returns(MessageRange(entry, 0, 1)))
    fresh, back = MessageRange(entry, 1, 4), MessageRange(entry, 0, 4, True)
    assert returns.with_headers(fresh) is fresh
    assert counts_of(returns.with_headers(back)) == [1, None, None, None]
    returns.forget(MessageRange(entry, 0, 1))
    assert returns.with_headers(back) is back


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("attributes", [PLAIN, LASTING])
def test_only_what_lasts_is_kept(durable: bool, attributes: Any) -> None:
    house = House()
    queue = house.queue(durable=durable, delivery_limit=5)
    publish(house, queue, 2, attributes)
    for messages in take(queue, 2):
        queue.requeue(messages)
    kept = DeliveryCounts(house.facts, queue.id).load()
    assert kept == ({1: 1, 2: 1} if durable and attributes is LASTING else {})


# -- the limit


def give_back(queue: Queue, times: int) -> None:
    """All that is there goes out and comes back, again and again."""
    for _ in range(times):
        for messages in list(take(queue, queue.ready_count)):
            queue.requeue(messages)


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_one_return_more_than_the_limit_is_too_many(limit: int) -> None:
    house = House()
    queue = house.queue(delivery_limit=limit)
    publish(house, queue, 2)
    give_back(queue, limit)
    assert (ready(queue), house.dead_letters) == ([1, 2], [])
    give_back(queue, 1)
    assert (ready(queue), house.dead_letters) == (
        [],
        [(1, "delivery_limit"), (2, "delivery_limit")],
    )
    assert queue.unacked_count == 0


def test_a_negative_limit_counts_and_never_ends() -> None:
    house = House()
    queue = house.queue(delivery_limit=-1)
    publish(house, queue)
    give_back(queue, 50)
    (held,) = take(queue, 1)
    assert (counts_of(queue.with_headers(held)), house.dead_letters) == ([50], [])


def test_each_message_of_a_range_has_its_own_count() -> None:
    """Acks of a part, returns of another: those that have had enough go, the others stay."""
    house = House()
    queue = house.queue(delivery_limit=1)
    publish(house, queue, 6)
    (held,) = take(queue, 6)
    queue.requeue(MessageRange(held.entry, 1, 2))
    queue.requeue(MessageRange(held.entry, 4, 5))
    queue.settle(MessageRange(held.entry, 5, 6))
    queue.return_undelivered(MessageRange(held.entry, 0, 1))
    for messages in list(take(queue, 3)):
        queue.requeue(messages)
    queue.requeue(MessageRange(held.entry, 2, 4))
    assert (ready(queue), house.dead_letters) == (
        [1, 3, 4],
        [(2, "delivery_limit"), (5, "delivery_limit")],
    )
    assert [counts_of(queue.with_headers(messages)) for messages in take(queue, 9)] == [[1], [1, 1]]


def test_what_never_reached_anyone_does_not_count() -> None:
    house = House()
    queue = house.queue(delivery_limit=0)
    publish(house, queue, 3)
    for messages in list(take(queue, 3)):
        queue.return_undelivered(messages)
    assert (ready(queue), house.dead_letters) == ([1, 2, 3], [])


def test_parts_of_a_range_join_again_where_they_are_alike() -> None:
    house = House()
    queue = house.queue(delivery_limit=9)
    publish(house, queue, 100)
    give_back(queue, 3)
    (held,) = take(queue, 100)
    for at in range(100):
        queue.requeue(MessageRange(held.entry, at, at + 1))
    assert len(ranges(queue.backlog)) == 1


def test_consumers_see_the_count_and_settle_what_the_queue_gave() -> None:
    house, session = House(), Session()
    queue = house.queue(delivery_limit=9)
    seen: list[list[int | None]] = []
    deliver = session.deliver

    def noting(consumer: Any, messages: MessageRange, shown: MessageRange | None = None) -> None:
        seen.append(counts_of(shown or messages))
        deliver(consumer, messages, shown)

    session.deliver = noting  # type: ignore[method-assign]
    consumer = add(queue, session)
    publish(house, queue, 2)
    house.turn()
    (held,) = session.take_back(consumer)
    queue.requeue(MessageRange(held.entry, 1, 2))
    queue.settle(MessageRange(held.entry, 0, 1))
    publish(house, queue)
    house.turn()
    assert seen == [[None, None], [1], [None]]
    assert session.numbers() == [2, 3]
    assert sequences(*(messages for _, messages in session.got)) == [2, 3]


def test_without_a_limit_nothing_is_counted() -> None:
    house = House()
    queue = house.queue(durable=True, max_length=5)
    publish(house, queue, 1, LASTING)
    give_back(queue, 3)
    (held,) = take(queue, 1)
    assert queue.with_headers(held) is held
    assert DeliveryCounts(house.facts, queue.id).load() == {}


def test_what_was_given_back_to_a_quorum_queue_is_no_failure() -> None:
    """It only says how often it was handed out before (RabbitMQ 4.3)."""
    house = House()
    queue = house.queue(durable=True, queue_type="quorum", delivery_limit=1)
    publish(house, queue)
    for _ in range(9):
        for messages in list(take(queue, 1)):
            queue.requeue(messages, failed=False)
    (held,) = take(queue, 1)
    shown = queue.with_headers(held)
    assert (counts_of(shown), counts_of(shown, ACQUIRED)) == ([None], [9])
    queue.requeue(held)
    (held,) = take(queue, 1)
    shown = queue.with_headers(held)
    assert (counts_of(shown), counts_of(shown, ACQUIRED)) == ([1], [10])
    queue.requeue(held)
    assert house.dead_letters == [(1, "delivery_limit")]


# -- delayed retries

ALL = RetryDelay("all", 1_000, 3_500)


def retrying(house: House, delay: RetryDelay = ALL) -> Queue:
    queue = house.queue(durable=True, queue_type="quorum")
    assert queue.rules is not None
    queue.apply(Rules(delivery_limit=-1, max_priority=31, retry_delay=delay))
    return queue


def test_each_return_makes_it_wait_longer_up_to_a_bound() -> None:
    house = House()
    queue = retrying(house)
    publish(house, queue)
    for wait_ms in (1_000, 2_000, 3_000, 3_500, 3_500):
        (held,) = take(queue, 1)
        queue.requeue(held)
        house.wait(wait_ms - 1)
        assert (queue.ready_count, queue.unacked_count) == (0, 0)
        house.wait(1)
        assert ready(queue) == [1]


def test_messages_of_a_range_wait_as_often_as_each_came_back() -> None:
    house = House()
    queue = retrying(house)
    publish(house, queue, 3)
    (held,) = take(queue, 3)
    queue.requeue(MessageRange(held.entry, 2, 3))
    house.wait(1_000)
    list(take(queue, 1))
    queue.requeue(held)
    house.wait(1_000)
    assert ready(queue) == [1, 2]
    house.wait(1_000)
    assert ready(queue) == [1, 2, 3]


def test_others_are_served_meanwhile() -> None:
    house, session = House(), Session()
    queue = retrying(house)
    consumer = add(queue, session, prefetch=1)
    publish(house, queue, 3)
    house.turn()
    (held,) = session.take_back(consumer)
    queue.requeue(held)
    consumer.reopen()
    house.turn()
    assert session.numbers() == [2]
    house.wait(1_000)
    session.ack(consumer)
    house.turn()
    assert session.numbers() == [1]


@pytest.mark.parametrize(
    ("kind", "failed", "given_back"),
    [("all", True, True), ("failed", True, False), ("returned", False, True)],
)
def test_which_returns_wait(kind: str, failed: bool, given_back: bool) -> None:
    house = House()
    queue = retrying(house, RetryDelay(kind, 10, 10))
    publish(house, queue, 2)
    first, second = (messages for _ in range(2) for messages in take(queue, 1))
    queue.requeue(first, failed=True)
    queue.requeue(second, failed=False)
    assert (1 not in ready(queue), 2 not in ready(queue)) == (failed, given_back)
    house.wait(10)
    assert ready(queue) == [1, 2]


def test_too_often_is_no_matter_of_waiting() -> None:
    house = House()
    queue = retrying(house)
    queue.apply(Rules(delivery_limit=0, retry_delay=ALL))
    publish(house, queue)
    for messages in take(queue, 1):
        queue.requeue(messages)
    assert house.dead_letters == [(1, "delivery_limit")]


def test_a_queue_deleted_meanwhile_gets_nothing_back() -> None:
    house = House()
    queue = retrying(house)
    publish(house, queue)
    for messages in take(queue, 1):
        queue.requeue(messages)
    queue.deleted = True
    queue.purge()
    assert house.timers.next_ms is None
    house.wait(10_000)
    assert queue.ready_count == 0


def test_rest_wakes_for_the_earliest_whatever_came_first() -> None:
    timers, woken = Timers(), list[int]()
    rest = DelayedRetries(timers, lambda messages: woken.extend(sequences(messages)))
    entry = QueueEntry(batch(4), None)
    for at, delay_ms in enumerate((300, 100, 200, 100)):
        rest.add(MessageRange(entry, at, at + 1), RetryDelay("all", delay_ms, delay_ms), 1, 50)
    seen = []
    for now_ms in (149, 150, 250, 349, 400):
        timers.run_due(now_ms)
        seen.append(list(woken))
    assert seen == [[], [2, 4], [2, 4, 3], [2, 4, 3], [2, 4, 3, 1]]
    assert timers.next_ms is None


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
Again = Callable[[Life], object]
AGAIN = pytest.mark.parametrize("again", [Life.restart, Life.crash])


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
    return [key for key in life.store.definitions if key[0] == Kind.DELIVERY_COUNT]


@AGAIN
def test_counts_are_exact_after_each_end(life: Life, again: Again) -> None:
    for body in (b"a", b"b", b"c"):
        life.publish(body)
    seen = []
    for _ in range(3):
        (reply,) = send_back(life)
        seen.append((reply.body, reply.headers.get(COUNT), reply["redelivered"]))
        again(life)
    assert seen == [(b"a", None, False), (b"a", 1, True), (b"a", 2, True)]
    again(life)  # The counts are still there if nobody has asked meanwhile.
    (reply,) = send_back(life)
    assert (reply.body, reply.headers[COUNT]) == (b"a", 3)
    assert life.bodies() == [b"b", b"c"]
    life.turns()
    assert facts(life) == []
    dead_letter = life.get("dead")
    assert dead_letter is not None
    assert dead_letter.headers["x-death"][0]["reason"] == "delivery_limit"


def test_a_crash_in_which_a_message_was_out_does_not_count(life: Life) -> None:
    """Only what came back was counted, and that it did is kept when it does."""
    life.publish(b"a")
    send_back(life)
    assert life.get("q", ack=False) is not None
    life.crash()
    (reply,) = send_back(life)
    assert (reply.headers[COUNT], reply["redelivered"]) == (1, True)


def test_a_dead_letter_keeps_its_count_until_it_has_moved(life: Life) -> None:
    """Else a crash in between would give it all its deliveries once more."""
    life.publish(b"a")
    for _ in range(3):
        send_back(life)
    assert life.get("q", ack=False) is not None
    (piece,) = life.client.connection.channels[1].unacked.take_all()
    queue = life.queue("q")
    queue.requeue(piece.messages)
    assert queue.ready_count == 0
    assert list(DeliveryCounts(life.broker.facts, queue.id).load().values()) == [4]
    life.turns()
    assert facts(life) == []
    assert life.bodies("dead") == [b"a"]


@pytest.mark.parametrize("how", ["Basic.Ack", "Basic.Reject", "Basic.Nack"])
def test_what_is_done_with_leaves_no_count(life: Life, how: str) -> None:
    for body in (b"a", b"b", b"c"):
        life.publish(body)
    send_back(life, 3)
    assert len(facts(life)) == 3
    for _ in range(3):
        reply = life.get(ack=False)
        assert reply is not None
        life.client.send(how, delivery_tag=reply["delivery_tag"])
    assert facts(life) == []


@AGAIN
def test_both_counts_of_quorum_queues_are_exact(life: Life, again: Again) -> None:
    life.declare("safe", arguments={"x-queue-type": "quorum"})
    life.publish(b"a", "safe")
    seen = []
    for way in ("Reject", "Nack", "Nack", "Reject", "Nack"):
        reply = life.get("safe", ack=False)
        assert reply is not None
        seen.append((reply.headers.get(COUNT), reply.headers.get(ACQUIRED)))
        life.client.send(f"Basic.{way}", delivery_tag=reply["delivery_tag"], requeue=True)
        life.write()
        again(life)
    assert seen == [(None, None), (1, 1), (1, 2), (1, 3), (2, 4)]
    assert life.bodies("safe") == [b"a"]
    assert facts(life) == []


def test_half_of_a_delivery_acked(life: Life) -> None:
    for body in (b"a", b"b", b"c", b"d"):
        life.publish(body)
    send_back(life, 4)
    assert len(life.client.consume("q")) == 4
    life.client.send("Basic.Ack", delivery_tag=6, multiple=True)
    assert len(facts(life)) == 2
    (third, fourth) = life.client.send("Basic.Nack", multiple=True, requeue=True)
    assert [(third.body, third.headers[COUNT]), (fourth.body, fourth.headers[COUNT])] == [
        (b"c", 2), (b"d", 2),
    ]  # fmt: skip


@pytest.mark.parametrize("ends", ["purge", "delete", "expired", "maxlen", "no ack"])
def test_nothing_is_kept_of_those_that_go_otherwise(life: Life, ends: str) -> None:
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
        case _:
            life.bodies("other")
    life.turns()
    assert facts(life) == []
    if ends != "delete":
        returns = life.classic("other")._redeliveries
        assert returns is not None
        assert returns._counts == {}


def test_dropped_where_there_is_no_dead_letter_exchange(life: Life) -> None:
    life.declare("bare", arguments={"x-delivery-limit": 1})
    life.publish(b"a", "bare")
    send_back(life, 1, "bare")
    send_back(life, 1, "bare")
    assert life.client.messages("bare") == 0
    assert facts(life) == []
    life.crash()
    assert life.client.messages("bare") == 0


def test_transient_ones_are_counted_while_the_process_lives(life: Life) -> None:
    life.publish(b"a", properties=TRANSIENT)
    assert [send_back(life)[0].headers.get(COUNT) for _ in range(3)] == [None, 1, 2]
    assert facts(life) == []


@AGAIN
def test_a_message_on_disk_only_has_its_count(life: Life, again: Again) -> None:
    for number in range(20):
        life.publish(b"%d" % number)
    send_back(life, 5)
    life.page_out()
    again(life)
    life.page_out()
    found = life.client.consume("q")
    life.turns()
    found += life.client.come()
    assert [reply.headers.get(COUNT) for reply in found] == [1] * 5 + [None] * 15
    assert bodies(found) == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize("how", ["Basic.Ack", "Basic.Reject"])
def test_within_a_transaction(life: Life, how: str) -> None:
    """A rollback is no return, a commit is one."""
    life.publish(b"a")
    client = life.client
    client.call("Tx.Select")
    (reply,) = client.consume("q")
    for end in ("Tx.Rollback", "Tx.Commit"):
        client.send(
            how, delivery_tag=reply["delivery_tag"],
            **({"requeue": True} if how == "Basic.Reject" else {}),
        )  # fmt: skip
        found = client.send(end)
        life.turns()
        found += client.come()
    delivered = [reply.headers[COUNT] for reply in found if reply.name == "Basic.Deliver"]
    assert delivered == ([1] if how == "Basic.Reject" else [])
    assert len(facts(life)) == len(delivered)


def test_sent_again_without_going_back_it_carries_its_count(life: Life) -> None:
    """basic.recover to the same consumer is no return, but a redelivery."""
    life.publish(b"a")
    send_back(life)
    life.client.consume("q")
    _, reply = life.client.send("Basic.Recover", requeue=False)
    assert (reply.body, reply["redelivered"], reply.headers[COUNT]) == (b"a", True, 1)


def test_a_consumer_inside_the_process_sees_it_too(life: Life) -> None:
    data = [publish_frames(1, body, PERSISTENT, routing_key="q") for body in (b"a", b"b", b"c")]
    life.client.feed(b"".join(data))
    life.get(ack=True)
    send_back(life)
    found: list[LocalDelivery] = []
    LocalSession(
        life.broker, life.queue("q"), prefetch=10, on_delivery=found.append,
        on_cancel=lambda: None,
    )  # fmt: skip
    life.turns()
    headers = [each.message.properties.headers or {} for each in found]
    assert [found.get(COUNT) for found in headers] == [1, None]
    assert [each.message.body for each in found] == [b"b", b"c"]
    for each in found:
        each.ack()
    assert facts(life) == []


def test_a_queue_that_ends_takes_its_counts_with_it(life: Life) -> None:
    life.publish(b"a")
    send_back(life)
    owner = queue_owner(life.queue("q").id)
    assert life.broker.facts.held(Kind.DELIVERY_COUNT, owner)
    life.client.call("Queue.Delete", queue="q")
    life.write()
    life.declare("q", arguments=LIMITED)
    assert not life.broker.facts.held(Kind.DELIVERY_COUNT, owner)
    life.publish(b"b", properties=PERSISTENT)
    assert send_back(life)[0].headers.get(COUNT) is None
