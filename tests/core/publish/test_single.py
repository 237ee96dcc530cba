"""Publishing one message: checks, copies and routes that the conformance tests do not reach."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.support.amqp import Client, make_broker, names, publish
from warrenmq.core.proto.target_cache import TARGETS_MAX
from warrenmq.core.route import at_random

QUEUES = ("q", "other", "blind")
REJECT = {"x-max-length": 0, "x-overflow": "reject-publish"}


@pytest.fixture
def client() -> Client:
    client = Client(make_broker())
    for queue in QUEUES:
        client.declare(queue)
    return client


def counts(client: Client) -> list[int]:
    return [client.messages(queue) for queue in QUEUES]


def exchange(
    client: Client, name: str, kind: str, *queues: str, key: str = "", **more: object
) -> None:
    arguments = {name.replace("_", "-"): value for name, value in more.items()}
    client.call("Exchange.Declare", exchange=name, exchange_type=kind, arguments=arguments)
    for queue in queues:
        client.call("Queue.Bind", queue=queue, exchange=name, routing_key=key)


def bind_headers(client: Client, queue: str, kind: str) -> None:
    client.call("Queue.Bind", queue=queue, exchange="amq.headers", arguments={"kind": kind})


def exhaust_targets(client: Client) -> None:
    """Publishes with more keys than are cached: later ones share a target."""
    keys = [
        publish(1, b"", exchange="amq.topic", routing_key=f"a.{n}") for n in range(TARGETS_MAX + 9)
    ]
    client.feed(b"".join(keys))


# -- properties


@pytest.mark.parametrize("text", ["0", "5", "315360000000", "007"])
def test_a_good_expiration_is_accepted(client: Client, text: str) -> None:
    assert client.publish(b"x", {"expiration": text}, routing_key="q") == []


def test_impersonator_may_use_any_user_id(client: Client) -> None:
    client.connection.user.tags = frozenset({"impersonator"})
    assert client.publish(b"x", {"user_id": "boss"}, routing_key="q") == []


def test_other_properties_survive_the_removal_of_bcc(client: Client) -> None:
    properties = {
        "content_type": "t", "headers": {"BCC": ["blind"], "é": "ü"}, "delivery_mode": 2,
        "priority": 5, "message_id": "m", "timestamp": 1_700_000_000, "app_id": "a",
    }  # fmt: skip
    client.publish(b"x", properties, routing_key="q")
    found = client.call("Basic.Get", queue="q").properties
    assert found is not None
    assert found.headers == {"é": "ü"}
    assert (found.content_type, found.delivery_mode, found.priority) == ("t", 2, 5)
    assert (found.message_id, found.app_id) == ("m", "a")


def test_cc_inside_another_header_is_ignored(client: Client) -> None:
    headers = {"x": "CC", "y": {"CC": 5}}
    client.publish(b"x", {"headers": headers}, routing_key="q")
    assert client.call("Basic.Get", queue="q").headers == headers


def test_similar_reply_to_is_not_direct_reply_to(client: Client) -> None:
    client.publish(b"?", {"reply_to": "amq.rabbitmq.reply-tO"}, routing_key="q")
    found = client.call("Basic.Get", queue="q").properties
    assert found is not None and found.reply_to == "amq.rabbitmq.reply-tO"


# -- copies


def test_copies_go_through_the_same_exchange(client: Client) -> None:
    client.call("Queue.Bind", queue="q", exchange="amq.topic", routing_key="a.*")
    client.call("Queue.Bind", queue="other", exchange="amq.topic", routing_key="b.*")
    client.publish(b"x", {"headers": {"CC": ["b.1", "c"]}}, exchange="amq.topic", routing_key="a.1")
    assert counts(client) == [1, 1, 0]


def test_an_inspected_message_of_a_shared_target_has_its_own_key(client: Client) -> None:
    client.call("Queue.Bind", queue="other", exchange="amq.topic", routing_key="b.#")
    exhaust_targets(client)
    client.publish(b"x", {"user_id": "guest"}, exchange="amq.topic", routing_key="b.new")
    assert counts(client) == [0, 1, 0]


# -- mandatory, immediate and confirms


def test_immediate_considers_publishes_of_the_same_read(client: Client) -> None:
    client.consume("q")
    stream = publish(1, b"x", routing_key="q") + publish(1, b"x", immediate=True, routing_key="q")
    assert names(client.feed(stream + stream)) == ["Basic.Deliver"] * 4


def test_alternate_of_an_immediate_message_routes_by_headers(client: Client) -> None:
    exchange(client, "x", "fanout", "q", alternate_exchange="amq.headers")
    bind_headers(client, "other", "a")
    client.consume("other")
    fields: dict[str, Any] = {"exchange": "x", "immediate": True}
    assert names(client.publish(b"x", {"headers": {"kind": "a"}}, **fields)) == ["Basic.Deliver"]
    assert names(client.publish(b"x", {"headers": {"kind": "b"}}, **fields)) == ["Basic.Return"]


def test_returned_immediate_message_leaves_no_id(client: Client) -> None:
    exchange(client, "x", "fanout", "q", x_message_deduplication=True)
    properties = {"headers": {"x-deduplication-header": "1"}}
    for immediate, expected in ((True, ["Basic.Return"]), (False, []), (False, [])):
        replies = client.publish(b"x", properties, exchange="x", immediate=immediate)
        assert names(replies) == expected
    assert counts(client) == [1, 0, 0]


def test_without_confirms_a_refusal_is_silent(client: Client) -> None:
    client.declare("short", arguments=REJECT)
    assert client.publish(b"x", routing_key="short") == []
    assert client.publish(b"x", routing_key="q") == []


# -- routes of each message


def test_headers_route_each_message(client: Client) -> None:
    bind_headers(client, "q", "a")
    bind_headers(client, "other", "b")
    stream = [
        publish(1, b"", {"headers": {"kind": kind}}, exchange="amq.headers") for kind in "aab"
    ]
    client.feed(b"".join(stream * 2))
    assert counts(client) == [4, 2, 0]


def test_shared_target_routes_by_headers(client: Client) -> None:
    """The first of the keys that share a target leads to no headers exchange."""
    client.call("Exchange.Bind", destination="amq.headers", source="amq.topic", routing_key="b.#")
    bind_headers(client, "q", "a")
    exhaust_targets(client)
    for kind in "ab":
        properties = {"headers": {"kind": kind}}
        client.publish(kind.encode(), properties, exchange="amq.topic", routing_key="b.new")
    assert counts(client) == [1, 0, 0]


@pytest.fixture
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_random, "chance", Random(3))


@pytest.mark.usefixtures("_seeded")
@pytest.mark.parametrize("transaction", [False, True])
def test_each_of_many_alike_messages_is_routed_separately(
    client: Client, transaction: bool
) -> None:
    exchange(client, "x", "x-random", *QUEUES)
    if transaction:
        client.call("Tx.Select")
    client.feed(publish(1, b"x", exchange="x", routing_key="k") * 3000)
    if transaction:
        assert counts(client) == [0, 0, 0]
        client.call("Tx.Commit")
    assert sum(counts(client)) == 3000
    assert counts(client) == [pytest.approx(1000, rel=0.1)] * 3


@pytest.mark.usefixtures("_seeded")
def test_a_random_choice_may_lead_to_a_headers_exchange(client: Client) -> None:
    exchange(client, "x", "x-random", "q")
    client.call("Exchange.Bind", destination="amq.headers", source="x")
    bind_headers(client, "other", "a")
    client.feed(publish(1, b"x", {"headers": {"kind": "a"}}, exchange="x") * 400)
    assert sum(counts(client)) == 400
    assert counts(client) == [pytest.approx(200, rel=0.2)] * 2 + [0]


def test_dead_letters_are_routed_by_a_property(client: Client) -> None:
    exchange(
        client, "x", "x-consistent-hash", "other", "blind", key="1", hash_property="message_id"
    )
    client.declare("dying", arguments={"x-dead-letter-exchange": "x", "x-message-ttl": 0})
    for number in range(40):
        properties = {"message_id": f"id-{number}"}
        client.publish(b"x", properties, exchange="x")
        client.publish(b"x", properties, routing_key="dying")
    assert sum(counts(client)) == 80
    for queue in ("other", "blind"):
        replies = [client.call("Basic.Get", queue=queue) for _ in range(client.messages(queue))]
        ids = Counter(reply.properties.message_id for reply in replies if reply.properties)
        assert len(ids) > 10
        assert set(ids.values()) == {2}
