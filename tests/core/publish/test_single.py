"""The general door: what is refused, returned, copied, rewritten (AMQP 0-9-1 1.8.3.7-9)."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.conformance.frames import FRAME_MIN
from tests.support.amqp import Client, Reply, make_broker, names, publish
from warrenmq.core.broker import Limits
from warrenmq.core.route import at_random


@pytest.fixture(params=[True, False], ids=["fast", "cold"])
def client(request: pytest.FixtureRequest) -> Client:
    client = Client(make_broker(), fast=request.param)
    for queue in ("q", "other", "blind"):
        client.declare(queue)
    return client


def refused(replies: list[Reply]) -> str:
    (close,) = replies
    assert (close.name, close["class_id"], close["method_id"]) == ("Channel.Close", 60, 40)
    return f"{close['reply_code']} {close['reply_text']}"


def got(client: Client, queue: str) -> Reply:
    reply = client.call("Basic.Get", queue=queue, no_ack=True)
    assert reply.name == "Basic.GetOk"
    return reply


def counts(client: Client) -> list[int]:
    return [client.messages(queue) for queue in ("q", "other", "blind")]


# -- mandatory, immediate


def test_mandatory_without_a_route_comes_back_whole(client: Client) -> None:
    (back,) = client.publish(
        b"hello", {"content_type": "text/plain", "headers": {"a": 1}}, mandatory=True,
        exchange="amq.topic", routing_key="nobody",
    )  # fmt: skip
    assert back.name == "Basic.Return"
    assert (back["reply_code"], back["reply_text"]) == (312, "NO_ROUTE")
    assert (back["exchange"], back["routing_key"], back.body) == ("amq.topic", "nobody", b"hello")
    assert back.properties is not None
    assert (back.properties.content_type, back.headers) == ("text/plain", {"a": 1})


def test_mandatory_with_a_route_does_not(client: Client) -> None:
    assert client.publish(b"hello", mandatory=True, routing_key="q") == []
    assert client.messages("q") == 1


def test_the_return_comes_before_the_ack(client: Client) -> None:
    client.call("Confirm.Select")
    row = publish(1, b"a", routing_key="q") + publish(1, b"b", mandatory=True, routing_key="x")
    replies = client.feed(row + row)
    assert names(replies) == ["Basic.Return", "Basic.Return", "Basic.Ack"]
    assert (replies[2]["delivery_tag"], replies[2]["multiple"]) == (4, True)


def test_an_alternate_counts_as_routed(client: Client) -> None:
    client.call(
        "Exchange.Declare", exchange="x", exchange_type="direct",
        arguments={"alternate-exchange": "amq.fanout"},
    )  # fmt: skip
    client.call("Queue.Bind", queue="other", exchange="amq.fanout")
    assert client.publish(b"x", mandatory=True, exchange="x", routing_key="k") == []
    assert counts(client) == [0, 1, 0]


def test_returned_in_frames_of_the_size_agreed() -> None:
    client = Client(make_broker(), frame_max=FRAME_MIN)
    (back,) = client.publish(bytes(10_000), frame_max=FRAME_MIN, mandatory=True, routing_key="x")
    assert back.body == bytes(10_000)


def test_immediate_wants_a_consumer_that_is_ready(client: Client) -> None:
    (back,) = client.publish(b"x", immediate=True, routing_key="q")
    assert (back["reply_code"], back["reply_text"]) == (313, "NO_CONSUMERS")
    assert client.messages("q") == 0
    client.send("Basic.Qos", prefetch_count=1)
    client.consume("q")
    assert names(client.publish(b"x", immediate=True, routing_key="q")) == ["Basic.Deliver"]
    assert names(client.publish(b"x", immediate=True, routing_key="q")) == ["Basic.Return"]


def test_immediate_counts_what_the_same_read_published_before(client: Client) -> None:
    client.consume("q")
    stream = publish(1, b"x", routing_key="q") + publish(1, b"x", immediate=True, routing_key="q")
    assert names(client.feed(stream + stream)) == ["Basic.Deliver"] * 4


def test_immediate_goes_only_to_the_queues_that_have_one(client: Client) -> None:
    client.call("Queue.Bind", queue="q", exchange="amq.fanout")
    client.call("Queue.Bind", queue="other", exchange="amq.fanout")
    client.consume("other")
    assert names(client.publish(b"x", immediate=True, exchange="amq.fanout")) == ["Basic.Deliver"]
    assert counts(client) == [0, 0, 0]


# -- refused


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", " 5", "", "315360000001", "٣", "²"])
def test_bad_expiration(client: Client, text: str) -> None:
    replies = client.publish(b"x", {"expiration": text}, routing_key="q")
    assert refused(replies).startswith("406 PRECONDITION_FAILED - invalid expiration '")
    assert client.messages("q") == 0


@pytest.mark.parametrize("text", ["0", "5", "315360000000", "007"])
def test_good_expiration(client: Client, text: str) -> None:
    assert client.publish(b"x", {"expiration": text}, routing_key="q") == []


def test_user_id_is_the_users(client: Client) -> None:
    assert client.publish(b"x", {"user_id": "guest"}, routing_key="q") == []
    assert refused(client.publish(b"x", {"user_id": "boss"}, routing_key="q")) == (
        "406 PRECONDITION_FAILED - user_id property set to 'boss' but authenticated user was "
        "'guest'"
    )
    assert client.messages("q") == 1


def test_an_impersonator_may_use_any(client: Client) -> None:
    client.connection.user.tags = frozenset({"impersonator"})
    assert client.publish(b"x", {"user_id": "boss"}, routing_key="q") == []


@pytest.mark.parametrize("name", ["CC", "BCC"])
@pytest.mark.parametrize("value", ["other", 5, ["other", 5], {"a": "other"}])
def test_copies_to_no_array_of_strings(client: Client, name: str, value: object) -> None:
    replies = client.publish(b"x", {"headers": {name: value}}, routing_key="q")
    assert refused(replies).startswith(f"406 PRECONDITION_FAILED - invalid {name} header")
    assert counts(client) == [0, 0, 0]


def test_the_exchange_is_looked_at_before_the_properties(client: Client) -> None:
    replies = client.publish(b"x", {"expiration": "abc"}, exchange="none")
    assert refused(replies).startswith("404")


def test_size_is_looked_at_before_the_body_comes() -> None:
    client = Client(make_broker(limits=Limits(max_message_bytes=100)))
    client.declare("q")
    assert client.publish(bytes(100), routing_key="q") == []
    assert refused(client.publish(bytes(101), routing_key="q")) == (
        "406 PRECONDITION_FAILED - message size 101 is larger than configured max size 100"
    )
    assert client.messages("q") == 1


# -- CC, BCC


def test_copies(client: Client) -> None:
    headers = {"CC": ["other"], "BCC": ["blind"], "x": 1}
    client.publish(b"x", {"headers": headers}, routing_key="q")
    assert counts(client) == [1, 1, 1]
    for queue in ("q", "other", "blind"):
        reply = got(client, queue)
        assert reply.headers == {"CC": ["other"], "x": 1}
        assert (reply["routing_key"], reply.body) == ("q", b"x")


def test_copies_go_through_the_same_exchange(client: Client) -> None:
    client.call("Queue.Bind", queue="q", exchange="amq.topic", routing_key="a.*")
    client.call("Queue.Bind", queue="other", exchange="amq.topic", routing_key="b.*")
    client.publish(b"x", {"headers": {"CC": ["b.1", "c"]}}, exchange="amq.topic", routing_key="a.1")
    assert counts(client) == [1, 1, 0]


def test_copies_of_an_address_that_is_given_a_new_key_each_time(client: Client) -> None:
    """More keys than are remembered."""
    client.call("Queue.Bind", queue="q", exchange="amq.topic", routing_key="a.#")
    client.call("Queue.Bind", queue="other", exchange="amq.topic", routing_key="b.#")
    keys = (publish(1, b"", exchange="amq.topic", routing_key=f"a.{n}") for n in range(1100))
    client.feed(b"".join(keys))
    client.send("Queue.Purge", queue="q")
    client.publish(b"x", {"user_id": "guest"}, exchange="amq.topic", routing_key="b.new")
    assert counts(client) == [0, 1, 0]


def test_a_queue_gets_one_copy(client: Client) -> None:
    client.publish(b"x", {"headers": {"CC": ["q", "other", "other"]}}, routing_key="q")
    assert counts(client) == [1, 1, 0]


def test_a_copy_makes_a_mandatory_message_routed(client: Client) -> None:
    headers = {"BCC": ["blind"]}
    assert client.publish(b"x", {"headers": headers}, mandatory=True, routing_key="none") == []
    assert counts(client) == [0, 0, 1]


def test_cc_in_the_value_of_another_header_means_nothing(client: Client) -> None:
    headers = {"x": "CC", "y": {"CC": 5}}
    client.publish(b"x", {"headers": headers}, routing_key="q")
    assert got(client, "q").headers == headers


def test_other_properties_survive_bcc(client: Client) -> None:
    properties = {
        "content_type": "t", "headers": {"BCC": ["blind"], "é": "ü"}, "delivery_mode": 2,
        "priority": 5, "message_id": "m", "timestamp": 1_700_000_000, "app_id": "a",
    }  # fmt: skip
    client.publish(b"x", properties, routing_key="q")
    found = got(client, "q").properties
    assert found is not None
    assert found.headers == {"é": "ü"}
    assert (found.content_type, found.delivery_mode, found.priority) == ("t", 2, 5)
    assert (found.message_id, found.app_id) == ("m", "a")


# -- headers exchange


def test_headers_decide(client: Client) -> None:
    client.call("Queue.Bind", queue="q", exchange="amq.headers", arguments={"kind": "a"})
    client.call("Queue.Bind", queue="other", exchange="amq.headers", arguments={"kind": "b"})
    stream = b"".join(
        publish(1, b"x", {"headers": {"kind": kind}}, exchange="amq.headers") for kind in "aabaab"
    )
    client.feed(stream)
    assert counts(client) == [4, 2, 0]


def test_headers_decide_behind_one_of_more_keys_than_are_remembered(client: Client) -> None:
    """The first of the keys that share an address leads to no headers exchange."""
    client.call("Exchange.Bind", destination="amq.headers", source="amq.topic", routing_key="b.#")
    client.call("Queue.Bind", queue="q", exchange="amq.headers", arguments={"kind": "a"})
    keys = (publish(1, b"", exchange="amq.topic", routing_key=f"a.{n}") for n in range(1100))
    client.feed(b"".join(keys))
    for kind in "ab":
        properties = {"headers": {"kind": kind}}
        client.publish(kind.encode(), properties, exchange="amq.topic", routing_key="b.new")
    assert counts(client) == [1, 0, 0]
    assert got(client, "q").body == b"a"


def test_headers_decide_at_the_alternate_of_an_immediate_message(client: Client) -> None:
    declare_exchange(client, "x", "fanout", {"alternate-exchange": "amq.headers"})
    client.call("Queue.Bind", queue="q", exchange="x")
    client.call("Queue.Bind", queue="other", exchange="amq.headers", arguments={"kind": "a"})
    client.consume("other")
    fields: dict[str, Any] = {"exchange": "x", "immediate": True}
    assert names(client.publish(b"x", {"headers": {"kind": "a"}}, **fields)) == ["Basic.Deliver"]
    assert names(client.publish(b"x", {"headers": {"kind": "b"}}, **fields)) == ["Basic.Return"]


# -- exchanges that decide for each message


def declare_exchange(
    client: Client, name: str, kind: str, arguments: dict[str, Any] | None = None
) -> None:
    client.call("Exchange.Declare", exchange=name, exchange_type=kind, arguments=arguments)


@pytest.fixture
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_random, "chance", Random(3))


@pytest.mark.usefixtures("_seeded")
@pytest.mark.parametrize("transaction", [False, True])
def test_each_of_many_alike_messages_is_routed_by_itself(client: Client, transaction: bool) -> None:
    declare_exchange(client, "x", "x-random")
    for queue in ("q", "other", "blind"):
        client.call("Queue.Bind", queue=queue, exchange="x")
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
    """Whatever was chosen when the address was read."""
    declare_exchange(client, "x", "x-random")
    client.call("Queue.Bind", queue="q", exchange="x")
    client.call("Exchange.Bind", destination="amq.headers", source="x")
    client.call("Queue.Bind", queue="other", exchange="amq.headers", arguments={"kind": "a"})
    client.feed(publish(1, b"x", {"headers": {"kind": "a"}}, exchange="x") * 400)
    assert sum(counts(client)) == 400
    assert counts(client) == [pytest.approx(200, rel=0.2)] * 2 + [0]


@pytest.mark.parametrize("name", ["message_id", "correlation_id"])
def test_a_property_decides(client: Client, name: str) -> None:
    declare_exchange(client, "x", "x-consistent-hash", {"hash-property": name})
    for queue in ("q", "other"):
        client.call("Queue.Bind", queue=queue, exchange="x", routing_key="1")
    for number in range(50):
        stream = publish(1, b"x", {name: f"id-{number}"}, exchange="x", routing_key=str(number))
        before = counts(client)
        client.feed(stream * 20)
        grown = [now - then for now, then in zip(counts(client), before, strict=True)]
        assert sorted(grown) == [0, 0, 20]
    assert all(count > 200 for count in counts(client)[:2])


def test_a_property_decides_for_dead_letters_too(client: Client) -> None:
    declare_exchange(client, "x", "x-consistent-hash", {"hash-property": "message_id"})
    for queue in ("other", "blind"):
        client.call("Queue.Bind", queue=queue, exchange="x", routing_key="1")
    client.declare("dying", arguments={"x-dead-letter-exchange": "x", "x-message-ttl": 0})
    for number in range(40):
        properties = {"message_id": f"id-{number}"}
        client.publish(b"x", properties, exchange="x")
        before = counts(client)
        client.publish(b"x", properties, routing_key="dying")
        assert sum(counts(client)) == sum(before) + 1
    bodies = {
        queue: [got(client, queue) for _ in range(client.messages(queue))]
        for queue in ("other", "blind")
    }
    for replies in bodies.values():
        ids = Counter(reply.properties.message_id for reply in replies if reply.properties)
        assert len(ids) > 10
        assert set(ids.values()) == {2}


# -- direct reply-to


def test_reply_to_needs_a_reply_consumer(client: Client) -> None:
    replies = client.publish(b"?", {"reply_to": "amq.rabbitmq.reply-to"}, routing_key="q")
    assert refused(replies) == ("406 PRECONDITION_FAILED - fast reply consumer does not exist")


def test_reply_to_of_another_kind_is_left_alone(client: Client) -> None:
    client.publish(b"?", {"reply_to": "amq.rabbitmq.reply-tO"}, routing_key="q")
    found = got(client, "q").properties
    assert found is not None
    assert found.reply_to == "amq.rabbitmq.reply-tO"


# -- a queue that refuses


def test_overflow_is_nacked(client: Client) -> None:
    client.declare("short", arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    client.call("Confirm.Select")
    row = b"".join(publish(1, b"x", routing_key="short") for _ in range(4))
    replies = client.feed(row)
    assert [(reply.name, reply["delivery_tag"], reply["multiple"]) for reply in replies] == [
        ("Basic.Ack", 2, True), ("Basic.Nack", 3, False), ("Basic.Nack", 4, False),
    ]  # fmt: skip


def test_the_others_keep_what_one_refused(client: Client) -> None:
    client.declare("short", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.call("Queue.Bind", queue="short", exchange="amq.fanout")
    client.call("Queue.Bind", queue="q", exchange="amq.fanout")
    client.call("Confirm.Select")
    assert names(client.publish(b"x", exchange="amq.fanout")) == ["Basic.Nack"]
    assert (client.messages("q"), client.messages("short")) == (1, 0)


def test_without_confirms_a_refusal_is_silent(client: Client) -> None:
    client.declare("short", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    assert client.publish(b"x", routing_key="short") == []
    assert client.publish(b"x", routing_key="q") == []
