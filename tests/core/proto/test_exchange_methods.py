"""Class exchange (AMQP 0-9-1 1.6, and bindings between exchanges)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.amqp import Client, Reply, make_broker, names

DEFAULT = "ACCESS_REFUSED - operation not permitted on the default exchange"


@pytest.fixture
def client() -> Client:
    return Client(make_broker())


def refused(replies: list[Reply]) -> tuple[int, str]:
    (close,) = replies
    assert close.name == "Channel.Close"
    return close["reply_code"], close["reply_text"]


def declare(client: Client, name: str, kind: str = "fanout", **fields: Any) -> None:
    ok = client.call("Exchange.Declare", exchange=name, exchange_type=kind, **fields)
    assert ok.name == "Exchange.DeclareOk"


def bind(client: Client, source: str, destination: str, key: str = "") -> None:
    ok = client.call("Exchange.Bind", source=source, destination=destination, routing_key=key)
    assert ok.name == "Exchange.BindOk"


def allow(client: Client, configure: str = "", write: str = "", read: str = "") -> Client:
    client.broker.users.set_permissions("guest", "/", configure, write, read)
    return Client(client.broker)


# -- declare


@pytest.mark.parametrize(
    "name",
    ["amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match", "amq.rabbitmq.trace"],
)
def test_predeclared(client: Client, name: str) -> None:
    ok = client.call("Exchange.Declare", exchange=name, passive=True)
    assert ok.name == "Exchange.DeclareOk"


def test_again_and_differently(client: Client) -> None:
    declare(client, "x", durable=True)
    declare(client, "x", durable=True)
    assert refused(
        client.send("Exchange.Declare", exchange="x", exchange_type="direct", durable=True)
    ) == (
        406,
        "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': received "
        "'direct' but current is 'fanout'",
    )


def test_nowait(client: Client) -> None:
    assert client.send("Exchange.Declare", exchange="x", exchange_type="topic", nowait=True) == []
    assert client.call("Exchange.Declare", exchange="x", passive=True).name == "Exchange.DeclareOk"


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({"exchange": "x", "exchange_type": "odd"}, 406,
         "PRECONDITION_FAILED - unknown exchange type 'odd'"),
        ({"exchange": "", "exchange_type": "direct"}, 403, DEFAULT),
        ({"exchange": "", "passive": True}, 403, DEFAULT),
        ({"exchange": "x", "passive": True}, 404, "NOT_FOUND - no exchange 'x' in vhost '/'"),
        ({"exchange": "amq.x", "exchange_type": "direct"}, 403,
         "ACCESS_REFUSED - exchange name 'amq.x' contains reserved prefix 'amq.*'"),
    ],
)  # fmt: skip
def test_refused_declarations(client: Client, fields: dict[str, Any], code: int, text: str) -> None:
    assert refused(client.send("Exchange.Declare", **fields)) == (code, text)


def test_line_end_in_a_name(client: Client) -> None:
    replies = client.send("Exchange.Declare", exchange="a\nb", exchange_type="direct")
    assert refused(replies)[0] == 406
    assert "a\nb" not in client.broker.vhosts["/"].exchanges


# -- delete


def test_delete(client: Client) -> None:
    declare(client, "x")
    for _ in range(2):
        assert client.call("Exchange.Delete", exchange="x").name == "Exchange.DeleteOk"
    assert "x" not in client.broker.vhosts["/"].exchanges
    assert client.send("Exchange.Delete", exchange="x", nowait=True) == []


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({"exchange": ""}, 403, DEFAULT),
        ({"exchange": "amq.topic"}, 403,
         "ACCESS_REFUSED - deletion of system exchange 'amq.topic' in vhost '/' not allowed"),
        ({"exchange": "x", "if_unused": True}, 406,
         "PRECONDITION_FAILED - exchange 'x' in vhost '/' in use"),
    ],
)  # fmt: skip
def test_refused_deletions(client: Client, fields: dict[str, Any], code: int, text: str) -> None:
    declare(client, "x")
    bind(client, "x", "amq.fanout")
    assert refused(client.send("Exchange.Delete", **fields)) == (code, text)


def test_if_unused_looks_at_what_is_bound_to_it(client: Client) -> None:
    declare(client, "x")
    bind(client, "amq.fanout", "x")
    assert client.call("Exchange.Delete", exchange="x", if_unused=True).name == "Exchange.DeleteOk"
    client.call("Channel.Open", 2)
    assert client.publish(b"x", exchange="amq.fanout", mandatory=True)[0].name == "Basic.Return"


# -- bind, unbind


def test_from_exchange_to_exchange(client: Client) -> None:
    declare(client, "outer", "topic")
    declare(client, "inner")
    client.declare("q")
    client.call("Queue.Bind", queue="q", exchange="inner")
    bind(client, "outer", "inner", "eu.*")
    client.publish(b"x", exchange="outer", routing_key="eu.fr")
    client.publish(b"x", exchange="outer", routing_key="us.ny")
    assert client.messages("q") == 1
    for _ in range(2):
        ok = client.call("Exchange.Unbind", source="outer", destination="inner", routing_key="eu.*")
        assert ok.name == "Exchange.UnbindOk"
    client.publish(b"x", exchange="outer", routing_key="eu.fr")
    assert client.messages("q") == 1


@pytest.mark.parametrize("name", ["Exchange.Bind", "Exchange.Unbind"])
def test_no_answer_if_none_is_wanted(client: Client, name: str) -> None:
    assert client.send(name, source="amq.fanout", destination="amq.topic", nowait=True) == []


@pytest.mark.parametrize("name", ["Exchange.Bind", "Exchange.Unbind"])
@pytest.mark.parametrize(("source", "destination"), [("", "amq.fanout"), ("amq.fanout", "")])
def test_nothing_is_bound_to_the_default_exchange(
    client: Client, name: str, source: str, destination: str
) -> None:
    assert refused(client.send(name, source=source, destination=destination)) == (403, DEFAULT)


@pytest.mark.parametrize(
    ("source", "destination"), [("none", "amq.fanout"), ("amq.fanout", "none")]
)
def test_a_binding_needs_its_ends_and_its_end_does_not(
    client: Client, source: str, destination: str
) -> None:
    ends: dict[str, Any] = {"source": source, "destination": destination}
    assert client.call("Exchange.Unbind", **ends).name == "Exchange.UnbindOk"
    assert refused(client.send("Exchange.Bind", **ends)) == (
        404, "NOT_FOUND - no exchange 'none' in vhost '/'",
    )  # fmt: skip


def test_auto_delete_with_the_last_binding_from_it(client: Client) -> None:
    declare(client, "x", auto_delete=True)
    declare(client, "y", auto_delete=True)
    bind(client, "amq.fanout", "x")
    bind(client, "x", "y")
    client.declare("q")
    client.call("Queue.Bind", queue="q", exchange="y")
    client.call("Queue.Delete", queue="q")
    # y dies with its queue, x with y.
    assert not {"x", "y"} & client.broker.vhosts["/"].exchanges.keys()


# -- rights


def test_configure_is_needed(client: Client) -> None:
    for name in ("Exchange.Declare", "Exchange.Delete"):
        other = allow(client, "^y$", ".*", ".*")
        kind: dict[str, Any] = {"exchange_type": "fanout"} if name == "Exchange.Declare" else {}
        assert refused(other.send(name, exchange="x", **kind)) == (
            403,
            "ACCESS_REFUSED - configure access to exchange 'x' in vhost '/' refused for user "
            "'guest'",
        )


def test_an_alternate_needs_read_and_write(client: Client) -> None:
    fields: dict[str, Any] = {
        "exchange": "x", "exchange_type": "fanout", "arguments": {"alternate-exchange": "rest"},
    }  # fmt: skip
    for write, read in (("^rest$", ""), ("", "^x$")):
        assert (
            refused(allow(client, ".*", write, read).send("Exchange.Declare", **fields))[0] == 403
        )
    other = allow(client, ".*", "^rest$", "^x$")
    assert names(other.send("Exchange.Declare", **fields)) == ["Exchange.DeclareOk"]


def test_bind_needs_write_on_the_destination_and_read_on_the_source(client: Client) -> None:
    ends: dict[str, Any] = {"source": "amq.fanout", "destination": "amq.topic"}
    for write, read in (("topic", ""), ("", "fanout")):
        assert refused(allow(client, ".*", write, read).send("Exchange.Bind", **ends))[0] == 403
    other = allow(client, "", "topic", "fanout")
    assert names(other.send("Exchange.Bind", **ends)) == ["Exchange.BindOk"]
