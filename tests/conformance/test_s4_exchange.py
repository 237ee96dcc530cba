"""amqp.md section 4: declaring exchanges, and routing."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from . import frames
from .raw import Channel, Client

Fields = dict[str, Any]

PREDECLARED = [
    ("amq.direct", "direct", False),
    ("amq.fanout", "fanout", False),
    ("amq.topic", "topic", False),
    ("amq.headers", "headers", False),
    ("amq.match", "headers", False),
    ("amq.rabbitmq.trace", "topic", True),
]
DEFAULT_REFUSED = "ACCESS_REFUSED - operation not permitted on the default exchange"


def exchange(channel: Channel, name: str, kind: str = "direct", **fields: object) -> str:
    channel.call("Exchange.Declare", exchange=name, exchange_type=kind, **fields)
    return name


def bound_queue(
    channel: Channel, source: str, key: str = "", arguments: Fields | None = None, queue: str = ""
) -> str:
    name = str(channel.declare(queue).queue)
    channel.call("Queue.Bind", queue=name, exchange=source, routing_key=key, arguments=arguments)
    return name


# Predeclared


@pytest.mark.parametrize(("name", "kind", "internal"), PREDECLARED)
def test_predeclared_are_durable(channel: Channel, name: str, kind: str, internal: bool) -> None:
    """Declaring what exists, equal in all, changes nothing, reserved prefix or not."""
    exchange(channel, name, kind, durable=True, internal=internal)


def test_default_exchange_reaches_each_queue_by_name(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.publish(b"a", routing_key=name)
    message = channel.taken(name)
    assert (message.method.exchange, message.method.routing_key) == ("", name)


# Declare


@pytest.mark.differs("503 on the connection")
@pytest.mark.parametrize("kind", ["nonsense", "", "Direct", "x-delayed", "classic"])
def test_unknown_type(channel: Channel, name: str, kind: str) -> None:
    channel.send("Exchange.Declare", exchange=name, exchange_type=kind)
    channel.refused(
        406, f"PRECONDITION_FAILED - unknown exchange type '{kind}'", culprit="Exchange.Declare"
    )


@pytest.mark.differs("503 on the connection")
@pytest.mark.parametrize("name", ["", "amq.new", "amq.direct"])
def test_type_is_checked_before_the_name(channel: Channel, name: str) -> None:
    channel.send("Exchange.Declare", exchange=name, exchange_type="nonsense")
    channel.refused(406, "PRECONDITION_FAILED - unknown exchange type 'nonsense'")


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("Exchange.Declare", {"exchange_type": "direct"}),
        ("Exchange.Declare", {"exchange_type": "direct", "passive": True}),
        ("Exchange.Delete", {}),
        ("Exchange.Bind", {"destination": "amq.fanout"}),
        ("Exchange.Bind", {"source": "amq.fanout"}),
        ("Exchange.Unbind", {"destination": "amq.fanout"}),
    ],
)
def test_default_exchange_can_not_be_changed(channel: Channel, method: str, fields: Fields) -> None:
    channel.send(method, **fields)
    channel.refused(403, DEFAULT_REFUSED, culprit=method)


@pytest.mark.parametrize("method", ["Queue.Bind", "Queue.Unbind"])
def test_queues_are_not_bound_to_the_default_exchange(
    channel: Channel, name: str, method: str
) -> None:
    channel.declare(name)
    channel.send(method, queue=name, routing_key="k")
    channel.refused(403, DEFAULT_REFUSED, culprit=method)


def test_reserved_prefix(channel: Channel, name: str) -> None:
    channel.send("Exchange.Declare", exchange=f"amq.{name}", exchange_type="direct")
    channel.refused(
        403, f"ACCESS_REFUSED - exchange name 'amq.{name}' contains reserved prefix 'amq.*'"
    )


@pytest.mark.differs("strips line ends from names, and takes a NUL")
@pytest.mark.parametrize("letter", ["\r", "\n", "\0"])
def test_line_end_in_a_name(channel: Channel, name: str, letter: str) -> None:
    channel.send("Exchange.Declare", exchange=f"{name}{letter}x", exchange_type="direct")
    channel.refused(406)


@pytest.mark.parametrize("name", ["n" * 255, "\N{SNOWMAN}" * 85, "a b/c%2F?#", "'\"\\"])
def test_any_other_name_is_fine(channel: Channel, name: str) -> None:
    queue = bound_queue(channel, exchange(channel, name), "k")
    channel.publish(b"a", exchange=name, routing_key="k")
    assert channel.taken(queue).method.exchange == name


INEQUIVALENT: list[tuple[Fields, Fields, str]] = [
    ({}, {"exchange_type": "fanout"}, "'type' {}: received 'fanout' but current is 'direct'"),
    ({}, {"durable": True}, "'durable' {}: received 'true' but current is 'false'"),
    ({"durable": True}, {}, "'durable' {}: received 'false' but current is 'true'"),
    ({}, {"auto_delete": True}, "'auto_delete' {}: received 'true' but current is 'false'"),
    ({}, {"internal": True}, "'internal' {}: received 'true' but current is 'false'"),
    (
        {}, {"arguments": {"alternate-exchange": "a"}},
        "'alternate-exchange' {}: received the value 'a' of type 'longstr' but current is none",
    ),
    (
        {"arguments": {"alternate-exchange": "a"}}, {},
        "'alternate-exchange' {}: received none but current is the value 'a' of type 'longstr'",
    ),
    (
        {"arguments": {"alternate-exchange": "a"}}, {"arguments": {"alternate-exchange": "b"}},
        "'alternate-exchange' {}: received 'b' but current is 'a'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "text"), INEQUIVALENT)
def test_inequivalent_redeclaration_is_refused(
    channel: Channel, name: str, first: Fields, second: Fields, text: str
) -> None:
    fields = {"exchange": name, "exchange_type": "direct"}
    channel.call("Exchange.Declare", **fields | first)
    channel.call("Exchange.Declare", **fields | first)
    channel.send("Exchange.Declare", **fields | second)
    where = f"for exchange '{name}' in vhost '/'"
    channel.refused(406, f"PRECONDITION_FAILED - inequivalent arg {text.format(where)}")


DIFFERENCES: list[tuple[str, object, str]] = [
    ("exchange_type", "fanout", "type"),
    ("durable", True, "durable"),
    ("auto_delete", True, "auto_delete"),
    ("internal", True, "internal"),
    ("arguments", {"alternate-exchange": "a"}, "alternate-exchange"),
]


@pytest.mark.parametrize("first", range(len(DIFFERENCES)))
def test_first_difference_is_reported(channel: Channel, name: str, first: int) -> None:
    exchange(channel, name)
    differing = {field: value for field, value, _ in DIFFERENCES[first:]}
    channel.send("Exchange.Declare", **{"exchange": name, "exchange_type": "direct"} | differing)
    assert f"inequivalent arg '{DIFFERENCES[first][2]}'" in channel.refused(406)


def test_passive_ignores_all_but_the_name(channel: Channel, name: str) -> None:
    exchange(channel, name)
    exchange(channel, name, "topic", passive=True, durable=True, internal=True)


# Delete


def test_delete(channel: Channel, name: str) -> None:
    channel.call("Exchange.Delete", exchange=exchange(channel, name))
    channel.call("Exchange.Delete", exchange=name)
    channel.send("Exchange.Declare", exchange=name, exchange_type="direct", passive=True)
    channel.refused(404)


@pytest.mark.parametrize("name", [name for name, _, _ in PREDECLARED])
def test_delete_predeclared(channel: Channel, name: str) -> None:
    channel.send("Exchange.Delete", exchange=name)
    channel.refused(
        403, f"ACCESS_REFUSED - deletion of system exchange '{name}' in vhost '/' not allowed"
    )


def test_delete_if_unused(channel: Channel, name: str) -> None:
    bound_queue(channel, exchange(channel, name), "k", queue=name)
    channel.send("Exchange.Delete", exchange=name, if_unused=True)
    channel.refused(406, f"PRECONDITION_FAILED - exchange '{name}' in vhost '/' in use")
    channel.open()
    channel.call("Queue.Unbind", queue=name, exchange=name, routing_key="k")
    channel.call("Exchange.Delete", exchange=name, if_unused=True)


def test_delete_drops_bindings(channel: Channel, name: str) -> None:
    bound_queue(channel, exchange(channel, name), "k", queue=name)
    channel.call("Exchange.Delete", exchange=name)
    exchange(channel, name)
    channel.publish(b"a", exchange=name, routing_key="k", mandatory=True)
    assert channel.content("Basic.Return").method.reply_code == 312


# Exchange to exchange


def test_exchange_binding_carries_messages(channel: Channel, name: str) -> None:
    source, sink = exchange(channel, f"{name}.a", "topic"), exchange(channel, f"{name}.b", "fanout")
    queue = bound_queue(channel, sink)
    channel.call("Exchange.Bind", destination=sink, source=source, routing_key="eu.#")
    for key in ("eu.fr", "us.ny"):
        channel.publish(key.encode(), exchange=source, routing_key=key)
    message = channel.taken(queue)
    assert (message.body, message.method.exchange) == (b"eu.fr", source)
    assert channel.ready(queue) == 0


def test_unbind_is_idempotent(channel: Channel, name: str) -> None:
    """pamqp has unbind-ok as 40/51, which is what RabbitMQ sends."""
    fields = {"destination": exchange(channel, name), "source": "amq.fanout", "routing_key": "k"}
    channel.call("Exchange.Bind", **fields)
    for _ in range(2):
        payload = frames.method("Exchange.Unbind", **fields)
        channel.client.send(frames.frame(frames.METHOD, channel.number, payload))
        assert channel.client.receive_raw(channel.number)[1] == struct.pack(">HH", 40, 51)


@pytest.mark.parametrize("missing", ["source", "destination"])
def test_bind_with_a_missing_end(channel: Channel, name: str, missing: str) -> None:
    ends = {"source": "amq.fanout", "destination": "amq.fanout", missing: name}
    channel.call("Exchange.Unbind", **ends)
    channel.send("Exchange.Bind", **ends)
    channel.refused(404, f"NOT_FOUND - no exchange '{name}' in vhost '/'", culprit="Exchange.Bind")


@pytest.mark.differs("compares numbers of two types as different")
def test_numbers_in_bindings_are_compared_by_value(channel: Channel, name: str) -> None:
    """10 and 10.0 are one binding."""
    fields = {"destination": exchange(channel, name, "fanout"), "source": "amq.fanout"}
    queue = bound_queue(channel, name)
    channel.call("Exchange.Bind", arguments={"v": 10}, **fields)
    channel.call("Exchange.Bind", arguments={"v": 10.0}, **fields)
    channel.call("Exchange.Unbind", arguments={"v": 10.0}, **fields)
    channel.publish(b"x", exchange="amq.fanout")
    assert channel.drain(queue) == []


def test_loop_ends_with_one_copy(channel: Channel, name: str) -> None:
    names = [exchange(channel, f"{name}.{letter}", "fanout") for letter in "abc"]
    for source, destination in zip(names, names[1:] + names[:1], strict=True):
        channel.call("Exchange.Bind", destination=destination, source=source)
    channel.call("Exchange.Bind", destination=names[0], source=names[0])
    queue = bound_queue(channel, names[0])
    channel.call("Queue.Bind", queue=queue, exchange=names[2])
    for source in names:
        channel.publish(source.encode(), exchange=source)
    assert channel.drain(queue) == [source.encode() for source in names]


def test_one_copy_per_queue(channel: Channel, name: str) -> None:
    queue = bound_queue(channel, exchange(channel, name, "topic"), "a.*")
    for key in ("a.b", "#", "a.#"):
        channel.call("Queue.Bind", queue=queue, exchange=name, routing_key=key)
    channel.publish(b"once", exchange=name, routing_key="a.b")
    assert channel.drain(queue) == [b"once"]


# Life


def _gone(channel: Channel, name: str) -> bool:
    channel.send("Exchange.Declare", exchange=name, exchange_type="direct", passive=True)
    channel.refused(404)
    channel.open()
    return True


def test_auto_delete_with_the_last_binding(channel: Channel, name: str) -> None:
    exchange(channel, name, auto_delete=True)
    queue = bound_queue(channel, name, "a")
    channel.call("Queue.Bind", queue=queue, exchange=name, routing_key="b")
    channel.call("Queue.Unbind", queue=queue, exchange=name, routing_key="a")
    exchange(channel, name, passive=True)
    channel.call("Queue.Unbind", queue=queue, exchange=name, routing_key="b")
    assert _gone(channel, name)


def test_auto_delete_with_the_bound_queue(channel: Channel, name: str) -> None:
    queue = bound_queue(channel, exchange(channel, name, auto_delete=True), "a")
    channel.call("Queue.Delete", queue=queue)
    assert _gone(channel, name)


def test_auto_delete_goes_along_a_chain(channel: Channel, name: str) -> None:
    """A binding TO it does not keep an exchange."""
    first = exchange(channel, f"{name}.1", "fanout", auto_delete=True)
    second = exchange(channel, f"{name}.2", "fanout", auto_delete=True)
    channel.call("Exchange.Bind", destination=second, source=first)
    channel.call("Queue.Delete", queue=bound_queue(channel, second))
    assert _gone(channel, second)
    assert _gone(channel, first)


def test_auto_delete_waits_for_a_first_binding(channel: Channel, name: str) -> None:
    exchange(channel, name, auto_delete=True)
    exchange(channel, name, auto_delete=True, passive=True)


def test_internal_exchange_refuses_publishes(channel: Channel, name: str) -> None:
    exchange(channel, name, "fanout", internal=True)
    queue = bound_queue(channel, name)
    channel.call("Exchange.Bind", destination=name, source="amq.direct", routing_key=name)
    channel.publish(b"through", exchange="amq.direct", routing_key=name)
    assert channel.taken(queue).body == b"through"
    channel.publish(b"direct", exchange=name)
    channel.refused(
        403,
        f"ACCESS_REFUSED - cannot publish to internal exchange '{name}' in vhost '/'",
        culprit="Basic.Publish",
    )


def test_nowait_hides_the_answers(channel: Channel, name: str) -> None:
    """The reply that comes is the last method's."""
    channel.send("Exchange.Declare", exchange=name, exchange_type="fanout", nowait=True)
    channel.send("Exchange.Bind", destination=name, source="amq.direct", nowait=True)
    channel.send("Exchange.Unbind", destination=name, source="amq.direct", nowait=True)
    exchange(channel, name, "fanout", passive=True)
    channel.send("Exchange.Delete", exchange=name, nowait=True)
    channel.send("Exchange.Declare", exchange=name, exchange_type="fanout", passive=True)
    channel.refused(404)


