"""Limits of virtual hosts and users (amqp.md sections 2, 3, 5 and 8); the texts are RabbitMQ's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.definitions.support import new_broker, restarted
from tests.core.held import held
from tests.support.amqp import Client, Reply, make_broker, method, names
from warrenmq.core.broker import Broker
from warrenmq.core.errors import ChannelError
from warrenmq.core.resources.limits import VhostLimits

CONNECTIONS, CHANNELS, QUEUES = "max-connections", "max-channels", "max-queues"


@pytest.fixture
def broker() -> Broker:
    broker = make_broker()
    broker.add_vhost("v")
    for user in ("guest", "tony"):
        if broker.users.get(user) is None:
            broker.users.add_hashed(user, broker.users.password_hash("guest"))
        for vhost in ("/", "v"):
            broker.users.set_permissions(user, vhost, ".*", ".*", ".*")
    return broker


def refused(broker: Broker, code: int, **options: Any) -> str:
    """The reply text of a connection that is not let in."""
    client = None
    with pytest.raises(AssertionError, match="not let in") as refusal:
        client = Client(broker, **options)
    assert client is None
    text = str(refusal.value)
    assert f"'reply_code': {code}" in text
    return text


def close(client: Client) -> None:
    assert client.call("Connection.Close", reply_code=200).name == "Connection.CloseOk"


class TestConnections:
    @pytest.mark.parametrize("limits", [{}, {CONNECTIONS: -1}])
    def test_unlimited(self, broker: Broker, limits: dict[str, int]) -> None:
        broker.vhosts["v"].limits.set({CONNECTIONS: 0})
        broker.vhosts["v"].limits.set(limits)
        broker.users.set_limits("guest", limits)
        for _ in range(5):
            Client(broker, vhost="v")

    def test_new_limit_keeps_open_connections(self, broker: Broker) -> None:
        clients = [Client(broker, vhost="v") for _ in range(3)]
        broker.vhosts["v"].limits.set({CONNECTIONS: 1})
        for client in clients:
            client.declare("q")
        refused(broker, 530, vhost="v")

    def test_refused_connections_are_not_counted(self, broker: Broker) -> None:
        broker.users.set_limits("tony", {CONNECTIONS: 1})
        broker.vhosts["v"].limits.set({CONNECTIONS: 1})
        Client(broker, user="tony")
        for _ in range(3):
            refused(broker, 530, user="tony", vhost="v")
        Client(broker, vhost="v")

    def test_permissions_are_checked_before_limits(self, broker: Broker) -> None:
        broker.vhosts["v"].limits.set({CONNECTIONS: 0})
        broker.users.clear_permissions("tony", "v")
        text = refused(broker, 530, user="tony", vhost="v")
        assert "access to vhost 'v' refused for user 'tony'\"" in text

    def test_closed_connections_are_forgotten(self, broker: Broker) -> None:
        before = len(held(broker.occupancy))
        for _ in range(3):
            close(Client(broker, vhost="v"))
        assert len(held(broker.occupancy)) == before


class TestChannels:
    @staticmethod
    def open(client: Client, number: int) -> Reply:
        return client.call("Channel.Open", number)

    def test_channels_are_counted_over_all_connections_of_a_user(self, broker: Broker) -> None:
        broker.users.set_limits("tony", {CHANNELS: 3})
        first, second = Client(broker, user="tony"), Client(broker, user="tony")
        assert self.open(first, 2).name == "Channel.OpenOk"
        assert self.open(second, 2)["reply_code"] == 530
        # With the connection went its channel.
        assert self.open(first, 3).name == "Channel.OpenOk"
        assert names(first.send("Channel.Close", 3, reply_code=200)) == ["Channel.CloseOk"]
        assert self.open(first, 4).name == "Channel.OpenOk"

    def test_connection_closed_by_an_error_is_not_counted(self, broker: Broker) -> None:
        broker.users.set_limits("tony", {CHANNELS: 1})
        client = Client(broker, user="tony")
        assert client.call("Queue.Purge", queue="absent").name == "Channel.Close"
        assert self.open(client, 2).name == "Channel.OpenOk"

    def test_set_and_cleared_while_connected(self, broker: Broker) -> None:
        client = Client(broker, user="tony")
        broker.users.set_limit("tony", CHANNELS, 1)
        broker.users.set_limit("tony", CHANNELS, None)
        assert self.open(client, 2).name == "Channel.OpenOk"
        broker.users.set_limit("tony", CHANNELS, 2)
        assert self.open(client, 3).name == "Connection.Close"


class TestQueues:
    def test_exclusive_queue_counts_until_it_is_deleted(self, broker: Broker) -> None:
        broker.vhosts["/"].limits.set({QUEUES: 1})
        owner, other = Client(broker), Client(broker)
        owner.declare("a", exclusive=True)
        owner.send("Connection.Close")
        other.declare("b")

    def test_inner_queues_are_not_counted(self, broker: Broker) -> None:
        vhost = broker.vhosts["/"]
        vhost.limits.set({QUEUES: 1})
        client = Client(broker)
        for name, kind, arguments in (
            ("d", "x-delayed-message", {"x-delayed-type": "fanout"}),
            ("p", "topic", {"x-persist-messages": 5}),
        ):
            made = client.call(
                "Exchange.Declare", exchange=name, exchange_type=kind, arguments=arguments
            )
            assert made.name == "Exchange.DeclareOk"
        assert len(vhost.inner_queues) == 2
        client.declare("a")


class NoStorage:
    def save_limits(self, limits: Any) -> None:
        """Nothing is kept here."""


class TestValues:
    @pytest.mark.parametrize(
        ("limits", "text"),
        [
            ({"max-channels": 1}, "vhost 'v' has no limit 'max-channels'; its limits are max-conn"),
            ({QUEUES: "5"}, "limit 'max-queues' of vhost 'v' must be an integer, not '5'"),
            ({QUEUES: True}, "must be an integer, not True"),
            ({QUEUES: 5.0}, "must be an integer, not 5.0"),
            ({QUEUES: None}, "must be an integer, not None"),
        ],
    )
    def test_invalid_limit_is_refused(self, limits: dict[str, Any], text: str) -> None:
        own = VhostLimits("v", NoStorage())
        own.set({QUEUES: 3})
        for wanted in (limits, {CONNECTIONS: 1, **limits}):
            with pytest.raises(ChannelError) as refusal:
                own.set(wanted)
            assert refusal.value.code == 406
            assert text in str(refusal.value)
        assert own.as_table() == {QUEUES: 3}


def test_limits_survive_a_restart() -> None:
    broker, store = new_broker()
    broker.vhosts["/"].limits.set({CONNECTIONS: 5, QUEUES: 7})
    broker.users.set_limits("guest", {CHANNELS: 9})
    broker, store = restarted(store)
    assert broker.vhosts["/"].limits.as_table() == {CONNECTIONS: 5, QUEUES: 7}
    assert broker.users.existing("guest").limits == {CHANNELS: 9}
    broker.vhosts["/"].limits.set({})
    broker.users.set_limits("guest", {})
    broker, _ = restarted(store)
    assert broker.vhosts["/"].limits.as_table() == {}
    assert broker.users.existing("guest").limits == {}


def test_queues_over_the_limit_are_restored() -> None:
    broker, store = new_broker()
    for name in ("a", "b"):
        broker.vhosts["/"].declare_queue(name, durable=True)
    broker.vhosts["/"].limits.set({QUEUES: 1})
    broker, _ = restarted(store)
    assert set(broker.vhosts["/"].queues) == {"a", "b"}


def test_connection_without_close_ok_is_not_counted() -> None:
    broker = make_broker()
    broker.users.set_limits("guest", {CONNECTIONS: 1})
    client = Client(broker)
    (closed,) = client.feed(method(7, "Basic.Qos"))
    assert closed.name == "Connection.Close"
    Client(broker)
