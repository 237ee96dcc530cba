"""Delayed messages beyond `tests/conformance/test_s4_delayed.py`, on a manual clock."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.held import held_of
from tests.support.amqp import Client, Reply, bodies, make_broker, publish, take_turns
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.queue_entry import MessageRange
from warrenmq.core.queue.delay import RELEASES_AT_ONCE, DelayQueue

DAY_MS = 86_400_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def client(clock: ManualClock) -> Client:
    """With a delaying direct exchange `x` and a queue `q`, bound by the key `k`."""
    client = Client(make_broker(clock=clock))
    declare(client)
    bind(client, "q")
    return client


def declare(client: Client, exchange: str = "x", inner: str = "direct", **arguments: Any) -> None:
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    answer = client.call(
        "Exchange.Declare", exchange=exchange, exchange_type="x-delayed-message",
        arguments={"x-delayed-type": inner} | given,
    )  # fmt: skip
    assert answer.name == "Exchange.DeclareOk"


def bind(client: Client, queue: str, exchange: str = "x", key: str = "k", **fields: Any) -> None:
    client.declare(queue)
    client.call("Queue.Bind", queue=queue, exchange=exchange, routing_key=key, **fields)


def send(
    client: Client, delay: object, body: bytes = b"m", exchange: str = "x", key: str = "k",
    **properties: Any,
) -> list[Reply]:  # fmt: skip
    headers = {"x-delay": delay, **properties.pop("headers", {})}
    found = {"headers": headers, **properties}
    return client.publish(body, found, exchange=exchange, routing_key=key)


def wait(client: Client, clock: ManualClock, ms: int) -> None:
    clock.advance(ms)
    take_turns(client.broker)


def drain(client: Client, queue: str = "q") -> list[Reply]:
    found = []
    while (reply := client.call("Basic.Get", queue=queue, no_ack=True)).name == "Basic.GetOk":
        found.append(reply)
    return found


def delay_queue(client: Client, exchange: str = "x") -> DelayQueue:
    queue = client.broker.vhosts["/"].exchanges[exchange].inner
    assert isinstance(queue, DelayQueue)
    return queue


@pytest.mark.parametrize("delay", [5_000, 2**32 - 1])
def test_message_is_delivered_when_due(client: Client, clock: ManualClock, delay: int) -> None:
    send(client, delay)
    assert (client.messages("q"), delay_queue(client).ready_count) == (0, 1)
    wait(client, clock, delay - 1)
    assert client.messages("q") == 0
    wait(client, clock, 1)
    assert bodies(drain(client)) == [b"m"]
    assert delay_queue(client).ready_count == 0


def test_order_is_kept_over_many_turns(client: Client, clock: ManualClock) -> None:
    count = 3 * RELEASES_AT_ONCE
    stream = [
        publish(1, b"%d" % number, {"headers": {"x-delay": 1 + number * 7 % 50}},
                exchange="x", routing_key="k")
        for number in range(count)
    ]  # fmt: skip
    client.feed(b"".join(stream))
    clock.advance(60)
    client.broker.tick()
    assert client.broker.turn()
    assert client.messages("q") < count
    take_turns(client.broker)
    expected = sorted(range(count), key=lambda number: (number * 7 % 50, number))
    assert bodies(client.consume("q")) == [b"%d" % number for number in expected]


def test_expiration_counts_from_the_release(client: Client, clock: ManualClock) -> None:
    send(client, 1_000, expiration="500")
    wait(client, clock, 1_000)
    assert client.messages("q") == 1
    wait(client, clock, 499)
    assert client.messages("q") == 1
    wait(client, clock, 1)
    assert client.messages("q") == 0


def test_message_routed_by_another_exchange_is_delayed(client: Client, clock: ManualClock) -> None:
    client.call("Exchange.Bind", source="amq.fanout", destination="x")
    bind(client, "now", "amq.fanout")
    send(client, 50, exchange="amq.fanout")
    assert (client.messages("now"), client.messages("q")) == (1, 0)
    wait(client, clock, 50)
    (found,) = drain(client)
    assert (found["exchange"], found.headers["x-delay"]) == ("amq.fanout", -50)
    assert drain(client, "now")[0].headers["x-delay"] == 50


DYING = {"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "k"}


def test_dead_letter_is_delayed_once(client: Client, clock: ManualClock) -> None:
    client.declare("work", arguments=DYING)
    for waits in (True, False):
        headers = {"x-delay": 50 if waits else -50}
        client.publish(b"m", {"headers": headers}, routing_key="work")
        tag = client.call("Basic.Get", queue="work")["delivery_tag"]
        client.send("Basic.Reject", delivery_tag=tag)
        assert client.messages("q") == (0 if waits else 1)
        wait(client, clock, 50)
        (found,) = drain(client)
        assert found.headers["x-delay"] == -50
        assert [death["queue"] for death in found.headers["x-death"]] == ["work"]


def test_a_dead_letter_with_a_bad_delay_is_not_lost(client: Client) -> None:
    client.declare("work", arguments=DYING)
    client.publish(b"m", {"headers": {"x-delay": "soon"}}, routing_key="work")
    tag = client.call("Basic.Get", queue="work")["delivery_tag"]
    client.send("Basic.Reject", delivery_tag=tag)
    (found,) = drain(client)
    assert found.headers["x-delay"] == "soon"


def test_a_queue_that_refuses_a_released_message(client: Client, clock: ManualClock) -> None:
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.call("Queue.Bind", queue="full", exchange="x", routing_key="k")
    send(client, 50)
    wait(client, clock, 50)
    assert (client.messages("q"), client.messages("full"), delay_queue(client).ready_count) == (
        1,
        0,
        0,
    )


def test_messages_being_released_end_with_their_exchange(
    client: Client, clock: ManualClock
) -> None:
    for _ in range(RELEASES_AT_ONCE):
        send(client, 50)
    clock.advance(50)
    client.broker.tick()
    client.broker.turn()
    released = client.messages("q")
    assert 0 < released < RELEASES_AT_ONCE
    vhost = client.broker.vhosts["/"]
    vhost.delete_exchange("x")
    again = vhost.declare_exchange(
        "x", "x-delayed-message", durable=False, auto_delete=False, internal=False,
        arguments={"x-delayed-type": "direct"},
    )  # fmt: skip
    vhost.bindings.add(again, vhost.queue("q"), "k", {})
    take_turns(client.broker)
    assert client.messages("q") == released


def test_released_messages_free_their_memory(client: Client, clock: ManualClock) -> None:
    send(client, DAY_MS)
    queue = delay_queue(client)
    for _ in range(40):
        for _ in range(20):
            send(client, 5_000)
        wait(client, clock, 5_000)
        client.call("Queue.Purge", queue="q")
    assert queue.ready_count == 1
    assert held_of(queue, MessageRange) <= 513
