"""The default queue type of a virtual host."""

from __future__ import annotations

import pytest

from tests.support.amqp import Client, make_broker
from warrenmq.core.broker import Broker
from warrenmq.core.vhosts import put_vhost


@pytest.fixture
def broker() -> Broker:
    broker = make_broker()
    put_vhost(broker, "/", {"default_queue_type": "quorum"})
    return broker


@pytest.fixture
def client(broker: Broker) -> Client:
    return Client(broker)


def kinds(broker: Broker) -> dict[str, str]:
    return {name: queue.kind for name, queue in broker.vhosts["/"].queues.items()}


def test_named_durable_queue_has_the_default_type(broker: Broker, client: Client) -> None:
    client.declare("mail", durable=True)
    client.declare("own", durable=True, arguments={"x-queue-type": "classic"})
    assert kinds(broker) == {"mail": "quorum", "own": "classic"}
    client.declare("mail", durable=True)
    client.declare("mail", durable=True, arguments={"x-queue-type": "quorum"})
    (close,) = client.send(
        "Queue.Declare", queue="mail", durable=True, arguments={"x-queue-type": "classic"}
    )
    assert close["reply_code"] == 406


def test_queues_unfit_for_the_default_type_are_classic(broker: Broker, client: Client) -> None:
    client.declare("transient")
    client.declare("exclusive", durable=True, exclusive=True)
    client.declare("passing", durable=True, auto_delete=True)
    generated = client.call("Queue.Declare", queue="", durable=True)["queue"]
    assert set(kinds(broker).values()) == {"classic"}
    assert generated in kinds(broker)


def test_existing_queue_keeps_its_type(broker: Broker, client: Client) -> None:
    put_vhost(broker, "/", {})
    client.declare("old", durable=True)
    put_vhost(broker, "/", {"default_queue_type": "stream"})
    client.declare("old", durable=True)
    client.declare("new", durable=True)
    assert kinds(broker) == {"old": "classic", "new": "stream"}
