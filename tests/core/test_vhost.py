"""Making and ending exchanges, queues and bindings, without any protocol in front."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.support.amqp import make_broker, take_turns
from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.batch import MessageRange, QueueEntry, SingleMessage, envelope
from warrenmq.core.message.model import Table
from warrenmq.core.queue.consumer import Consumer
from warrenmq.core.queue.queue import Queue
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.vhost import REPLY_PREFIX, VirtualHost, check_name
from warrenmq.core.wire.properties import PLAIN


class Session:
    """Takes everything."""

    prefetch = 0
    unacked_count = 0
    writable = True

    def __init__(self) -> None:
        self.ended: list[Consumer] = []

    def deliver(
        self, consumer: Consumer, messages: MessageRange, shown: MessageRange | None = None
    ) -> None:
        consumer.queue.settle(messages)

    def cancelled(self, consumer: Consumer) -> None:
        self.ended.append(consumer)


@pytest.fixture
def vhost() -> VirtualHost:
    return make_broker().vhosts["/"]


def exchange(
    vhost: VirtualHost,
    name: str,
    kind: str = "fanout",
    *,
    auto_delete: bool = False,
    internal: bool = False,
    arguments: Table | None = None,
) -> Exchange:
    return vhost.declare_exchange(
        name, kind, durable=False, auto_delete=auto_delete, internal=internal,
        arguments=arguments or {},
    )  # fmt: skip


def put(queue: Queue, count: int = 1) -> None:
    for number in range(count):
        batch = SingleMessage(envelope("", queue.name), b"\x00\x00", b"x", number, PLAIN, 0)
        queue.enqueue(QueueEntry(batch, None))


def reached(vhost: VirtualHost, source: str, key: str = "") -> list[str]:
    route = vhost.route(vhost.publishable(source), (key,), {}, watched=False)
    return sorted(queue.name for queue in route.queues)


def refused(caught: pytest.ExceptionInfo[ChannelError]) -> int:
    return caught.value.code


# -- exchanges


def test_predeclared_exchanges(vhost: VirtualHost) -> None:
    assert {name: found.type_name for name, found in vhost.exchanges.items()} == {
        "amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic",
        "amq.headers": "headers", "amq.match": "headers", "amq.rabbitmq.trace": "topic",
    }  # fmt: skip
    assert all(found.durable for found in vhost.exchanges.values())


def test_declaring_gives_the_same_exchange_again(vhost: VirtualHost) -> None:
    assert exchange(vhost, "x") is exchange(vhost, "x")
    with pytest.raises(ChannelError, match="inequivalent arg 'internal'") as caught:
        exchange(vhost, "x", internal=True)
    assert refused(caught) == 406


def test_nothing_is_left_of_a_refused_exchange(vhost: VirtualHost) -> None:
    before = set(vhost.exchanges)
    for name, kind, code in (("amq.x", "direct", 403), ("x", "odd", 406), ("a\n", "direct", 406)):
        with pytest.raises(ChannelError) as caught:
            exchange(vhost, name, kind)
        assert refused(caught) == code
    assert set(vhost.exchanges) == before


def test_publishable(vhost: VirtualHost) -> None:
    made = exchange(vhost, "x")
    exchange(vhost, "inner", internal=True)
    assert vhost.publishable("") is None
    assert vhost.publishable("x") is made
    for name, code in (("inner", 403), ("none", 404)):
        with pytest.raises(ChannelError) as caught:
            vhost.publishable(name)
        assert refused(caught) == code


def test_delete_exchange(vhost: VirtualHost) -> None:
    made = exchange(vhost, "x")
    queue = vhost.declare_queue("q")
    vhost.bind(made, queue, "", {})
    with pytest.raises(ChannelError, match="exchange 'x' in vhost '/' in use") as caught:
        vhost.delete_exchange("x", if_unused=True)
    assert refused(caught) == 406
    vhost.delete_exchange("x")
    vhost.delete_exchange("x")
    assert "x" not in vhost.exchanges
    assert not queue.bound


def test_bindings_to_a_deleted_exchange_go(vhost: VirtualHost) -> None:
    outer, inner = exchange(vhost, "outer"), exchange(vhost, "inner")
    vhost.bind(outer, inner, "", {})
    vhost.bind(inner, vhost.declare_queue("q"), "", {})
    assert reached(vhost, "outer") == ["q"]
    vhost.delete_exchange("inner")
    assert outer.binding_count == 0
    assert reached(vhost, "outer") == []


def test_a_new_exchange_of_the_name_begins_without_bindings(vhost: VirtualHost) -> None:
    vhost.bind(exchange(vhost, "x"), vhost.declare_queue("q"), "", {})
    vhost.delete_exchange("x")
    exchange(vhost, "x")
    assert reached(vhost, "x") == []


def test_auto_delete_entries_through_a_long_chain(vhost: VirtualHost) -> None:
    """No recursion: a client may build thousands."""
    chain = [exchange(vhost, f"x{number}", auto_delete=True) for number in range(3000)]
    for source, destination in pairwise(chain):
        vhost.bind(source, destination, "", {})
    queue = vhost.declare_queue("q")
    vhost.bind(chain[-1], queue, "", {})
    vhost.delete_queue("q")
    while vhost.under_way:
        vhost._broker.turn()
    assert not [name for name in vhost.exchanges if name.startswith("x")]


def test_auto_delete_in_a_ring(vhost: VirtualHost) -> None:
    first = exchange(vhost, "a", auto_delete=True)
    second = exchange(vhost, "b", auto_delete=True)
    vhost.bind(first, second, "", {})
    vhost.bind(second, first, "", {})
    vhost.delete_exchange("a")
    assert not {"a", "b"} & vhost.exchanges.keys()


def test_auto_delete_waits_for_the_last_binding(vhost: VirtualHost) -> None:
    made = exchange(vhost, "x", "direct", auto_delete=True)
    queue = vhost.declare_queue("q")
    vhost.bind(made, queue, "a", {})
    vhost.bind(made, queue, "b", {})
    vhost.unbind(made, queue, "a", {})
    vhost.unbind(made, queue, "none", {})
    assert "x" in vhost.exchanges
    assert queue.bound == {made: None}
    vhost.unbind(made, queue, "b", {})
    assert "x" not in vhost.exchanges
    assert not queue.bound


# -- alternate exchanges


def test_an_alternate_may_come_later_and_go(vhost: VirtualHost) -> None:
    made = exchange(vhost, "x", "direct", arguments={"alternate-exchange": "rest"})
    route = vhost.route(made, ("k",), None, watched=True)
    assert reached(vhost, "x", "k") == []
    vhost.bind(exchange(vhost, "rest"), vhost.declare_queue("q"), "", {})
    assert route.dead, "what was resolved before must not be believed any more"
    assert reached(vhost, "x", "k") == ["q"]
    route = vhost.route(made, ("k",), None, watched=True)
    vhost.delete_exchange("rest")
    assert route.dead
    assert reached(vhost, "x", "k") == []


# -- queues


def test_declaring_gives_the_same_queue_again(vhost: VirtualHost) -> None:
    made = vhost.declare_queue("q", durable=True)
    assert vhost.declare_queue("q", durable=True) is made
    assert vhost.queue("q") is made


def test_ids_are_never_used_again(vhost: VirtualHost) -> None:
    first = vhost.declare_queue("q").id
    vhost.delete_queue("q")
    assert vhost.declare_queue("q").id > first


def test_server_named_queues(vhost: VirtualHost) -> None:
    names = {vhost.declare_queue("").name for _ in range(10)}
    assert len(names) == 10
    assert all(name.startswith("amq.gen-") and len(name) == 30 for name in names)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"durable": True}, {}),
        ({"auto_delete": True}, {}),
        ({"arguments": {"x-max-length": 1}}, {}),
        ({"arguments": {"x-max-length": 1}}, {"arguments": {"x-max-length": 2}}),
        ({}, {"arguments": {"x-max-length": 1}}),
    ],
)
def test_declaring_differently(
    vhost: VirtualHost, first: dict[str, Any], second: dict[str, Any]
) -> None:
    vhost.declare_queue("q", **first)
    with pytest.raises(ChannelError, match="inequivalent arg") as caught:
        vhost.declare_queue("q", **second)
    assert refused(caught) == 406


def test_an_exclusive_queue_is_its_owners(vhost: VirtualHost) -> None:
    owner, other = object(), object()
    made = vhost.declare_queue("mine", exclusive=True, owner=owner)
    assert vhost.queue("mine", owner) is made
    for asks in (other, None):
        with pytest.raises(ChannelError, match="locked queue 'mine'") as caught:
            vhost.queue("mine", asks)
        assert refused(caught) == 405
        with pytest.raises(ChannelError) as caught:
            vhost.declare_queue("mine", exclusive=True, owner=asks)
        assert refused(caught) == 405
        with pytest.raises(ChannelError) as caught:
            vhost.delete_queue("mine", owner=asks)
        assert refused(caught) == 405


def test_delete_queue(vhost: VirtualHost) -> None:
    made = vhost.declare_queue("q")
    put(made, 3)
    with pytest.raises(ChannelError, match="queue 'q' in vhost '/' not empty"):
        vhost.delete_queue("q", if_empty=True)
    made.add_consumer(Consumer("c", made, Session()))
    with pytest.raises(ChannelError, match="queue 'q' in vhost '/' in use"):
        vhost.delete_queue("q", if_unused=True)
    assert vhost.delete_queue("q") == 3
    assert vhost.delete_queue("q") == 0
    assert made.deleted
    assert vhost.drop_queue(made) == 0


def test_a_deleted_queue_tells_its_consumers_and_loses_its_bindings(vhost: VirtualHost) -> None:
    made, session = vhost.declare_queue("q"), Session()
    consumer = Consumer("c", made, session)
    made.add_consumer(consumer)
    vhost.bind(vhost.exchange("amq.fanout"), made, "", {})
    vhost.bind(vhost.exchange("amq.topic"), made, "a.#", {})
    vhost.delete_queue("q")
    assert session.ended == [consumer]
    assert reached(vhost, "amq.fanout") == []
    assert vhost.exchange("amq.topic").binding_count == 0


def test_an_unused_queue_expires() -> None:
    clock = ManualClock()
    broker = make_broker(clock=clock)
    vhost = broker.vhosts["/"]
    vhost.declare_queue("q", arguments={"x-expires": 1000})
    clock.advance(600)
    take_turns(broker)
    vhost.declare_queue("q", arguments={"x-expires": 1000})
    clock.advance(600)
    take_turns(broker)
    assert "q" in vhost.queues, "the second declaration was a use"
    clock.advance(400)
    take_turns(broker)
    assert "q" not in vhost.queues


# -- bindings


def test_bindings_are_sets(vhost: VirtualHost) -> None:
    queue, topic = vhost.declare_queue("q"), vhost.exchange("amq.topic")
    for _ in range(2):
        vhost.bind(topic, queue, "a", {})
    assert topic.binding_count == 1
    vhost.unbind(topic, queue, "a", {})
    vhost.unbind(topic, queue, "a", {})
    assert topic.binding_count == 0


def test_a_queue_gets_one_copy_over_many_ways(vhost: VirtualHost) -> None:
    queue = vhost.declare_queue("q")
    outer, inner = exchange(vhost, "outer"), exchange(vhost, "inner")
    vhost.bind(outer, inner, "", {})
    vhost.bind(inner, outer, "", {})
    for source in (outer, inner):
        vhost.bind(source, queue, "", {})
    assert reached(vhost, "outer") == ["q"]


# -- the default exchange


def test_default_exchange_reaches_every_queue_by_name(vhost: VirtualHost) -> None:
    vhost.declare_queue("q")
    assert reached(vhost, "", "q") == ["q"]
    assert reached(vhost, "", "none") == []


def test_a_default_route_ends_with_its_queue(vhost: VirtualHost) -> None:
    vhost.declare_queue("q")
    route = vhost.route(None, ("q",), None, watched=True)
    assert not route.dead
    vhost.declare_queue("other")
    assert not route.dead, "other queues are nothing to it"
    vhost.delete_queue("q")
    assert route.dead


def test_reply_queues_are_reached_by_name_only(vhost: VirtualHost) -> None:
    name = REPLY_PREFIX + "opaque"
    queue = vhost.make_reply_queue(name)
    assert reached(vhost, "", name) == [name]
    assert name not in vhost.queues
    vhost.drop_reply_queue(queue)
    assert vhost.replies == {}
    assert reached(vhost, "", name) == []


@pytest.mark.parametrize(("name", "code"), [("amq.q", 403), ("a\rb", 406), ("a\n", 406)])
def test_names(name: str, code: int) -> None:
    with pytest.raises(ChannelError) as caught:
        check_name("queue", name, "/")
    assert refused(caught) == code
    check_name("queue", "amqp and anything else", "/")