def test_nowait_shows_errors(channel: Channel, name: str) -> None:
    channel.send("Exchange.Bind", destination=name, source="amq.direct", nowait=True)
    channel.refused(404)


# Types

KEY_MATCHES: list[tuple[str, str, str, bool]] = [
    ("direct", "a", "a", True),
    ("direct", "a", "A", False),
    ("direct", "a.*", "a.b", False),
    ("direct", "", "", True),
    ("fanout", "a", "b", True),
    ("topic", "a.b", "a.b", True),
    ("topic", "a.*", "a.b", True),
    ("topic", "a.*", "a", False),
    ("topic", "a.*", "a.b.c", False),
    ("topic", "*", "", False),
    ("topic", "*.b", "a.b", True),
    ("topic", "a.#", "a", True),
    ("topic", "a.#", "a.b.c", True),
    ("topic", "#", "", True),
    ("topic", "#", "a.b.c", True),
    ("topic", "#.c", "a.b.c", True),
    ("topic", "#.c", "c", True),
    ("topic", "#.c", "c.d", False),
    ("topic", "a.#.c", "a.c", True),
    ("topic", "a.#.c", "a.b.b.c", True),
    ("topic", "a.*.c.#", "a.b.c", True),
    ("topic", "a.*.c.#", "a.b.c.d.e", True),
    ("topic", "a.*.c.#", "a.c", False),
    ("topic", "#.*", "a", True),
    ("topic", "#.b.#", "a.b.c", True),
    ("topic", "#.b.#", "a.c", False),
    ("topic", "a..b", "a..b", True),
    ("topic", "a.*.b", "a..b", True),
    ("topic", "#.a.#.b.#", "x.a.y.b", True),
    ("topic", "#.a.#.b.#", "b.a", False),
    ("topic", "#.a.#.b.#.c.#", "x.a.y.y.b.c.z", True),
    ("topic", "#.a.#.b.#.c.#", "a.c.b", False),
    ("topic", "a*", "ab", False),
    ("topic", "a#", "ab", False),
]


