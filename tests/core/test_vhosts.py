"""Virtual hosts and users that are deleted or changed while clients are connected."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import frames
from tests.core.definitions.support import NotingStore, new_broker, restarted
from tests.core.life import PERSISTENT
from tests.support.amqp import Client, MemoryTransport, method, names, read, take_turns
from tests.support.steps import STEPS_A_TURN, count_steps
from warrenmq.core.broker import Broker
from warrenmq.core.definitions.kinds import PolicyDefinition
from warrenmq.core.errors import ChannelError
from warrenmq.core.proto.connection import Connection
from warrenmq.core.vhosts import delete_vhost, put_vhost


@pytest.fixture
def started() -> tuple[Broker, NotingStore]:
    broker, store = new_broker()
    broker.users.add_hashed("tony", broker.users.password_hash("guest"))
    return broker, store


@pytest.fixture
def broker(started: tuple[Broker, NotingStore]) -> Broker:
    return started[0]


def furnish(broker: Broker, name: str) -> Client:
    """A vhost with one of everything in it; a client in it that consumes."""
    put_vhost(broker, name, {"description": "d", "tags": ["a"]})
    vhost = broker.vhosts[name]
    for user in ("guest", "tony"):
        broker.users.set_permissions(user, name, ".*", ".*", ".*")
        broker.users.set_topic_permission(user, name, "amq.topic", ".*", ".*")
    vhost.limits.set({"max-queues": 100})
    vhost.policies.set(PolicyDefinition(name, "p", "^q", "queues", 0, {"max-length": 9}))
    client = Client(broker, vhost=name)
    client.call("Exchange.Declare", exchange="x", exchange_type="topic", durable=True)
    client.call("Exchange.Declare", exchange="auto", exchange_type="fanout", durable=True,
                auto_delete=True, arguments={"alternate-exchange": "x"})  # fmt: skip
    client.call("Exchange.Bind", destination="auto", source="x", routing_key="#")
    client.call("Exchange.Bind", destination="amq.fanout", source="auto")
    client.declare("q", durable=True, arguments={"x-dead-letter-exchange": "x"})
    client.declare("own", exclusive=True)
    client.call("Queue.Bind", queue="q", exchange="amq.topic", routing_key="#")
    client.call("Queue.Bind", queue="q", exchange="auto")
    client.publish(b"waits", PERSISTENT, routing_key="q")
    client.consume("own")
    client.consume("amq.rabbitmq.reply-to", tag="r", no_ack=True)
    return client


class TestPut:
    def test_unstorable_properties_are_refused(self, broker: Broker) -> None:
        with pytest.raises(ChannelError, match="vhost 'v' can't be kept"):
            put_vhost(broker, "v", {"description": "\ud800"})
        assert "v" not in broker.vhosts
        put_vhost(broker, "v", {"description": "mail"})
        with pytest.raises(ChannelError, match="vhost 'v' can't be kept"):
            put_vhost(broker, "v", {"tags": ["\ud800"]})
        assert broker.vhosts["v"].properties == {"description": "mail"}

    @pytest.mark.parametrize(
        ("name", "properties", "text"),
        [
            ("", {}, "the name of a vhost has 0 bytes, 1 to 255"),
            ("\u00e4" * 128, {}, "has 256 bytes"),
            ("a\nb", {}, "non-printable characters"),
            ("v", {"description": 5}, "property 'description' of vhost 'v' is of type 'signedint'"),
            ("v", {"tags": "a"}, "property 'tags' of vhost 'v' is of type 'longstr', not a list"),
            ("v", {"tags": ["a", 5]}, "property 'tags' of vhost 'v'"),
        ],
    )
    def test_invalid_names_and_properties(
        self, broker: Broker, name: str, properties: dict[str, Any], text: str
    ) -> None:
        with pytest.raises(ChannelError) as refusal:
            put_vhost(broker, name, properties)
        assert refusal.value.code == 406
        assert text in str(refusal.value)
        assert list(broker.vhosts) == ["/"]


class TestDelete:
    def test_deletion_removes_all_definitions(self, started: tuple[Broker, NotingStore]) -> None:
        broker, store = started
        before = dict(store.definitions)
        furnish(broker, "v")
        assert len(store.definitions) > len(before) + 10
        delete_vhost(broker, "v")
        assert store.definitions == before
        for user in broker.users:
            assert set(user.permissions) <= {"/"}
            assert not user.topic_permissions
        restarted(store)

    def test_recreated_vhost_is_empty(self, broker: Broker) -> None:
        furnish(broker, "v")
        delete_vhost(broker, "v")
        assert put_vhost(broker, "v", {})
        vhost = broker.vhosts["v"]
        assert (vhost.queues, vhost.inner_queues, vhost.replies) == ({}, {}, {})
        assert vhost.limits.as_table() == {}
        assert not vhost.policies.records()
        with pytest.raises(AssertionError, match="access to vhost 'v' refused"):
            Client(broker, vhost="v")

    def test_many_queues_are_deleted_in_slices(
        self, started: tuple[Broker, NotingStore], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        count_steps(monkeypatch)
        broker, store = started
        before = dict(store.definitions)
        vhost = broker.add_vhost("v")
        count = 3 * STEPS_A_TURN
        for number in range(count):
            vhost.declare_queue(f"q{number}", durable=True)
        ended: list[bool] = []
        dropped: list[str] = []
        broker.on_deleted = lambda _vhost, _kind, name: dropped.append(name)
        delete_vhost(broker, "v", lambda: ended.append(True))
        turns = 1
        while not ended:
            assert 0 < len(dropped) <= STEPS_A_TURN
            dropped.clear()
            assert "v" not in broker.vhosts
            with pytest.raises(ChannelError, match="vhost 'v' is being deleted"):
                put_vhost(broker, "v", {})
            broker.turn()
            turns += 1
        assert turns >= 3
        assert store.definitions == before
        assert put_vhost(broker, "v", {})

    def test_queue_expires_during_the_deletion(
        self, broker: Broker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        count_steps(monkeypatch)
        vhost = broker.add_vhost("v")
        queues = [vhost.declare_queue(f"q{number}") for number in range(2 * STEPS_A_TURN)]
        delete_vhost(broker, "v")
        (last,) = queues[-1:]
        before = last.deleted
        broker.delete_queue(last)
        assert (before, last.deleted) == (False, True)
        take_turns(broker)
        assert not broker.ending

    def test_default_vhost_can_be_deleted(self, started: tuple[Broker, NotingStore]) -> None:
        broker, store = started
        put_vhost(broker, "v", {})
        broker.users.set_permissions("guest", "v", ".*", ".*", ".*")
        delete_vhost(broker, "/")
        Client(broker, vhost="v").declare("q", durable=True)
        again, _ = restarted(store)
        assert list(again.vhosts) == ["v"]
        Client(again, vhost="v").declare("q", durable=True)


class TestDeletedUsers:
    def test_a_login_in_progress_is_refused(self, broker: Broker) -> None:
        broker.users.set_permissions("tony", "/", ".*", ".*", ".*")
        transport = MemoryTransport()
        connection = Connection(broker, transport)
        start = method(0, "Connection.StartOk", mechanism="PLAIN", response="\0tony\0guest")
        connection.receive(frames.PROTOCOL_HEADER + start)
        take_turns(broker)
        for name, _, answer in transport.logins:
            answer(broker.users.get(name))
        take_turns(broker)
        assert names(read(transport.taken()))[-1] == "Connection.Tune"
        broker.users.remove("tony")
        take_turns(broker)
        assert read(transport.taken())[0]["reply_text"].endswith("user 'tony' is deleted")

    def test_recreated_user_can_log_in(self, broker: Broker) -> None:
        broker.users.remove("tony")
        broker.users.add_hashed("tony", broker.users.password_hash("guest"))
        broker.users.set_permissions("tony", "/", ".*", ".*", ".*")
        Client(broker, user="tony").declare("q")


class TestChangesApplyAtOnce:
    def test_topic_permissions(self, broker: Broker) -> None:
        client = Client(broker)
        client.declare("q")
        client.call("Queue.Bind", queue="q", exchange="amq.topic", routing_key="#")
        publish: dict[str, Any] = {"exchange": "amq.topic", "routing_key": "k"}
        client.publish(b"m", **publish)
        broker.users.set_topic_permission("guest", "/", "amq.topic", "^other", "")
        (closed,) = client.publish(b"m", **publish)
        assert "write access to topic 'k' in exchange 'amq.topic'" in closed["reply_text"]
        client.send("Channel.CloseOk")
        client.send("Channel.Open")
        broker.users.clear_topic_permissions("guest", "/", "amq.topic")
        client.publish(b"m", **publish)
        assert client.messages("q") == 2

    def test_clearing_permissions_keeps_the_connection(self, broker: Broker) -> None:
        """As with RabbitMQ, who is in stays and may do nothing."""
        client = Client(broker)
        broker.users.clear_permissions("guest", "/")
        assert client.call("Queue.Declare", queue="q")["reply_code"] == 403
