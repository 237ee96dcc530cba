"""The policy key `delayed-message` (LavinMQ): exchanges begin and stop to delay messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.life import Life
from tests.support.amqp import Client
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.route.registry import exchange_types

from .support import clear, later, policies, put


@pytest.fixture
def client(client: Client) -> Client:
    bound(client)
    return client


def bound(client: Client, **fields: bool) -> None:
    client.call("Exchange.Declare", exchange="news", exchange_type="topic", **fields)
    client.declare("mail", **fields)
    client.call("Queue.Bind", queue="mail", exchange="news", routing_key="a.#")


def publish(client: Client, delay: int | None = 100) -> None:
    headers = {} if delay is None else {"x-delay": delay}
    properties = {"headers": headers, "delivery_mode": 2}
    client.publish(b"m", properties, exchange="news", routing_key="a.b")


def test_delayed_messages_are_released_after_the_policy_is_cleared(
    broker: Broker, client: Client, clock: ManualClock
) -> None:
    put(broker, "p", "^news$", delayed_message=True)
    publish(client)
    clear(broker, "p")
    publish(client)
    assert client.messages("mail") == 1
    later(broker, clock, 101)
    assert client.messages("mail") == 2
    put(broker, "p", "^news$", delayed_message=True)
    publish(client)
    assert client.messages("mail") == 2
    put(broker, "p", "^news$", delayed_message=False)
    publish(client)
    assert client.messages("mail") == 3


DELAYING = ("x-delayed-message",)
KEEPING = ("x-recent-history",)
OTHERS = sorted(exchange_types.keys() - {*DELAYING, *KEEPING})


@pytest.mark.parametrize("kind", [*OTHERS, *DELAYING])
def test_exchanges_of_all_types(
    broker: Broker, client: Client, clock: ManualClock, kind: str
) -> None:
    arguments = {"x-delayed-type": "direct"} if kind in DELAYING else {}
    client.call("Exchange.Declare", exchange="x", exchange_type=kind, arguments=arguments)
    client.call("Queue.Bind", queue="mail", exchange="x", routing_key="1")
    put(broker, "p", "^x$", delayed_message=True)
    client.publish(b"m", {"headers": {"x-delay": 5}}, exchange="x", routing_key="1")
    assert client.messages("mail") == 0
    later(broker, clock, 6)
    assert client.messages("mail") == 1
    clear(broker, "p")
    client.publish(b"m", {"headers": {"x-delay": 5}}, exchange="x", routing_key="1")
    assert client.messages("mail") == (1 if kind in DELAYING else 2)


def test_exchanges_that_store_messages_are_not_delayed(broker: Broker, client: Client) -> None:
    client.call(
        "Exchange.Declare", exchange="kept", exchange_type="topic",
        arguments={"x-persist-messages": 5},
    )  # fmt: skip
    put(broker, "p", "kept|recent", delayed_message=True, alternate_exchange="a")
    client.call("Exchange.Declare", exchange="recent", exchange_type="x-recent-history")
    for name in ("kept", "recent"):
        found = broker.vhosts["/"].exchanges[name]
        assert (policies(broker).of(found), found.alternate) == (None, None)


@pytest.mark.parametrize("is_cleared", [False, True])
def test_delayed_messages_survive_a_crash(tmp_path: Path, is_cleared: bool) -> None:
    life = Life(tmp_path)
    bound(life.client, durable=True)
    put(life.broker, "p", "^news$", delayed_message=True)
    publish(life.client, 5_000)
    if is_cleared:
        clear(life.broker, "p")
    life.write()
    client = life.crash()
    life.turns()
    assert client.messages("mail") == 0
    publish(client, 5_000)
    assert client.messages("mail") == is_cleared
    life.turns(5, each_ms=1_001)
    assert client.messages("mail") == 2
    client.call("Exchange.Delete", exchange="news")
    life.write()
    life.restart()
    assert life.broker.vhosts["/"].inner_queues == {}
    life.abandon()
