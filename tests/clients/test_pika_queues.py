"""Queues through pika: declare, passive, exclusive, server-named, purge, delete, bind."""

from __future__ import annotations

from collections.abc import Callable

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from .conftest import Connect
from .support import (
    Inbox,
    channel_closed,
    channel_closed_for,
    fresh,
    get_bodies,
    publish_numbers,
    pump,
    queue_exists,
    ready_count,
)

LOCKED = (
    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{}' in vhost '/'. It could "
    "be originally declared on another connection or the exclusive property value does not match "
    "that of the original declaration."
)


def test_declare_tells_name_ready_messages_and_consumers(channel: BlockingChannel) -> None:
    name = fresh("queue")
    first = channel.queue_declare(name, exclusive=True).method
    assert (first.queue, first.message_count, first.consumer_count) == (name, 0, 0)
    channel.confirm_delivery()
    publish_numbers(channel, name, 1, 3)
    again = channel.queue_declare(name, exclusive=True).method
    assert (again.queue, again.message_count, again.consumer_count) == (name, 3, 0)
    channel.basic_qos(prefetch_count=1)
    Inbox(channel, name, auto_ack=False).wait(1)
    passive = channel.queue_declare(name, passive=True).method
    assert (passive.queue, passive.message_count, passive.consumer_count) == (name, 2, 1)


def test_passive_declare_of_an_absent_queue(channel: BlockingChannel) -> None:
    with channel_closed(404, "NOT_FOUND - no queue 'no.queue' in vhost '/'"):
        channel.queue_declare("no.queue", passive=True)


def test_the_server_names_queues_and_remembers_the_last(channel: BlockingChannel) -> None:
    names = [channel.queue_declare("", exclusive=True).method.queue for _ in range(2)]
    assert len(set(names)) == 2
    assert all(name.startswith("amq.gen-") and len(name) == len("amq.gen-") + 22 for name in names)
    channel.queue_bind("", "amq.direct", "")
    for name in names:
        channel.basic_publish("amq.direct", name, b"queue and key are the last name")
    assert get_bodies(channel, names[0], 0) == []
    assert get_bodies(channel, names[1], 1) == [b"queue and key are the last name"]


def test_without_a_name_and_a_declared_queue_there_is_no_last_one(
    channel: BlockingChannel,
) -> None:
    with channel_closed(404, "NOT_FOUND - no previously declared queue"):
        channel.queue_purge("")


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"durable": True}, "'durable' {}: received 'true' but current is 'false'"),
        ({"auto_delete": True}, "'auto_delete' {}: received 'true' but current is 'false'"),
        (
            {"arguments": {"x-message-ttl": 5000}},
            "'x-message-ttl' {}: received the value '5000' of type 'signedint' but current is none",
        ),
    ],
)
def test_declaring_twice_differently_is_refused(
    channel: BlockingChannel, changed: dict[str, object], text: str
) -> None:
    name = fresh("queue")
    channel.queue_declare(name)
    where = f"for queue '{name}' in vhost '/'"
    with channel_closed(406, f"PRECONDITION_FAILED - inequivalent arg {text.format(where)}"):
        channel.queue_declare(name, **changed)


@pytest.mark.parametrize(
    ("held", "asked", "text"),
    [
        (5, 6, "received '6' but current is '5'"),
        (5, None, "received none but current is the value '5' of type 'signedint'"),
    ],
)
def test_other_arguments_are_refused(
    channel: BlockingChannel, held: int, asked: int | None, text: str
) -> None:
    name = fresh("queue")
    channel.queue_declare(name, exclusive=True, arguments={"x-max-length": held})
    arguments = {} if asked is None else {"x-max-length": asked}
    full = f"inequivalent arg 'x-max-length' for queue '{name}' in vhost '/': {text}"
    with channel_closed(406, f"PRECONDITION_FAILED - {full}"):
        channel.queue_declare(name, exclusive=True, arguments=arguments)


def test_a_reserved_name_is_refused(channel: BlockingChannel) -> None:
    text = "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"
    with channel_closed(403, text):
        channel.queue_declare("amq.mine")


@pytest.mark.parametrize(
    "act",
    [
        lambda channel, name: channel.queue_declare(name, exclusive=True),
        lambda channel, name: channel.queue_declare(name, passive=True),
        lambda channel, name: channel.basic_get(name),
        lambda channel, name: channel.basic_consume(name, lambda *_: None),
        lambda channel, name: channel.queue_bind(name, "amq.direct", "key"),
        lambda channel, name: channel.queue_purge(name),
        lambda channel, name: channel.queue_delete(name),
    ],
    ids=["declare", "passive", "get", "consume", "bind", "purge", "delete"],
)
def test_an_exclusive_queue_is_locked_for_others(
    connect: Connect, act: Callable[[BlockingChannel, str], object]
) -> None:
    owner, name = connect().channel(), fresh("mine")
    owner.queue_declare(name, exclusive=True)
    with channel_closed(405, LOCKED.format(name)):
        act(connect().channel(), name)
    owner.basic_publish("", name, b"still mine")
    assert get_bodies(owner, name, 1) == [b"still mine"]


def test_an_exclusive_queue_goes_with_its_connection(connect: Connect) -> None:
    owner, name = connect(), fresh("mine")
    first = owner.channel()
    first.queue_declare(name, exclusive=True)
    first.close()
    owner.channel().queue_declare(name, passive=True)
    owner.close()
    with channel_closed(404, f"NOT_FOUND - no queue '{name}' in vhost '/'"):
        connect().channel().queue_declare(name, passive=True)