@pytest.mark.parametrize(("kind", "pattern", "key", "matches"), KEY_MATCHES)
def test_routing_key_matches_by_exchange_type(
    channel: Channel, name: str, kind: str, pattern: str, key: str, matches: bool
) -> None:
    queue = bound_queue(channel, exchange(channel, name, kind), pattern)
    channel.publish(b"x", exchange=name, routing_key=key)
    assert channel.drain(queue) == [b"x"] * matches


HEADER_MATCHES: list[tuple[Fields, Fields | None, bool]] = [
    ({"a": 1, "b": "x"}, {"a": 1, "b": "x", "c": 0}, True),
    ({"a": 1, "b": "x"}, {"a": 1}, False),
    ({"x-match": "all", "a": 1}, {"a": 2}, False),
    ({"x-match": "all", "a": 1}, {"a": "1"}, False),
    ({"x-match": "any", "a": 1, "b": 2}, {"b": 2}, True),
    ({"x-match": "any", "a": 1, "b": 2}, {"b": 3}, False),
    ({"x-match": "all"}, None, True),
    ({"x-match": "any"}, {"a": 1}, False),
    ({}, {}, True),
    ({"x-match": "all", "a": None}, {"a": 5}, True),
    ({"x-match": "all", "a": None}, {"b": 5}, False),
    ({"x-match": "all", "x-a": 1}, {}, True),
    ({"x-match": "any", "x-a": 1}, {"x-a": 1}, False),
    ({"x-match": "all-with-x", "x-a": 1}, {}, False),
    ({"x-match": "all-with-x", "x-a": 1}, {"x-a": 1}, True),
    ({"x-match": "any-with-x", "x-a": 1, "b": 1}, {"x-a": 1}, True),
    ({"x-match": "any-with-x", "x-a": 1, "b": 1}, {"x-a": 2}, False),
    ({"a": True}, {"a": True}, True),
    ({"a": True}, {"a": False}, False),
]


