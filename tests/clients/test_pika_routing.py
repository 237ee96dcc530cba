"""Where messages go: every exchange type, bindings between exchanges, the alternate exchange."""

from __future__ import annotations

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import UnroutableError

from .support import fresh, get_bodies

# An empty key has no word at all; "." has two empty ones.
KEYS = ["", "a", "a.b", "a.b.c", "a.x.c", "a.b.c.d", "b", "eu.fr", "eu.fr.paris", "us.fr"]
KEYS += [".", "a."]
TOPICS = {
    "#": KEYS,
    "*": ["a", "b"],
    "a": ["a"],
    "a.*": ["a.b", "a."],
    "*.*": ["a.b", "eu.fr", "us.fr", ".", "a."],
    "a.#": ["a", "a.b", "a.b.c", "a.x.c", "a.b.c.d", "a."],
    "#.c": ["a.b.c", "a.x.c"],
    "a.*.c": ["a.b.c", "a.x.c"],
    "a.*.c.#": ["a.b.c", "a.x.c", "a.b.c.d"],
    "#.b.#": ["a.b", "a.b.c", "a.b.c.d", "b"],
    "eu.#": ["eu.fr", "eu.fr.paris"],
    "*.fr": ["eu.fr", "us.fr"],
    "*.fr.#": ["eu.fr", "eu.fr.paris", "us.fr"],
    "a.b.c": ["a.b.c"],
    "#.#": KEYS,
    "": [""],
}


def test_topic_patterns(channel: BlockingChannel) -> None:
    queues = {pattern: _bound(channel, "amq.topic", pattern) for pattern in TOPICS}
    for key in KEYS:
        channel.basic_publish("amq.topic", key, key.encode() or b"empty key")
    found = {pattern: _drain(channel, queue) for pattern, queue in queues.items()}
    assert found == {
        pattern: [key.encode() or b"empty key" for key in keys] for pattern, keys in TOPICS.items()
    }


HEADERS: list[tuple[dict[str, object], list[str]]] = [
    ({"x-match": "all", "a": 1, "b": "two"}, ["both", "both and x"]),
    ({"a": 1, "b": "two"}, ["both", "both and x"]),
    ({"x-match": "any", "a": 1, "b": "two"}, ["one", "both", "both and x", "other b"]),
    ({"x-match": "all", "a": None}, ["one", "both", "both and x", "other b"]),
    ({"x-match": "all", "x-c": 3}, ["none", "one", "both", "x only", "both and x", "other b"]),
    ({"x-match": "any", "x-c": 3}, []),
    ({"x-match": "all-with-x", "x-c": 3}, ["x only", "both and x"]),
    ({"x-match": "all-with-x", "a": 1, "x-c": 3}, ["both and x"]),
    ({"x-match": "any-with-x", "b": "two", "x-c": 3}, ["both", "x only", "both and x"]),
    ({"x-match": "all"}, ["none", "one", "both", "x only", "both and x", "other b"]),
    ({"x-match": "any"}, []),
    ({"x-match": "all", "b": "TWO"}, []),
]
MESSAGES: dict[str, dict[str, object]] = {
    "none": {},
    "one": {"a": 1},
    "both": {"a": 1, "b": "two"},
    "x only": {"x-c": 3},
    "both and x": {"a": 1, "b": "two", "x-c": 3, "more": True},
    "other b": {"a": 1, "b": "three"},
}


def test_headers_with_all_four_matches(channel: BlockingChannel) -> None:
    queues = [_bound(channel, "amq.headers", "", arguments) for arguments, _ in HEADERS]
    for name, headers in MESSAGES.items():
        properties = pika.BasicProperties(headers=headers)
        channel.basic_publish("amq.headers", "ignored", name.encode(), properties)
    found = [[body.decode() for body in _drain(channel, queue)] for queue in queues]
    assert found == [names for _, names in HEADERS]


def test_direct_needs_the_very_key_and_fanout_none(channel: BlockingChannel) -> None:
    exact = _bound(channel, "amq.direct", "key")
    every = _bound(channel, "amq.fanout", "key")
    for exchange in ("amq.direct", "amq.fanout"):
        for key in ("key", "Key", "key.more", ""):
            channel.basic_publish(exchange, key, f"{exchange} {key}")
    assert _drain(channel, exact) == [b"amq.direct key"]
    assert _drain(channel, every) == [
        b"amq.fanout key",
        b"amq.fanout Key",
        b"amq.fanout key.more",
        b"amq.fanout ",
    ]