def test_an_auto_delete_queue_goes_with_its_last_consumer(connect: Connect) -> None:
    channel, name = connect().channel(), fresh("auto")
    channel.queue_declare(name, auto_delete=True)
    channel.basic_publish("", name, b"a get counts for nothing")
    get_bodies(channel, name, 1)
    inboxes = [Inbox(channel, name) for _ in range(2)]
    channel.basic_cancel(inboxes[0].tag)
    channel.queue_declare(name, passive=True)
    channel.basic_cancel(inboxes[1].tag)
    with channel_closed(404, f"NOT_FOUND - no queue '{name}' in vhost '/'"):
        channel.queue_declare(name, passive=True)


def test_an_auto_delete_queue_goes_with_the_connection_of_its_consumer(connect: Connect) -> None:
    consumer, observer, name = connect(), connect().channel(), fresh("auto")
    observer.confirm_delivery()
    channel = consumer.channel()
    channel.queue_declare(name, auto_delete=True)
    Inbox(channel, name)
    assert queue_exists(observer, name)
    consumer.close()
    pump(observer.connection, lambda: not queue_exists(observer, name), f"the end of {name}")


def test_purge_takes_the_ready_messages_only(channel: BlockingChannel, queue: str) -> None:
    publish_numbers(channel, queue, 1, 5)
    method, _, body = channel.basic_get(queue)
    assert body == b"1"
    assert channel.queue_purge(queue).method.message_count == 4
    assert ready_count(channel, queue) == 0
    channel.basic_nack(method.delivery_tag, requeue=True)
    assert get_bodies(channel, queue, 1) == [b"1"]


def test_delete_counts_and_is_idempotent(channel: BlockingChannel) -> None:
    name = fresh_queue(channel)
    publish_numbers(channel, name, 1, 7)
    assert channel.queue_delete(name).method.message_count == 7
    assert channel.queue_delete(name).method.message_count == 0


def test_delete_if_empty_spares_messages(connection: pika.BlockingConnection) -> None:
    channel = connection.channel()
    name = fresh_queue(channel)
    publish_numbers(channel, name, 1, 1)
    with channel_closed(406, f"PRECONDITION_FAILED - queue '{name}' in vhost '/' not empty"):
        channel.queue_delete(name, if_empty=True)
    channel = connection.channel()
    assert get_bodies(channel, name, 1) == [b"1"]
    assert channel.queue_delete(name, if_empty=True).method.message_count == 0


def test_delete_if_unused_spares_consumers(connection: pika.BlockingConnection) -> None:
    consuming = connection.channel()
    name = fresh_queue(consuming)
    inbox = Inbox(consuming, name)
    with channel_closed(406, f"PRECONDITION_FAILED - queue '{name}' in vhost '/' in use"):
        connection.channel().queue_delete(name, if_unused=True)
    consuming.basic_publish("", name, b"still here")
    assert inbox.wait_bodies(1) == [b"still here"]
    consuming.basic_cancel(inbox.tag)
    assert connection.channel().queue_delete(name, if_unused=True).method.message_count == 0


def test_deleting_a_queue_takes_its_bindings(channel: BlockingChannel) -> None:
    name, key = fresh("queue"), fresh("key")
    for _ in range(2):
        channel.queue_declare(name)
        channel.basic_publish("amq.direct", key, b"unbound")
        channel.queue_bind(name, "amq.direct", key)
        channel.basic_publish("amq.direct", key, b"bound")
        assert channel.queue_delete(name).method.message_count == 1


@pytest.mark.parametrize(
    ("queue", "exchange", "text"),
    [
        ("no.queue", "amq.direct", "no queue 'no.queue' in vhost '/'"),
        (None, "no.exchange", "no exchange 'no.exchange' in vhost '/'"),
    ],
)
def test_binding_needs_both_ends(
    channel: BlockingChannel, queue: str | None, exchange: str, text: str
) -> None:
    name = queue or fresh_queue(channel)
    with channel_closed(404, f"NOT_FOUND - {text}"):
        channel.queue_bind(name, exchange, "key")


@pytest.mark.parametrize("name", [None, "no.queue"])
@pytest.mark.parametrize("exchange", ["amq.direct", "no.exchange"])
def test_unbinding_what_was_never_bound_is_fine(
    channel: BlockingChannel, queue: str, name: str | None, exchange: str
) -> None:
    """aio-pika's remote calls unbind a queue that went with its last consumer."""
    channel.queue_unbind(name or queue, exchange, "never")
    assert channel.is_open


def test_an_exclusive_queue_is_never_durable(channel: BlockingChannel) -> None:
    """So that the flag makes no difference when it is declared again."""
    name = fresh("queue")
    for durable in (True, False, True):
        assert channel.queue_declare(name, exclusive=True, durable=durable).method.queue == name


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"x-message-ttl": -1}, "x-message-ttl"),
        ({"x-message-ttl": "soon"}, "x-message-ttl"),
        ({"x-expires": 0}, "x-expires"),
        ({"x-max-length": -1}, "x-max-length"),
        ({"x-overflow": "explode"}, "x-overflow"),
        ({"x-dead-letter-routing-key": "key"}, "x-dead-letter-routing-key"),
    ],
)
def test_bad_arguments_are_refused(
    channel: BlockingChannel, arguments: dict[str, object], argument: str
) -> None:
    name = fresh("bad")
    where = f"for queue '{name}' in vhost '/': "
    with channel_closed_for(406, f"PRECONDITION_FAILED - invalid arg '{argument}' {where}"):
        channel.queue_declare(name, arguments=arguments)


def fresh_queue(channel: BlockingChannel) -> str:
    name = fresh("queue")
    channel.queue_declare(name, exclusive=True)
    return name
