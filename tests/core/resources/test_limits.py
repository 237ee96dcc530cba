"""Limits of virtual hosts and users (amqp.md sections 2, 3, 5 and 8); the texts are RabbitMQ's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.definitions.support import new_broker, restarted
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
    def test_in_a_vhost(self, broker: Broker) -> None:
        broker.vhosts["v"].limits.set({CONNECTIONS: 2})
        first, _ = Client(broker, vhost="v"), Client(broker, vhost="v", user="tony")
        assert (
            "NOT_ALLOWED - access to vhost 'v' refused for user 'guest': connection limit (2) is "
            "reached"
        ) in refused(broker, 530, vhost="v")
        Client(broker)
        close(first)
        Client(broker, vhost="v")

    def test_of_a_user(self, broker: Broker) -> None:
        broker.users.set_limits("tony", {CONNECTIONS: 2})
        first, _ = Client(broker, user="tony"), Client(broker, vhost="v", user="tony")
        assert (
            "NOT_ALLOWED - connection refused for user 'tony': user connection limit (2) is reached"
        ) in refused(broker, 530, user="tony")
        Client(broker)
        first.connection.lost()
        Client(broker, user="tony")

    def test_none_at_all(self, broker: Broker) -> None:
        broker.vhosts["v"].limits.set({CONNECTIONS: 0})
        assert "connection limit (0) is reached" in refused(broker, 530, vhost="v")

    @pytest.mark.parametrize("limits", [{}, {CONNECTIONS: -1}])
    def test_unlimited(self, broker: Broker, limits: dict[str, int]) -> None:
        broker.vhosts["v"].limits.set({CONNECTIONS: 0})
        broker.vhosts["v"].limits.set(limits)
        broker.users.set_limits("guest", limits)
        for _ in range(5):
            Client(broker, vhost="v")

    def test_who_is_in_stays(self, broker: Broker) -> None:
        clients = [Client(broker, vhost="v") for _ in range(3)]
        broker.vhosts["v"].limits.set({CONNECTIONS: 1})
        for client in clients:
            client.declare("q")
        refused(broker, 530, vhost="v")

    def test_who_was_refused_is_not_counted(self, broker: Broker) -> None:
        broker.users.set_limits("tony", {CONNECTIONS: 1})
        broker.vhosts["v"].limits.set({CONNECTIONS: 1})
        Client(broker, user="tony")
        for _ in range(3):
            refused(broker, 530, user="tony", vhost="v")
        Client(broker, vhost="v")

    def test_rights_are_asked_first(self, broker: Broker) -> None:
        """Who may not enter learns nothing of how many are inside."""
        broker.vhosts["v"].limits.set({CONNECTIONS: 0})
        broker.users.clear_permissions("tony", "v")
        text = refused(broker, 530, user="tony", vhost="v")
        assert "access to vhost 'v' refused for user 'tony'\"" in text

    def test_nothing_is_left_of_who_has_gone(self, broker: Broker) -> None:
        for _ in range(3):
            close(Client(broker, vhost="v"))
        occupancy = broker.occupancy
        assert not (occupancy._in_vhost or occupancy._of_user or occupancy._vhosts)


class TestChannels:
    @staticmethod
    def open(client: Client, number: int) -> Reply:
        return client.call("Channel.Open", number)

    def test_of_a_user_on_all_connections_together(self, broker: Broker) -> None:
        broker.users.set_limits("tony", {CHANNELS: 3})
        first, second = Client(broker, user="tony"), Client(broker, user="tony")
        assert self.open(first, 2).name == "Channel.OpenOk"
        refusal = self.open(second, 2)
        assert (refusal.name, refusal["reply_code"]) == ("Connection.Close", 530)
        assert refusal["reply_text"] == (
            "NOT_ALLOWED - number of channels opened for user 'tony' has reached the maximum "
            "allowed user limit of (3)"
        )
        assert (refusal["class_id"], refusal["method_id"]) == (20, 10)
        # With the connection went its channel.
        assert self.open(first, 3).name == "Channel.OpenOk"
        assert names(first.send("Channel.Close", 3, reply_code=200)) == ["Channel.CloseOk"]
        assert self.open(first, 4).name == "Channel.OpenOk"

    def test_one_that_was_closed_for_an_error_has_gone(self, broker: Broker) -> None:
        broker.users.set_limits("tony", {CHANNELS: 1})
        client = Client(broker, user="tony")
        assert client.call("Queue.Purge", queue="absent").name == "Channel.Close"
        assert self.open(client, 2).name == "Channel.OpenOk"

    def test_others_have_their_own(self, broker: Broker) -> None:
        broker.users.set_limits("tony", {CHANNELS: 0})
        assert self.open(Client(broker), 2).name == "Channel.OpenOk"

    def test_set_and_cleared_while_connected(self, broker: Broker) -> None:
        client = Client(broker, user="tony")
        broker.users.set_limit("tony", CHANNELS, 1)
        broker.users.set_limit("tony", CHANNELS, None)
        assert self.open(client, 2).name == "Channel.OpenOk"
        broker.users.set_limit("tony", CHANNELS, 2)
        assert self.open(client, 3).name == "Connection.Close"


class TestQueues:
    def test_in_a_vhost(self, broker: Broker) -> None:
        broker.vhosts["v"].limits.set({QUEUES: 2})
        client = Client(broker, vhost="v")
        client.declare("a")
        client.declare("")
        client.declare("a")
        for name in ("c", ""):
            refusal = client.call("Queue.Declare", queue=name)
            assert refusal["reply_code"] == 406
            assert refusal["reply_text"].startswith(
                "PRECONDITION_FAILED - cannot declare queue '" + (name or "amq.gen-")
            )
            assert refusal["reply_text"].endswith("': queue limit in vhost 'v' (2) is reached")
            client.send("Channel.CloseOk")
            client.send("Channel.Open")
        Client(broker).declare("elsewhere")
        client.call("Queue.Delete", queue="a")
        client.declare("c")

    def test_an_exclusive_one_counts_until_it_ends(self, broker: Broker) -> None:
        broker.vhosts["/"].limits.set({QUEUES: 1})
        owner, other = Client(broker), Client(broker)
        owner.declare("a", exclusive=True)
        owner.send("Connection.Close")
        other.declare("b")

    def test_what_exchanges_keep_messages_in_is_no_queue(self, broker: Broker) -> None:
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

    def test_replies_are_no_queues(self, broker: Broker) -> None:
        broker.vhosts["/"].limits.set({QUEUES: 0})
        assert Client(broker).consume("amq.rabbitmq.reply-to", no_ack=True) == []

    def test_set_and_cleared(self, broker: Broker) -> None:
        limits = broker.vhosts["/"].limits
        limits.set_one(QUEUES, 0)
        client = Client(broker)
        assert client.call("Queue.Declare", queue="a").name == "Channel.Close"
        client.send("Channel.CloseOk")
        client.send("Channel.Open")
        limits.set_one(QUEUES, None)
        client.declare("a")


class NoKeeper:
    def keep_limits(self, limits: Any) -> None:
        """Nothing is kept here."""


class TestValues:
    @pytest.mark.parametrize(
        ("limits", "text"),
        [
            ({"max-channels": 1}, "vhost 'v' has no limit 'max-channels'; its limits are max-conn"),
            ({"max-foo": 1}, "vhost 'v' has no limit 'max-foo'"),
            ({QUEUES: "5"}, "limit 'max-queues' of vhost 'v' has to be an integer, '5' is none"),
            ({QUEUES: True}, "has to be an integer, True is none"),
            ({QUEUES: 5.0}, "has to be an integer, 5.0 is none"),
            ({QUEUES: None}, "has to be an integer, None is none"),
            ({QUEUES: -2}, "limit 'max-queues' of vhost 'v' is -2: 0 or more is needed, or -1 for"),
            ({QUEUES: 2**63}, "0 or more is needed"),
        ],
    )
    def test_what_is_no_limit(self, limits: dict[str, Any], text: str) -> None:
        own = VhostLimits("v", NoKeeper())
        own.set({QUEUES: 3})
        for wanted in (limits, {CONNECTIONS: 1, **limits}):
            with pytest.raises(ChannelError) as refusal:
                own.set(wanted)
            assert refusal.value.code == 406
            assert text in str(refusal.value)
        assert own.as_table() == {QUEUES: 3}

    def test_one_by_one(self) -> None:
        own = VhostLimits("v", NoKeeper())
        own.set_one(QUEUES, 3)
        own.set_one(CONNECTIONS, -1)
        assert own.as_table() == {QUEUES: 3, CONNECTIONS: -1}
        assert (own[QUEUES], own[CONNECTIONS]) == (3, -1)
        own.set_one(QUEUES, None)
        own.set_one(QUEUES, None)
        assert own.as_table() == {CONNECTIONS: -1}
        assert own[QUEUES] == -1
        with pytest.raises(ChannelError, match="no limit 'max-foo'"):
            own.set_one("max-foo", None)


def test_they_come_back_after_a_restart() -> None:
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


def test_a_queue_that_was_kept_comes_back_over_the_limit() -> None:
    broker, store = new_broker()
    for name in ("a", "b"):
        broker.vhosts["/"].declare_queue(name, durable=True)
    broker.vhosts["/"].limits.set({QUEUES: 1})
    broker, _ = restarted(store)
    assert set(broker.vhosts["/"].queues) == {"a", "b"}


def test_a_close_that_stays_unanswered_is_not_counted() -> None:
    """Who was sent away has left, whether or not it says so."""
    broker = make_broker()
    broker.users.set_limits("guest", {CONNECTIONS: 1})
    client = Client(broker)
    (closed,) = client.feed(method(7, "Basic.Qos"))
    assert closed.name == "Connection.Close"
    Client(broker)
