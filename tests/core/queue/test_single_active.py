"""x-single-active-consumer: who gets messages, and who when that one is gone or can't take any."""

from __future__ import annotations

import pytest

from tests.support.amqp import Client, bodies, make_broker, take_turns
from warrenmq.core.queue.consumer import Consumer
from warrenmq.core.queue.queue import Queue
from warrenmq.core.queue.rules import Rules
from warrenmq.core.queue.single_active import SingleActiveRing

from .support import House, Session, add, publish, ready

ACTIVE = {"x-single-active-consumer": True}


def made(house: House) -> Queue:
    return house.queue(single_active_consumer=True)


def consumers(queue: Queue, session: Session, count: int, prefetch: int = 0) -> list[Consumer]:
    return [add(queue, session, f"c{number}", prefetch=prefetch) for number in range(count)]


def test_the_first_one_gets_everything() -> None:
    house, session = House(), Session()
    queue = made(house)
    first, *_ = consumers(queue, session, 3)
    publish(house, queue, 30)
    house.turn()
    assert session.numbers(first) == list(range(1, 31))
    assert isinstance(queue.ring, SingleActiveRing)
    assert queue.ring.active is first


def test_a_higher_priority_does_not_take_over() -> None:
    house, session = House(), Session()
    queue = made(house)
    first = add(queue, session, "low")
    add(queue, session, "high", priority=10)
    publish(house, queue, 3)
    house.turn()
    assert session.numbers(first) == [1, 2, 3]


def test_without_credit_nobody_takes_its_place() -> None:
    """And what came meanwhile goes to it as soon as it has some again."""
    house, session = House(), Session()
    queue = made(house)
    first, second = consumers(queue, session, 2, prefetch=2)
    publish(house, queue, 5)
    house.turn()
    assert (session.numbers(first), session.numbers(second), ready(queue)) == (
        [1, 2],
        [],
        [3, 4, 5],
    )
    session.ack(first)
    house.turn()
    assert (session.numbers(first), ready(queue)) == ([3, 4], [5])


def test_when_it_goes_the_next_one_is_served_at_once() -> None:
    house, session = House(), Session()
    queue = made(house)
    first, second, third = consumers(queue, session, 3, prefetch=2)
    publish(house, queue, 5)
    house.turn()
    queue.remove_consumer(first)
    house.turn()
    assert (session.numbers(second), session.numbers(third)) == ([3, 4], [])
    queue.remove_consumer(second)
    house.turn()
    assert (session.numbers(third), ready(queue)) == ([5], [])


def test_its_unacked_messages_stay_with_it() -> None:
    house, session = House(), Session()
    queue = made(house)
    first, second = consumers(queue, session, 2)
    publish(house, queue, 3)
    house.turn()
    queue.remove_consumer(first)
    house.turn()
    assert (session.numbers(first), session.numbers(second)) == ([1, 2, 3], [])
    assert queue.unacked_count == 3
    (held,) = session.take_back(first)
    queue.requeue(held)
    house.turn()
    assert (session.numbers(second), session.redelivered()) == ([1, 2, 3], [True] * 3)


def test_one_that_waits_may_leave() -> None:
    house, session = House(), Session()
    queue = made(house)
    first, second, third = consumers(queue, session, 3)
    queue.remove_consumer(second)
    queue.remove_consumer(first)
    publish(house, queue, 2)
    house.turn()
    assert session.numbers(third) == [1, 2]


def test_the_next_one_may_have_no_credit_when_its_time_comes() -> None:
    """It had been asked about while it waited, and is served when it can take something."""
    house, session, stuck = House(), Session(), Session(room=0)
    queue = made(house)
    first = add(queue, session, "first")
    second = add(queue, stuck, "second")
    queue.remove_consumer(first)
    publish(house, queue, 2)
    house.turn()
    assert stuck.got == []
    stuck.room = 10
    second.reopen()
    house.turn()
    assert stuck.numbers() == [1, 2]


def test_a_ready_message_finds_nobody_while_the_active_one_is_full() -> None:
    """Others with credit don't count: for a TTL of 0, and for `immediate`."""
    house, session = House(), Session()
    queue = made(house)
    seen = [queue.has_ready_consumer]
    first, _ = consumers(queue, session, 2, prefetch=1)
    seen.append(queue.has_ready_consumer)
    publish(house, queue)
    house.turn()
    seen.append(queue.has_ready_consumer)
    session.ack(first)
    seen.append(queue.has_ready_consumer)
    assert seen == [False, True, False, True]


def test_the_last_one_leaves_an_empty_ring() -> None:
    house, session = House(), Session()
    queue = made(house)
    for consumer in consumers(queue, session, 3):
        queue.remove_consumer(consumer)
    assert queue.ring is None
    publish(house, queue)
    house.turn()
    assert (session.got, ready(queue)) == ([], [1])
    again = add(queue, session, "again")
    house.turn()
    assert session.numbers(again) == [1]


def test_other_rules_change_nothing_about_it() -> None:
    house, session = House(), Session()
    queue = made(house)
    first, second = consumers(queue, session, 2)
    queue.apply(Rules(single_active=True, max_length=5))
    publish(house, queue, 2)
    house.turn()
    assert (session.numbers(first), session.numbers(second)) == ([1, 2], [])


# -- channels


@pytest.fixture
def client() -> Client:
    return Client(make_broker())


def start(client: Client, prefetch: int = 0) -> None:
    """Two consumers on channels of their own."""
    client.declare("q", arguments=ACTIVE)
    for channel in (2, 3):
        client.send("Channel.Open", channel)
        client.call("Basic.Qos", channel, prefetch_count=prefetch)
        client.consume("q", f"c{channel}", channel)


@pytest.mark.parametrize("ends", ["Channel.Close", "Basic.Ack"])
def test_a_channel_that_ends_gives_it_all_to_the_next(client: Client, ends: str) -> None:
    """By its own will or for a mistake; what it had not acked included, in one piece."""
    start(client)
    replies = client.feed(b"")
    for body in (b"1", b"2"):
        replies += client.publish(body, routing_key="q")
    assert [reply.channel for reply in replies] == [2, 2]
    replies = client.send(ends, 2, **({"delivery_tag": 9} if ends == "Basic.Ack" else {}))
    delivered = [reply for reply in replies if reply.name == "Basic.Deliver"]
    assert [(reply.channel, reply.body, reply["redelivered"]) for reply in delivered] == [
        (3, b"1", True), (3, b"2", True),
    ]  # fmt: skip
    assert bodies(client.publish(b"3", routing_key="q")) == [b"3"]


def test_a_connection_that_ends_gives_it_to_another(client: Client) -> None:
    other = Client(client.broker)
    client.declare("q", arguments=ACTIVE)
    client.consume("q")
    assert other.consume("q") == []
    client.publish(b"1", routing_key="q")
    client.connection.lost()
    take_turns(client.broker)
    (reply,) = other.come()
    assert (reply.body, reply["redelivered"]) == (b"1", True)
