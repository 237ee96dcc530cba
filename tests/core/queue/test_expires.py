"""x-expires: a queue that nobody uses ends, and never before its time."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from tests.support.amqp import Client, make_broker, take_turns
from warrenmq.core.clock import ManualClock
from warrenmq.core.queue.queue import Queue

PERIOD_MS = 1_000


class House:
    """A queue `q` that expires."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.client = Client(make_broker(clock=self.clock))
        self.client.declare("q", arguments={"x-expires": PERIOD_MS})

    def wait(self, ms: int) -> bool:
        """Millisecond by millisecond near the end; gives whether the queue is there still."""
        for step in (ms - 2, 1, 1):
            self.clock.advance(step)
            take_turns(self.client.broker)
        return "q" in self.client.broker.vhosts["/"].queues


def consume_and_cancel(house: House) -> None:
    house.client.consume("q", "c")
    assert house.wait(10 * PERIOD_MS), "it has a consumer"
    house.client.send("Basic.Cancel", consumer_tag="c")


USES: dict[str, Callable[[House], object]] = {
    "get": lambda house: house.client.call("Basic.Get", queue="q"),
    "declare": lambda house: house.client.declare("q", arguments={"x-expires": PERIOD_MS}),
    "passive declare": lambda house: house.client.declare("q", passive=True),
    "consumer": consume_and_cancel,
}
NO_USES: dict[str, Callable[[House], object]] = {
    "publish": lambda house: house.client.publish(b"x", routing_key="q"),
    "bind": lambda house: house.client.call("Queue.Bind", queue="q", exchange="amq.fanout"),
    "purge": lambda house: house.client.call("Queue.Purge", queue="q"),
}


def test_it_ends_at_its_time_and_never_before() -> None:
    house = House()
    assert house.wait(PERIOD_MS - 1)
    house.clock.advance(1)
    take_turns(house.client.broker)
    assert not house.client.broker.vhosts["/"].queues


@pytest.mark.parametrize("use", USES)
def test_a_use_gives_it_its_full_period_again(use: str) -> None:
    house = House()
    assert house.wait(PERIOD_MS - 1)
    USES[use](house)
    assert house.wait(PERIOD_MS - 1)
    assert not house.wait(2)


@pytest.mark.parametrize("what", NO_USES)
def test_what_is_no_use(what: str) -> None:
    house = House()
    assert house.wait(PERIOD_MS - 1)
    NO_USES[what](house)
    assert not house.wait(2)


def test_what_is_unacked_does_not_hold_it() -> None:
    house = House()
    house.client.publish(b"x", routing_key="q")
    assert house.client.call("Basic.Get", queue="q").name == "Basic.GetOk"
    assert not house.wait(PERIOD_MS)
    tag = house.client.send("Basic.Nack", delivery_tag=1, requeue=True)
    assert tag == []


def test_a_deleted_queue_needs_no_collector() -> None:
    """Nothing of it may form a cycle: the collector looks at what got old after very long."""
    client = Client(make_broker())
    arguments = {"x-expires": 86_400_000, "x-message-ttl": 86_400_000, "x-max-length": 5}
    gc.collect()
    gc.disable()
    try:
        client.declare("q", arguments=arguments)
        client.publish(b"x", {}, routing_key="q")
        client.call("Queue.Delete", queue="q")
        client.call("Channel.Close", reply_code=200)  # which remembers its last route
        left = [found for found in gc.get_objects() if isinstance(found, Queue)]
    finally:
        gc.enable()
    assert left == []
