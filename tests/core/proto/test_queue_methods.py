"""Class queue (AMQP 0-9-1 1.7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.amqp import Client, Reply, make_broker, method, names, publish

LOCKED = (
    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine' in vhost '/'. It "
    "could be originally declared on another connection or the exclusive property value does not "
    "match that of the original declaration."
)


@pytest.fixture
def client() -> Client:
    return Client(make_broker())


def refused(replies: list[Reply]) -> tuple[int, str]:
    (close,) = replies
    assert close.name == "Channel.Close"
    return close["reply_code"], close["reply_text"]


def allow(client: Client, configure: str = "", write: str = "", read: str = "") -> Client:
    """Sets what `guest` may do; gives a fresh client."""
    client.broker.users.set_permissions("guest", "/", configure, write, read)
    return Client(client.broker)


# -- declare


def test_declare_counts_messages_and_consumers(client: Client) -> None:
    client.declare("q")
    client.publish(b"x", routing_key="q")
    client.publish(b"x", routing_key="q")
    ok = client.call("Queue.Declare", queue="q")
    assert (ok["queue"], ok["message_count"], ok["consumer_count"]) == ("q", 2, 0)
    client.consume("q")
    ok = client.call("Queue.Declare", queue="q", passive=True)
    assert (ok["message_count"], ok["consumer_count"]) == (0, 1)


def test_what_the_same_read_published_is_counted(client: Client) -> None:
    client.declare("q")
    row = b"".join(publish(1, b"x", routing_key="q") for _ in range(40))
    (ok,) = client.feed(row + method(1, "Queue.Declare", queue="q", passive=True))
    assert ok["message_count"] == 40


def test_what_consumers_take_of_the_same_read_is_not_counted(client: Client) -> None:
    client.declare("q")
    client.consume("q")
    declare = method(1, "Queue.Declare", queue="q", passive=True)
    delivery, ok = client.feed(publish(1, b"x", routing_key="q") + declare)
    assert (delivery.name, ok["message_count"]) == ("Basic.Deliver", 0)


def test_server_names(client: Client) -> None:
    first = client.call("Queue.Declare")["queue"]
    assert first.startswith("amq.gen-")
    assert len(first) == len("amq.gen-") + 22
    assert client.call("Queue.Declare")["queue"] != first


def test_nowait(client: Client) -> None:
    assert client.send("Queue.Declare", queue="q", nowait=True) == []
    assert client.messages("q") == 0


def test_passive_of_none(client: Client) -> None:
    assert refused(client.send("Queue.Declare", queue="q", passive=True)) == (
        404, "NOT_FOUND - no queue 'q' in vhost '/'",
    )  # fmt: skip


def test_reserved_name(client: Client) -> None:
    assert refused(client.send("Queue.Declare", queue="amq.q")) == (
        403, "ACCESS_REFUSED - queue name 'amq.q' contains reserved prefix 'amq.*'",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["a\nb", "a\r"])
def test_line_end_in_a_name(client: Client, name: str) -> None:
    assert refused(client.send("Queue.Declare", queue=name))[0] == 406


def test_exclusive_is_for_its_connection_alone(client: Client) -> None:
    client.declare("mine", exclusive=True)
    for name, fields in (
        ("Queue.Declare", {"exclusive": True}),
        ("Queue.Declare", {"passive": True}),
        ("Queue.Bind", {"exchange": "amq.fanout"}),
        ("Queue.Purge", {}),
        ("Queue.Delete", {}),
        ("Basic.Consume", {}),
        ("Basic.Get", {}),
    ):
        other = Client(client.broker)
        assert refused(other.send(name, queue="mine", **fields)) == (405, LOCKED), name
    client.declare("mine", exclusive=True)


def test_exclusive_does_not_fit_a_shared_one(client: Client) -> None:
    client.declare("mine")
    assert refused(client.send("Queue.Declare", queue="mine", exclusive=True)) == (405, LOCKED)


def test_exclusive_ends_with_its_connection(client: Client) -> None:
    client.declare("mine", exclusive=True, durable=True)
    client.send("Channel.Close")
    assert "mine" in client.broker.vhosts["/"].queues
    client.connection.lost()
    assert "mine" not in client.broker.vhosts["/"].queues


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ({}, {"durable": True},
         "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is "
         "'false'"),
        ({"auto_delete": True}, {},
         "inequivalent arg 'auto_delete' for queue 'q' in vhost '/': received 'false' but current "
         "is 'true'"),
        ({}, {"arguments": {"x-max-length": 5}},
         "inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received the value '5' of "
         "type 'signedint' but current is none"),
        ({"arguments": {"x-expires": 60_000}}, {"arguments": {"x-expires": 60_001}},
         "inequivalent arg 'x-expires' for queue 'q' in vhost '/': received '60001' but current "
         "is '60000'"),
    ],
)  # fmt: skip
def test_redeclared_differently(
    client: Client, first: dict[str, Any], second: dict[str, Any], text: str
) -> None:
    client.declare("q", **first)
    client.declare("q", **first)
    assert refused(client.send("Queue.Declare", queue="q", **second)) == (
        406, f"PRECONDITION_FAILED - {text}",
    )  # fmt: skip


def test_bad_argument(client: Client) -> None:
    code, text = refused(client.send("Queue.Declare", queue="q", arguments={"x-message-ttl": -1}))
    assert code == 406
    assert text.startswith("PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'q'")
    assert client.broker.vhosts["/"].queues == {}


def test_reply_queue_may_be_asked_for(client: Client) -> None:
    assert client.call("Queue.Declare", queue="amq.rabbitmq.reply-to")["consumer_count"] == 1
    assert refused(client.send("Queue.Declare", queue="amq.rabbitmq.reply-to.nobody"))[0] == 404


# -- bind, unbind


def test_bind_and_unbind(client: Client) -> None:
    client.declare("q")
    for _ in range(2):
        ok = client.call("Queue.Bind", queue="q", exchange="amq.direct", routing_key="k")
        assert ok.name == "Queue.BindOk"
    client.publish(b"x", exchange="amq.direct", routing_key="k")
    assert client.messages("q") == 1
    for _ in range(2):
        ok = client.call("Queue.Unbind", queue="q", exchange="amq.direct", routing_key="k")
        assert ok.name == "Queue.UnbindOk"
    client.publish(b"x", exchange="amq.direct", routing_key="k")
    assert client.messages("q") == 1


def test_bind_with_both_names_empty(client: Client) -> None:
    client.declare("q")
    client.call("Queue.Bind", exchange="amq.direct")
    client.publish(b"x", exchange="amq.direct", routing_key="q")
    assert client.messages("q") == 1
    client.call("Queue.Unbind", exchange="amq.direct")
    client.publish(b"x", exchange="amq.direct", routing_key="q")
    assert client.messages("q") == 1


def test_bind_nowait(client: Client) -> None:
    client.declare("q")
    assert client.send("Queue.Bind", queue="q", exchange="amq.fanout", nowait=True) == []
    client.publish(b"x", exchange="amq.fanout")
    assert client.messages("q") == 1


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"queue": "none", "exchange": "amq.fanout"}, "NOT_FOUND - no queue 'none' in vhost '/'"),
        ({"queue": "q", "exchange": "none"}, "NOT_FOUND - no exchange 'none' in vhost '/'"),
    ],
)
def test_a_binding_needs_its_ends_and_its_end_does_not(
    client: Client, fields: dict[str, Any], text: str
) -> None:
    client.declare("q")
    assert client.call("Queue.Unbind", **fields).name == "Queue.UnbindOk"
    assert refused(client.send("Queue.Bind", **fields)) == (404, text)


@pytest.mark.parametrize("name", ["Queue.Bind", "Queue.Unbind"])
def test_nothing_is_bound_to_the_default_exchange(client: Client, name: str) -> None:
    client.declare("q")
    assert refused(client.send(name, queue="q")) == (
        403, "ACCESS_REFUSED - operation not permitted on the default exchange",
    )  # fmt: skip


def test_bind_without_any_queue(client: Client) -> None:
    assert refused(client.send("Queue.Bind", exchange="amq.fanout")) == (
        404, "NOT_FOUND - no previously declared queue",
    )  # fmt: skip


# -- purge, delete


def test_purge_counts_the_ready_ones(client: Client) -> None:
    client.declare("q")
    row = b"".join(publish(1, b"x", routing_key="q") for _ in range(5))
    client.feed(row)
    client.call("Basic.Get", queue="q")
    assert client.call("Queue.Purge", queue="q")["message_count"] == 4
    assert client.messages("q") == 0
    client.send("Basic.Reject", delivery_tag=1, requeue=True)
    assert client.messages("q") == 1


def test_purge_of_none(client: Client) -> None:
    assert refused(client.send("Queue.Purge", queue="q"))[0] == 404


def test_delete_counts_the_ready_ones(client: Client) -> None:
    client.declare("q")
    client.publish(b"x", routing_key="q")
    assert client.call("Queue.Delete", queue="q")["message_count"] == 1
    assert client.call("Queue.Delete", queue="q")["message_count"] == 0


def test_delete_if_unused(client: Client) -> None:
    client.declare("q")
    client.consume("q")
    assert refused(client.send("Queue.Delete", queue="q", if_unused=True)) == (
        406, "PRECONDITION_FAILED - queue 'q' in vhost '/' in use",
    )  # fmt: skip


def test_delete_if_empty(client: Client) -> None:
    client.declare("q")
    client.publish(b"x", routing_key="q")
    assert refused(client.send("Queue.Delete", queue="q", if_empty=True)) == (
        406, "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty",
    )  # fmt: skip
    assert client.messages("q") == 1


@pytest.mark.parametrize("name", ["Queue.Purge", "Queue.Delete"])
def test_no_answer_if_none_is_wanted(client: Client, name: str) -> None:
    client.declare("q")
    assert client.send(name, queue="q", nowait=True) == []


@pytest.mark.parametrize("name", ["Queue.Purge", "Queue.Delete"])
def test_empty_name_is_the_last_declared(client: Client, name: str) -> None:
    client.declare("first")
    client.declare("last")
    client.publish(b"x", routing_key="last")
    assert client.call(name)["message_count"] == 1


# -- rights


def test_configure_is_needed_to_declare_and_delete(client: Client) -> None:
    client.declare("q")
    for name in ("Queue.Declare", "Queue.Delete"):
        assert refused(allow(client, write=".*", read=".*").send(name, queue="q")) == (
            403,
            "ACCESS_REFUSED - configure access to queue 'q' in vhost '/' refused for user 'guest'",
        )


def test_dead_lettering_needs_read_and_write(client: Client) -> None:
    arguments = {"x-dead-letter-exchange": "dead"}
    for write, read in (("^dead$", ""), ("", "^q$")):
        other = allow(client, ".*", write, read)
        assert refused(other.send("Queue.Declare", queue="q", arguments=arguments))[0] == 403
    allow(client, ".*", "^dead$", "^q$").declare("q", arguments=arguments)


def test_bind_needs_write_on_the_queue_and_read_on_the_exchange(client: Client) -> None:
    client.declare("q")
    for write, read in (("^q$", ""), ("", "fanout")):
        other = allow(client, ".*", write, read)
        assert refused(other.send("Queue.Bind", queue="q", exchange="amq.fanout"))[0] == 403
    other = allow(client, "", "^q$", "fanout")
    assert names(other.send("Queue.Bind", queue="q", exchange="amq.fanout")) == ["Queue.BindOk"]


def test_read_is_needed_to_purge(client: Client) -> None:
    client.declare("q")
    assert refused(allow(client, ".*", ".*").send("Queue.Purge", queue="q"))[0] == 403
