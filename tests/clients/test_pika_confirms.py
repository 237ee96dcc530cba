"""Publisher confirms and returns through pika's blocking and callback-driven connections."""

from __future__ import annotations

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError, UnroutableError

from .support import fresh, get, get_bodies, pump


def test_each_publish_is_confirmed(channel: BlockingChannel, queue: str) -> None:
    channel.confirm_delivery()
    persistent = pika.BasicProperties(delivery_mode=2)
    for number in range(20):
        properties = persistent if number % 2 else None
        channel.basic_publish("", queue, str(number), properties, mandatory=True)
    assert get_bodies(channel, queue, 20) == [str(number).encode() for number in range(20)]


def test_unroutable_messages_come_back_whole(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    sent = pika.BasicProperties(content_type="text/plain", headers={"a": 1}, message_id="m1")
    with pytest.raises(UnroutableError) as caught:
        channel.basic_publish("amq.topic", "no.body", b"is at work", sent, mandatory=True)
    (returned,) = caught.value.messages
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == ("amq.topic", "no.body")
    assert (returned.properties, returned.body) == (sent, b"is at work")
    channel.basic_publish("amq.topic", "no.body", b"not mandatory: confirmed and gone")


def test_returns_come_without_confirms_too(channel: BlockingChannel) -> None:
    returned: list[bytes] = []
    channel.add_on_return_callback(lambda _, method, properties, body: returned.append(body))
    bodies = [b"", b"is at work", bytes(200_000)]
    for body in bodies:
        channel.basic_publish("", "no.queue", body, mandatory=True)
    pump(channel.connection, lambda: len(returned) == 3, "three returns")
    assert returned == bodies


def test_a_full_queue_that_rejects_says_nack(channel: BlockingChannel) -> None:
    queue = fresh("full")
    arguments = {"x-max-length": 2, "x-overflow": "reject-publish"}
    channel.queue_declare(queue, exclusive=True, arguments=arguments)
    channel.confirm_delivery()
    for number in (1, 2):
        channel.basic_publish("", queue, str(number))
    with pytest.raises(NackError):
        channel.basic_publish("", queue, b"3")
    assert get(channel, queue).body == b"1"
    channel.basic_publish("", queue, b"4")
    assert get_bodies(channel, queue, 2) == [b"2", b"4"]
