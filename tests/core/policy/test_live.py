"""Policies and the messages that are there already: what goes is what the policy asks to go."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.amqp import Client, bodies, make_broker, names, take_turns
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock

from .support import clear, put


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(clock: ManualClock) -> Broker:
    return make_broker(clock=clock)


@pytest.fixture
def client(broker: Broker) -> Client:
    client = Client(broker)
    client.declare("mail")
    client.declare("dead")
    return client


def fill(client: Client, count: int = 5) -> None:
    for number in range(1, count + 1):
        client.publish(str(number).encode(), routing_key="mail")


def rest(client: Client, queue: str = "mail") -> str:
    """The bodies that are ready, taken out."""
    found = []
    while (reply := client.call("Basic.Get", queue=queue, no_ack=True)).name == "Basic.GetOk":
        found.append(reply.body.decode())
    return " ".join(found)


def reasons(client: Client) -> list[str]:
    """Why messages are in the dead-letter queue, by x-death, taken out."""
    found = []
    while (reply := client.call("Basic.Get", queue="dead", no_ack=True)).name == "Basic.GetOk":
        death: Any = reply.headers["x-death"][0]
        found.append(f"{reply.body.decode()} {death['reason']}")
    return found


DEAD: dict[str, Any] = {"dead_letter_exchange": "", "dead_letter_routing_key": "dead"}


# -- limits


def test_what_is_over_a_new_limit_goes_oldest_first(broker: Broker, client: Client) -> None:
    fill(client)
    put(broker, "p", "^mail$", max_length=2, **DEAD)
    assert client.messages("mail") == 2
    assert reasons(client) == ["1 maxlen", "2 maxlen", "3 maxlen"]
    assert rest(client) == "4 5"


def test_without_a_dead_letter_exchange_it_is_dropped(broker: Broker, client: Client) -> None:
    fill(client)
    put(broker, "p", "^mail$", max_length=2)
    assert rest(client) == "4 5"
    assert client.messages("dead") == 0


def test_a_limit_in_bytes(broker: Broker, client: Client) -> None:
    for body in (b"a" * 10, b"b" * 10, b"c" * 5):
        client.publish(body, routing_key="mail")
    put(broker, "p", "^mail$", max_length_bytes=15)
    assert rest(client) == "b" * 10 + " " + "c" * 5
    client.publish(b"d" * 16, routing_key="mail")
    assert rest(client) == ""


def test_a_limit_that_goes_leaves_what_is_there(broker: Broker, client: Client) -> None:
    put(broker, "p", "^mail$", max_length=2)
    fill(client)
    clear(broker, "p")
    assert client.messages("mail") == 2
    fill(client, 3)
    assert rest(client) == "4 5 1 2 3"


def test_the_limit_of_the_arguments_is_back(broker: Broker, client: Client) -> None:
    client.declare("small", arguments={"x-max-length": 3})
    put(broker, "p", "^small$", max_length=1)
    for number in range(5):
        client.publish(b"%d" % number, routing_key="small")
    assert client.messages("small") == 1
    clear(broker, "p")
    for number in range(5):
        client.publish(b"%d" % number, routing_key="small")
    assert rest(client, "small") == "2 3 4"


def test_a_queue_that_refuses_keeps_what_is_over_the_limit(broker: Broker, client: Client) -> None:
    client.call("Confirm.Select")
    fill(client)
    put(broker, "p", "^mail$", max_length=2, overflow="reject-publish")
    assert names(client.publish(b"6", routing_key="mail")) == ["Basic.Nack"]
    assert rest(client) == "1 2 3 4 5"
    assert names(client.publish(b"7", routing_key="mail")) == ["Basic.Ack"]


def test_what_is_unacked_is_not_over_a_limit(broker: Broker, client: Client) -> None:
    fill(client)
    client.call("Basic.Qos", prefetch_count=3)
    assert bodies(client.consume("mail")) == [b"1", b"2", b"3"]
    put(broker, "p", "^mail$", max_length=1)
    assert client.messages("mail") == 1
    client.feed(b"")
    assert bodies(client.send("Basic.Ack", delivery_tag=3, multiple=True)) == [b"5"]


def test_an_operator_policy_limits_what_a_policy_allows(broker: Broker, client: Client) -> None:
    put(broker, "p", "^mail$", max_length=4)
    fill(client)
    put(broker, "o", "^mail$", operator=True, max_length=2)
    assert rest(client) == "4 5"
    clear(broker, "o", operator=True)
    fill(client)
    assert rest(client) == "2 3 4 5"


# -- times


def later(broker: Broker, clock: ManualClock, ms: int) -> None:
    clock.advance(ms)
    take_turns(broker)


def test_messages_get_the_time_that_they_would_have_had(
    broker: Broker, client: Client, clock: ManualClock
) -> None:
    fill(client, 1)
    later(broker, clock, 60)
    client.publish(b"2", routing_key="mail")
    put(broker, "p", "^mail$", message_ttl=50, **DEAD)
    later(broker, clock, 1)
    assert reasons(client) == ["1 expired"]
    later(broker, clock, 48)
    assert client.messages("mail") == 1
    later(broker, clock, 3)
    assert (reasons(client), client.messages("mail")) == (["2 expired"], 0)


def test_a_time_that_goes_lets_messages_stay(
    broker: Broker, client: Client, clock: ManualClock
) -> None:
    put(broker, "p", "^mail$", message_ttl=50)
    fill(client)
    later(broker, clock, 49)
    clear(broker, "p")
    later(broker, clock, 1000)
    assert rest(client) == "1 2 3 4 5"


def test_a_longer_time_counts_from_the_beginning(
    broker: Broker, client: Client, clock: ManualClock
) -> None:
    put(broker, "p", "^mail$", message_ttl=50)
    fill(client, 1)
    later(broker, clock, 40)
    put(broker, "p", "^mail$", message_ttl=100)
    later(broker, clock, 59)
    assert client.messages("mail") == 1
    later(broker, clock, 2)
    assert client.messages("mail") == 0


def test_a_messages_own_time_stays(broker: Broker, client: Client, clock: ManualClock) -> None:
    client.publish(b"1", {"expiration": "50"}, routing_key="mail")
    client.publish(b"2", {"expiration": "500"}, routing_key="mail")
    put(broker, "p", "^mail$", message_ttl=100)
    clear(broker, "p")
    later(broker, clock, 51)
    assert client.messages("mail") == 1
    later(broker, clock, 450)
    assert client.messages("mail") == 0


def test_what_comes_back_has_the_time_of_now(
    broker: Broker, client: Client, clock: ManualClock
) -> None:
    """Unacked messages are not looked at when a policy comes, but when they are requeued."""
    fill(client, 1)
    client.consume("mail")
    put(broker, "p", "^mail$", message_ttl=50)
    later(broker, clock, 40)
    client.send("Basic.Cancel", consumer_tag="c")
    client.send("Basic.Nack", delivery_tag=1, requeue=True)
    assert client.messages("mail") == 1
    later(broker, clock, 11)
    assert client.messages("mail") == 0


def test_an_unused_queue_goes_by_policy(broker: Broker, client: Client, clock: ManualClock) -> None:
    put(broker, "p", "^mail$", expires=100)
    later(broker, clock, 99)
    clear(broker, "p")
    later(broker, clock, 1000)
    put(broker, "p", "^mail$", expires=100)
    later(broker, clock, 99)
    assert "mail" in broker.vhosts["/"].queues
    later(broker, clock, 2)
    assert set(broker.vhosts["/"].queues) == {"dead"}


# -- dead letters


def test_where_dead_letters_go_is_asked_when_they_die(broker: Broker, client: Client) -> None:
    fill(client, 3)
    client.consume("mail")
    client.send("Basic.Reject", delivery_tag=1)
    put(broker, "p", "^mail$", **DEAD)
    client.send("Basic.Reject", delivery_tag=2)
    clear(broker, "p")
    client.send("Basic.Reject", delivery_tag=3)
    assert reasons(client) == ["2 rejected"]


def test_the_key_alone_may_come_by_policy(broker: Broker, client: Client) -> None:
    client.declare("own", arguments={"x-dead-letter-exchange": ""})
    put(broker, "p", "^own$", dead_letter_routing_key="dead", max_length=0)
    client.publish(b"1", routing_key="own")
    assert reasons(client) == ["1 maxlen"]


def test_a_delivery_limit_by_policy(broker: Broker, client: Client) -> None:
    fill(client, 1)
    put(broker, "p", "^mail$", delivery_limit=1, **DEAD)
    client.consume("mail")
    client.send("Basic.Nack", delivery_tag=1, requeue=True)
    assert client.messages("dead") == 0
    client.send("Basic.Nack", delivery_tag=2, requeue=True)
    assert reasons(client) == ["1 delivery_limit"]


# -- order and redelivery


def test_what_stays_keeps_its_order(broker: Broker, client: Client, clock: ManualClock) -> None:
    fill(client)
    put(broker, "p", "^mail$", message_ttl=1000)
    client.publish(b"6", routing_key="mail")
    put(broker, "p", "^mail$", max_length=100)
    client.publish(b"7", routing_key="mail")
    clear(broker, "p")
    client.publish(b"8", routing_key="mail")
    later(broker, clock, 5000)
    assert rest(client) == "1 2 3 4 5 6 7 8"
