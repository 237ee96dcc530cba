"""Exchanges through pika: declare, delete, auto-delete, and every refusal with its text."""

from __future__ import annotations

from collections.abc import Callable

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from .conftest import Connect
from .support import channel_closed, channel_closed_for, fresh, get_bodies

PREDECLARED = ["direct", "fanout", "topic", "headers", "match", "rabbitmq.trace"]


@pytest.mark.parametrize("name", PREDECLARED)
def test_predeclared_exchanges_are_there(channel: BlockingChannel, name: str) -> None:
    channel.exchange_declare(f"amq.{name}", passive=True)
    assert channel.is_open


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_declaring_twice_alike_is_fine(channel: BlockingChannel, kind: str) -> None:
    name = fresh("exchange")
    for _ in range(2):
        channel.exchange_declare(name, kind, durable=True)
    channel.exchange_declare(name, passive=True)
    channel.exchange_delete(name)
    with channel_closed(404, f"NOT_FOUND - no exchange '{name}' in vhost '/'"):
        channel.exchange_declare(name, passive=True)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"exchange_type": "fanout"}, "'type' {}: received 'fanout' but current is 'direct'"),
        ({"durable": True}, "'durable' {}: received 'true' but current is 'false'"),
        ({"auto_delete": True}, "'auto_delete' {}: received 'true' but current is 'false'"),
        ({"internal": True}, "'internal' {}: received 'true' but current is 'false'"),
        (
            {"arguments": {"alternate-exchange": "amq.fanout"}},
            "'alternate-exchange' {}: received the value 'amq.fanout' of type 'longstr' "
            "but current is none",
        ),
    ],
)
def test_declaring_twice_differently_is_refused(
    channel: BlockingChannel, changed: dict[str, object], text: str
) -> None:
    name = fresh("exchange")
    channel.exchange_declare(name, "direct")
    where = f"for exchange '{name}' in vhost '/'"
    with channel_closed(406, f"PRECONDITION_FAILED - inequivalent arg {text.format(where)}"):
        channel.exchange_declare(name, **{"exchange_type": "direct", **changed})


Act = Callable[[BlockingChannel], object]
REFUSED: list[tuple[str, Act, int, str]] = [
    (
        "declare the default exchange",
        lambda channel: channel.exchange_declare("", "direct"),
        403,
        "ACCESS_REFUSED - operation not permitted on the default exchange",
    ),
    (
        "declare a reserved name",
        lambda channel: channel.exchange_declare("amq.z", "direct"),
        403,
        "ACCESS_REFUSED - exchange name 'amq.z' contains reserved prefix 'amq.*'",
    ),
    (
        "publish to an absent exchange",
        lambda channel: (
            channel.basic_publish("no.exchange", "key", b""),
            channel.queue_declare("", exclusive=True),
        ),
        404,
        "NOT_FOUND - no exchange 'no.exchange' in vhost '/'",
    ),
    (
        "bind an absent source",
        lambda channel: channel.exchange_bind("amq.fanout", "no.exchange"),
        404,
        "NOT_FOUND - no exchange 'no.exchange' in vhost '/'",
    ),
    (
        "bind an absent destination",
        lambda channel: channel.exchange_bind("no.exchange", "amq.fanout"),
        404,
        "NOT_FOUND - no exchange 'no.exchange' in vhost '/'",
    ),
    (
        "bind from the default exchange",
        lambda channel: channel.exchange_bind("amq.fanout", ""),
        403,
        "ACCESS_REFUSED - operation not permitted on the default exchange",
    ),
]


@pytest.mark.parametrize(
    ("act", "code", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_refused_with_a_reason(channel: BlockingChannel, act: Act, code: int, text: str) -> None:
    with channel_closed(code, text):
        act(channel)


def test_deleting_what_is_not_there_is_fine(channel: BlockingChannel) -> None:
    channel.exchange_delete("no.exchange")
    assert channel.is_open


@pytest.mark.parametrize("destination", ["amq.fanout", "no.exchange"])
@pytest.mark.parametrize("source", ["amq.direct", "no.exchange"])
def test_unbinding_what_was_never_bound_is_fine(
    channel: BlockingChannel, source: str, destination: str
) -> None:
    channel.exchange_unbind(destination, source, "never")
    assert channel.is_open


def test_delete_if_unused_spares_a_bound_exchange(
    connection: pika.BlockingConnection, queue: str
) -> None:
    channel, name = connection.channel(), fresh("exchange")
    channel.exchange_declare(name, "fanout")
    channel.queue_bind(queue, name, "")
    with channel_closed(406, f"PRECONDITION_FAILED - exchange '{name}' in vhost '/' in use"):
        channel.exchange_delete(name, if_unused=True)

    channel = connection.channel()
    channel.queue_unbind(queue, name, "")
    channel.exchange_delete(name, if_unused=True)
    with channel_closed(404, f"NOT_FOUND - no exchange '{name}' in vhost '/'"):
        channel.exchange_declare(name, passive=True)


def test_an_auto_delete_exchange_goes_with_its_last_binding(
    channel: BlockingChannel, queue: str
) -> None:
    name = fresh("exchange")
    channel.exchange_declare(name, "direct", auto_delete=True)
    for key in ("a", "b"):
        channel.queue_bind(queue, name, key)
    channel.queue_unbind(queue, name, "a")
    channel.exchange_declare(name, passive=True)
    channel.queue_unbind(queue, name, "b")
    with channel_closed(404, f"NOT_FOUND - no exchange '{name}' in vhost '/'"):
        channel.exchange_declare(name, passive=True)


def test_an_auto_delete_exchange_goes_with_its_last_queue(connect: Connect) -> None:
    channel, name = connect().channel(), fresh("exchange")
    channel.exchange_declare(name, "direct", auto_delete=True)
    owner = connect()
    bound = owner.channel()
    queue = bound.queue_declare("", exclusive=True).method.queue
    bound.queue_bind(queue, name, "key")
    owner.close()
    channel.exchange_declare(name, "topic", auto_delete=True)
    assert channel.is_open, "the old exchange of type direct would have refused this"


def test_an_internal_exchange_takes_messages_from_exchanges_only(
    channel: BlockingChannel, queue: str
) -> None:
    inner, outer = fresh("inner"), fresh("outer")
    channel.exchange_declare(inner, "fanout", internal=True)
    channel.exchange_declare(outer, "fanout")
    channel.exchange_bind(inner, outer)
    channel.queue_bind(queue, inner)
    channel.basic_publish(outer, "", b"through")
    assert get_bodies(channel, queue, 1) == [b"through"]

    text = f"ACCESS_REFUSED - cannot publish to internal exchange '{inner}' in vhost '/'"
    with channel_closed(403, text):
        channel.basic_publish(inner, "", b"direct")
        channel.queue_declare("", exclusive=True)


@pytest.mark.warren_only("RabbitMQ 3.10 closes the connection with 503, newer ones answer 406")
def test_an_unknown_type_is_refused(channel: BlockingChannel) -> None:
    with channel_closed(406, "PRECONDITION_FAILED - unknown exchange type 'x-nothing'"):
        channel.exchange_declare(fresh("exchange"), "x-nothing")


@pytest.mark.warren_only("RabbitMQ strips CR and LF silently")
@pytest.mark.parametrize("name", ["line\nfeed", "carriage\rreturn"])
def test_line_ends_in_names_are_refused(channel: BlockingChannel, name: str) -> None:
    with channel_closed_for(406, "PRECONDITION_FAILED - "):
        channel.exchange_declare(name, "direct")
