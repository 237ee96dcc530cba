"""Remote calls through pika: direct reply-to, without a queue for the answers."""

from __future__ import annotations

from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from .conftest import Connect
from .support import Inbox, channel_closed, fresh, get, pump

REPLY_TO = "amq.rabbitmq.reply-to"


def ask(channel: BlockingChannel, queue: str, body: bytes, number: int = 0) -> None:
    properties = pika.BasicProperties(reply_to=REPLY_TO, correlation_id=str(number))
    channel.basic_publish("", queue, body, properties)


def test_answers_come_back_on_the_channel_that_asked(connect: Connect) -> None:
    server = connect().channel()
    queue = server.queue_declare("", auto_delete=True).method.queue

    def answer(channel: BlockingChannel, method: object, question: Any, body: bytes) -> None:
        properties = pika.BasicProperties(correlation_id=question.correlation_id)
        channel.basic_publish("", question.reply_to, body.upper(), properties)

    server.basic_consume(queue, answer, auto_ack=True)
    connection = connect()
    clients = [connection.channel() for _ in range(3)]
    inboxes = [Inbox(client, REPLY_TO) for client in clients]
    for number in range(9):
        ask(clients[number % 3], queue, b"question %d" % number, number)

    def all_answered() -> bool:
        server.connection.process_data_events(time_limit=0)
        return all(len(inbox.bodies) == 3 for inbox in inboxes)

    pump(connection, all_answered, "nine answers")
    for index, inbox in enumerate(inboxes):
        found = [(int(one.properties.correlation_id), one.body) for one in inbox.deliveries]
        assert found == [(n, b"QUESTION %d" % n) for n in range(index, 9, 3)]


def test_the_server_sees_an_address_that_exists_while_the_client_does(
    connect: Connect, channel: BlockingChannel, queue: str
) -> None:
    client = connect().channel()
    Inbox(client, REPLY_TO)
    ask(client, queue, b"question")
    address = get(channel, queue).properties.reply_to
    assert address.startswith(f"{REPLY_TO}.")
    assert len(address) > len(REPLY_TO) + 1
    declared = channel.queue_declare(address, passive=True).method
    assert (declared.queue, declared.message_count, declared.consumer_count) == (address, 0, 1)
    client.close()
    with channel_closed(404, f"NOT_FOUND - no queue '{address}' in vhost '/'"):
        channel.queue_declare(address, passive=True)


def test_an_ordinary_reply_queue_is_left_as_it_is(channel: BlockingChannel, queue: str) -> None:
    channel.basic_publish("", queue, b"", pika.BasicProperties(reply_to="answers"))
    assert get(channel, queue).properties.reply_to == "answers"


def test_answers_are_never_acknowledged(channel: BlockingChannel) -> None:
    with channel_closed(406, "PRECONDITION_FAILED - reply consumer cannot acknowledge"):
        Inbox(channel, REPLY_TO, auto_ack=False)


def test_one_consumer_of_answers_a_channel(channel: BlockingChannel) -> None:
    Inbox(channel, REPLY_TO)
    with channel_closed(406, "PRECONDITION_FAILED - reply consumer already set"):
        Inbox(channel, REPLY_TO)


@pytest.mark.parametrize("other_channel_consumes", [False, True])
def test_asking_needs_a_consumer_on_the_same_channel(
    connection: pika.BlockingConnection, queue: str, other_channel_consumes: bool
) -> None:
    if other_channel_consumes:
        Inbox(connection.channel(), REPLY_TO)
    with channel_closed(406, "PRECONDITION_FAILED - fast reply consumer does not exist"):
        client = connection.channel()
        ask(client, queue, b"question")
        client.queue_declare(queue, passive=True)


def test_a_cancelled_consumer_can_be_set_again(channel: BlockingChannel, queue: str) -> None:
    channel.basic_cancel(Inbox(channel, REPLY_TO).tag)
    inbox = Inbox(channel, REPLY_TO)
    ask(channel, queue, b"question")
    channel.basic_publish("", get(channel, queue).properties.reply_to, b"answer")
    assert inbox.wait_bodies(1) == [b"answer"]


@pytest.mark.warren_only("RabbitMQ 3.10 delivers the answer and returns it as well")
def test_answers_may_be_mandatory(connect: Connect, channel: BlockingChannel, queue: str) -> None:
    client = connect().channel()
    inbox = Inbox(client, REPLY_TO)
    ask(client, queue, b"question")
    address = get(channel, queue).properties.reply_to
    channel.confirm_delivery()
    channel.basic_publish("", address, b"answer", mandatory=True)
    assert inbox.wait_bodies(1) == [b"answer"]
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("", f"{REPLY_TO}.{fresh('forged')}", b"", mandatory=True)