@pytest.mark.parametrize(("arguments", "headers", "matches"), HEADER_MATCHES)
def test_headers_match_the_binding_arguments(
    channel: Channel, name: str, arguments: Fields, headers: Fields | None, matches: bool
) -> None:
    queue = bound_queue(channel, exchange(channel, name, "headers"), arguments=arguments)
    properties = {} if headers is None else {"headers": headers}
    channel.publish(b"x", properties, exchange=name, routing_key="ignored")
    assert channel.drain(queue) == [b"x"] * matches


@pytest.mark.parametrize("value", ["some", "", 5])
def test_headers_binding_with_a_wrong_match(channel: Channel, name: str, value: object) -> None:
    channel.declare(name)
    channel.send("Queue.Bind", queue=name, exchange="amq.headers", arguments={"x-match": value})
    channel.refused(406, culprit="Queue.Bind")


# Alternate exchange


def _with_alternate(channel: Channel, name: str, alternate: str) -> str:
    return exchange(channel, name, arguments={"alternate-exchange": alternate})


def test_alternate_gets_unrouted_messages(channel: Channel, name: str) -> None:
    """It counts as routed for mandatory; exchange, key and properties are the publisher's."""
    main = _with_alternate(channel, name, exchange(channel, f"{name}.ae", "fanout"))
    wanted, other = bound_queue(channel, main, "k"), bound_queue(channel, f"{name}.ae")
    channel.publish(b"wanted", exchange=main, routing_key="k", mandatory=True)
    channel.publish(b"other", {"app_id": "a"}, exchange=main, routing_key="z", mandatory=True)
    assert channel.drain(wanted) == [b"wanted"]
    message = channel.taken(other)
    assert (message.body, message.properties.app_id) == (b"other", "a")
    assert (message.method.exchange, message.method.routing_key) == (main, "z")


