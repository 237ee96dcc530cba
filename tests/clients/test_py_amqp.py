"""py-amqp, the client under kombu and Celery: handshake details, tables, events, errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from typing import Any

import amqp
import pytest

from .support import WAIT_S, Broker, fresh

Connect = Callable[..., amqp.Connection]

CAPABILITIES = {
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
}


@pytest.fixture
def open_connection(broker: Broker) -> Iterator[Connect]:
    """Opens connections of py-amqp; keyword arguments are those of `amqp.Connection`."""
    opened: list[amqp.Connection] = []

    def open_one(**parameters: Any) -> amqp.Connection:
        connection = amqp.Connection(
            f"{broker.host}:{broker.port}",
            connect_timeout=WAIT_S,
            **{"userid": "guest", "password": "guest", "login_method": "PLAIN", **parameters},
        )
        connection.connect()
        opened.append(connection)
        return connection

    yield open_one
    for connection in opened:
        if connection.connected:
            connection.close()


@pytest.fixture
def channel(open_connection: Connect) -> amqp.Channel:
    return open_connection().channel()


def drain(connection: amqp.Connection, done: Callable[[], bool], what: str) -> None:
    """Reads from the broker until `done()`; raises `TimeoutError` naming `what`."""
    deadline = time.monotonic() + WAIT_S
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {WAIT_S} s")
        try:
            connection.drain_events(timeout=0.05)
        except TimeoutError:
            continue


def consume(channel: amqp.Channel, queue: str, count: int, **options: Any) -> list[amqp.Message]:
    """Consumes without acknowledgement until `count` messages are there."""
    messages: list[amqp.Message] = []
    channel.basic_consume(queue, callback=messages.append, no_ack=True, **options)
    drain(channel.connection, lambda: len(messages) >= count, f"message {count}")
    return messages


def exclusive_queue(channel: amqp.Channel) -> str:
    return str(channel.queue_declare(exclusive=True, auto_delete=False).queue)


def test_the_broker_introduces_itself(open_connection: Connect) -> None:
    connection = open_connection()
    properties = connection.server_properties
    assert (connection.version_major, connection.version_minor) == (0, 9)
    assert {b"PLAIN", b"AMQPLAIN"} <= set(connection.mechanisms)
    assert connection.locales == ["en_US"]
    assert {name for name, able in properties["capabilities"].items() if able} >= CAPABILITIES
    for name in ("product", "version", "platform", "cluster_name"):
        assert isinstance(properties[name], str) and properties[name], name


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_both_mechanisms_let_in_and_keep_out(open_connection: Connect, mechanism: str) -> None:
    assert open_connection(login_method=mechanism).connected
    with pytest.raises(amqp.exceptions.AccessRefused) as caught:
        open_connection(login_method=mechanism, password="wrong")
    assert caught.value.reply_text == (
        f"ACCESS_REFUSED - Login was refused using authentication mechanism {mechanism}. "
        "For details see the broker logfile."
    )


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [({}, (2047, 131_072)), ({"channel_max": 7, "frame_max": 8192}, (2047, 131_072))],
)
def test_the_offer_is_2047_channels_and_frames_of_128_kib(
    open_connection: Connect, asked: dict[str, int], agreed: tuple[int, int]
) -> None:
    connection = open_connection(**asked)
    assert (connection.channel_max, connection.frame_max) == agreed


def test_the_shorter_heartbeat_holds(open_connection: Connect) -> None:
    assert open_connection(heartbeat=7).heartbeat == 7
    connection = open_connection(heartbeat=3600)
    assert connection.heartbeat == connection.server_heartbeat == 60


def test_the_broker_sends_heartbeats(open_connection: Connect) -> None:
    connection = open_connection(heartbeat=1)
    received = connection.bytes_recv
    drain(connection, lambda: connection.bytes_recv >= received + 2, "two heartbeats")
    connection.heartbeat_tick()
    assert connection.channel().queue_declare(exclusive=True).message_count == 0


def test_tables_keep_every_type(channel: amqp.Channel) -> None:
    headers = {
        "int": 1,
        "negative": -(2**31) + 1,
        "long": 2**40,
        "double": 0.1,
        "decimal": Decimal("-12.345"),
        "bool": True,
        "text": "grüße",
        "time": datetime(2026, 11, 21, 9, 30, 15),
        "void": None,
        "array": [1, [2.5], {"a": False}, None],
        "table": {"nested": {"deep": "x" * 1000}},
    }
    queue = exclusive_queue(channel)
    channel.basic_publish(amqp.Message("text", application_headers=headers), routing_key=queue)
    assert channel.basic_get(queue).headers == headers


def test_publishing_with_confirms_waits_for_each(open_connection: Connect) -> None:
    channel = open_connection(confirm_publish=True).channel()
    queue = exclusive_queue(channel)
    acked: list[int] = []
    channel.events["basic_ack"].add(lambda tag, multiple: acked.append(tag))
    for number in range(5):
        channel.basic_publish(amqp.Message(str(number)), routing_key=queue)
    assert acked == [1, 2, 3, 4, 5]
    assert [channel.basic_get(queue, no_ack=True).body for _ in range(5)] == list("01234")


def test_returned_messages(channel: amqp.Channel) -> None:
    returned: list[Any] = []
    channel.events["basic_return"].add(lambda *values: returned.append(values))
    message = amqp.Message("is at work", content_type="text/plain")
    channel.basic_publish(message, "amq.direct", "nobody", mandatory=True)
    drain(channel.connection, lambda: len(returned) == 1, "a return")
    error, exchange, key, back = returned[0]
    assert (error.reply_code, error.reply_text) == (312, "NO_ROUTE")
    assert (exchange, key) == ("amq.direct", "nobody")
    assert back.body == "is at work"
    assert back.properties == {"content_type": "text/plain", "content_encoding": "utf-8"}


@pytest.mark.warren_only("RabbitMQ 3 answers immediate with 540")
def test_immediate_needs_a_consumer_that_is_ready(channel: amqp.Channel) -> None:
    queue, returned = exclusive_queue(channel), []
    channel.events["basic_return"].add(lambda error, *_: returned.append(error.reply_code))
    channel.basic_publish(amqp.Message("nobody waits"), routing_key=queue, immediate=True)
    drain(channel.connection, lambda: len(returned) == 1, "a return")
    assert returned == [313]
    messages: list[amqp.Message] = []
    channel.basic_consume(queue, callback=messages.append, no_ack=True)
    channel.basic_publish(amqp.Message("somebody waits"), routing_key=queue, immediate=True)
    drain(channel.connection, lambda: len(messages) == 1, "a delivery")
    assert messages[0].body == "somebody waits"
    assert len(returned) == 1


def test_deliveries_tell_where_they_come_from(channel: amqp.Channel) -> None:
    queue = exclusive_queue(channel)
    channel.queue_bind(queue, "amq.topic", "tony.*")
    channel.basic_publish(amqp.Message("is at work"), "amq.topic", "tony.status")
    (message,) = consume(channel, queue, 1, consumer_tag="evan")
    assert message.body == "is at work"
    assert message.delivery_info == {
        "consumer_tag": "evan",
        "delivery_tag": 1,
        "redelivered": False,
        "exchange": "amq.topic",
        "routing_key": "tony.status",
    }


def test_consumer_tags_are_made_up_when_not_given(channel: amqp.Channel) -> None:
    queue = exclusive_queue(channel)
    tags = [channel.basic_consume(queue) for _ in range(3)]
    assert len(set(tags)) == 3
    assert all(tag.startswith("amq.ctag-") for tag in tags)
    for tag in tags:
        channel.basic_cancel(tag)
    assert channel.queue_declare(queue, passive=True).consumer_count == 0


def test_a_consumer_tag_used_twice_ends_the_connection(channel: amqp.Channel) -> None:
    queue = exclusive_queue(channel)
    channel.basic_consume(queue, consumer_tag="mine")
    with pytest.raises(amqp.exceptions.NotAllowed) as caught:
        channel.basic_consume(queue, consumer_tag="mine")
    assert caught.value.reply_text == "NOT_ALLOWED - attempt to reuse consumer tag 'mine'"
    assert caught.value.method_sig == (60, 20)


def test_the_end_of_a_queue_cancels_its_consumers(
    open_connection: Connect, channel: amqp.Channel
) -> None:
    queue = channel.queue_declare(auto_delete=True).queue
    cancelled: list[str] = []
    channel.basic_consume(queue, consumer_tag="mine", on_cancel=cancelled.append)
    open_connection().channel().queue_delete(queue)
    drain(channel.connection, lambda: bool(cancelled), "a cancellation")
    assert cancelled == ["mine"]


def test_recover_delivers_again(channel: amqp.Channel) -> None:
    queue = exclusive_queue(channel)
    messages: list[amqp.Message] = []
    for number in range(3):
        channel.basic_publish(amqp.Message(str(number)), routing_key=queue)
    channel.basic_consume(queue, callback=messages.append)
    drain(channel.connection, lambda: len(messages) == 3, "three messages")
    channel.basic_ack(2)
    channel.basic_recover(requeue=True)
    drain(channel.connection, lambda: len(messages) == 5, "two more messages")
    assert [(m.body, m.delivery_info["redelivered"]) for m in messages[3:]] == [
        ("0", True),
        ("2", True),
    ]


Act = Callable[[amqp.Channel], object]
REFUSED: list[tuple[Act, type[amqp.AMQPError], tuple[int, int]]] = [
    (lambda c: c.queue_declare("absent", passive=True), amqp.NotFound, (50, 10)),
    (lambda c: c.exchange_declare("absent", "direct", passive=True), amqp.NotFound, (40, 10)),
    (lambda c: c.exchange_declare("amq.new", "direct"), amqp.AccessRefused, (40, 10)),
    (lambda c: c.exchange_delete("amq.direct"), amqp.AccessRefused, (40, 20)),
    (lambda c: c.exchange_bind("absent", "amq.fanout"), amqp.NotFound, (40, 30)),
    (lambda c: c.queue_bind("absent", "amq.direct"), amqp.NotFound, (50, 20)),
    (lambda c: c.queue_purge("absent"), amqp.NotFound, (50, 30)),
    (lambda c: c.basic_get("absent"), amqp.NotFound, (60, 70)),
    (lambda c: c.basic_consume("absent"), amqp.NotFound, (60, 20)),
    (
        lambda c: (c.basic_ack(9), c.connection.drain_events(WAIT_S)),
        amqp.PreconditionFailed,
        (60, 80),
    ),
]


@pytest.mark.parametrize(("act", "error", "culprit"), REFUSED)
def test_errors_name_the_method_that_caused_them(
    channel: amqp.Channel, act: Act, error: type[amqp.AMQPError], culprit: tuple[int, int]
) -> None:
    with pytest.raises(error) as caught:
        act(channel)
    assert caught.value.method_sig == culprit
    with closing(channel.connection.channel()) as another:
        assert another.queue_declare(exclusive=True).message_count == 0


def test_absent_queues_and_exchanges_may_be_deleted(channel: amqp.Channel) -> None:
    assert channel.queue_delete("absent") == 0
    channel.exchange_delete("absent")
    assert channel.is_open


def test_nowait_hides_the_answer_only(channel: amqp.Channel) -> None:
    queue, exchange = fresh("queue"), fresh("exchange")
    channel.queue_declare(queue, exclusive=True, nowait=True)
    channel.exchange_declare(exchange, "fanout", nowait=True)
    channel.queue_bind(queue, exchange, nowait=True)
    channel.basic_publish(amqp.Message("1"), exchange)
    channel.basic_publish(amqp.Message("2"), exchange)
    assert channel.queue_purge(queue) == 2
    channel.basic_publish(amqp.Message("3"), exchange)
    channel.queue_purge(queue, nowait=True)
    assert channel.basic_get(queue) is None
    assert channel.queue_declare(queue, passive=True).message_count == 0
    channel.exchange_delete(exchange, nowait=True)
    with pytest.raises(amqp.NotFound):
        channel.exchange_declare(exchange, "fanout", passive=True)