def test_one_copy_however_many_bindings_match(channel: BlockingChannel) -> None:
    queue = _bound(channel, "amq.topic", "once.#")
    for pattern in ("once.*", "#.again", "once.again"):
        channel.queue_bind(queue, "amq.topic", pattern)
    channel.queue_bind(queue, "amq.topic", "once.again")
    channel.basic_publish("amq.topic", "once.again", b"once")
    assert _drain(channel, queue) == [b"once"]


def test_the_default_exchange_reaches_each_queue_by_name(
    channel: BlockingChannel, queue: str
) -> None:
    channel.basic_publish("", queue, b"by name")
    channel.basic_publish("", f"{queue}.other", b"nowhere")
    assert get_bodies(channel, queue, 1) == [b"by name"]


def test_messages_walk_bound_exchanges_once_even_in_a_circle(channel: BlockingChannel) -> None:
    names = [fresh("ring") for _ in range(3)]
    for name in names:
        channel.exchange_declare(name, "topic", auto_delete=True)
    for source, destination in zip(names, names[1:] + names[:1], strict=True):
        channel.exchange_bind(destination, source, "round.#")
    queues = [_bound(channel, name, "#") for name in names]
    channel.basic_publish(names[0], "round.trip", b"around")
    channel.basic_publish(names[1], "stay", b"only here")
    assert [_drain(channel, queue) for queue in queues] == [
        [b"around"],
        [b"around", b"only here"],
        [b"around"],
    ]


def test_unbound_exchanges_pass_nothing_on(channel: BlockingChannel) -> None:
    source, destination = fresh("source"), fresh("destination")
    for name in (source, destination):
        channel.exchange_declare(name, "direct")
    queue = _bound(channel, destination, "key")
    channel.exchange_bind(destination, source, "key")
    channel.basic_publish(source, "key", b"bound")
    channel.exchange_unbind(destination, source, "key")
    channel.exchange_unbind(destination, source, "key")
    channel.basic_publish(source, "key", b"unbound")
    assert _drain(channel, queue) == [b"bound"]


def test_the_alternate_exchange_takes_what_nobody_wants(channel: BlockingChannel) -> None:
    first, second, last = (fresh("exchange") for _ in range(3))
    channel.exchange_declare(last, "fanout")
    channel.exchange_declare(second, "direct", arguments={"alternate-exchange": last})
    channel.exchange_declare(first, "direct", arguments={"alternate-exchange": second})
    queues = [_bound(channel, name, key) for name, key in ((first, "1"), (second, "2"), (last, ""))]
    channel.confirm_delivery()
    for key in ("1", "2", "3"):
        channel.basic_publish(first, key, key.encode(), mandatory=True)
    assert [_drain(channel, queue) for queue in queues] == [[b"1"], [b"2"], [b"3"]]


def test_alternate_exchanges_in_a_circle_end(channel: BlockingChannel) -> None:
    first, second = fresh("exchange"), fresh("exchange")
    channel.exchange_declare(first, "direct", arguments={"alternate-exchange": second})
    channel.exchange_declare(second, "direct", arguments={"alternate-exchange": first})
    channel.confirm_delivery()
    with pytest.raises(UnroutableError):
        channel.basic_publish(first, "nobody", b"", mandatory=True)


def test_cc_and_bcc_are_more_routing_keys(channel: BlockingChannel) -> None:
    queues = {key: _bound(channel, "amq.direct", f"copy.{key}") for key in ("to", "cc", "bcc")}
    headers = {"CC": ["copy.cc", "copy.nobody"], "BCC": ["copy.bcc"]}
    channel.basic_publish("amq.direct", "copy.to", b"memo", pika.BasicProperties(headers=headers))
    for queue in queues.values():
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        assert (method.routing_key, body) == ("copy.to", b"memo")
        assert properties.headers == {"CC": ["copy.cc", "copy.nobody"]}


def _bound(
    channel: BlockingChannel, exchange: str, key: str, arguments: dict[str, object] | None = None
) -> str:
    queue = str(channel.queue_declare("", exclusive=True).method.queue)
    channel.queue_bind(queue, exchange, key, arguments)
    return queue


def _drain(channel: BlockingChannel, queue: str) -> list[bytes]:
    """Empties the queue; what was published on this channel is there already."""
    bodies = []
    while (got := channel.basic_get(queue, auto_ack=True))[0] is not None:
        bodies.append(got[2])
    return bodies