def test_alternates_chain_until_routed(channel: Channel, name: str) -> None:
    exchange(channel, f"{name}.3", "fanout")
    _with_alternate(channel, f"{name}.2", f"{name}.3")
    _with_alternate(channel, f"{name}.1", f"{name}.2")
    queue = bound_queue(channel, f"{name}.3")
    channel.publish(b"x", exchange=f"{name}.1", routing_key="k")
    assert channel.drain(queue) == [b"x"]


@pytest.mark.parametrize("alternate", ["{n}", "{n}.absent", "{n}.back"])
def test_unusable_alternates_return_the_message(
    channel: Channel, name: str, alternate: str
) -> None:
    """Itself, absent, a circle: unrouted, and so returned."""
    _with_alternate(channel, f"{name}.back", name)
    _with_alternate(channel, name, alternate.format(n=name))
    channel.publish(b"x", exchange=name, routing_key="k", mandatory=True)
    assert channel.content("Basic.Return").method.reply_code == 312


def test_alternate_may_be_declared_later(channel: Channel, name: str) -> None:
    """Missing: dropped. A route that was found before it came is not held on to."""
    _with_alternate(channel, name, f"{name}.ae")
    channel.publish(b"lost", exchange=name, routing_key="k")
    queue = bound_queue(channel, exchange(channel, f"{name}.ae", "fanout"))
    channel.publish(b"found", exchange=name, routing_key="k")
    assert channel.drain(queue) == [b"found"]
    channel.call("Exchange.Delete", exchange=f"{name}.ae")
    channel.publish(b"lost", exchange=name, routing_key="k", mandatory=True)
    assert channel.content("Basic.Return").body == b"lost"


def test_alternate_of_a_bound_exchange(
    connect: Callable[..., Client], channel: Channel, name: str
) -> None:
    """An exchange reached by a binding uses its own alternate when it routes nowhere."""
    inner = _with_alternate(channel, f"{name}.in", exchange(channel, f"{name}.ae", "fanout"))
    outer = exchange(channel, name, "fanout")
    channel.call("Exchange.Bind", destination=inner, source=outer)
    queue = bound_queue(channel, f"{name}.ae")
    connect().channel().publish(b"x", exchange=outer, routing_key="k")
    channel.publish(b"x", exchange=outer, routing_key="k")
    channel.ready(queue)
    assert channel.taken(queue).body == b"x"
