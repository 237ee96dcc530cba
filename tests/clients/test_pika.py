"""pika: its errors, heartbeats, threads and callback-driven connection."""

from __future__ import annotations

import threading
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    AMQPConnectionError,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)
from pika.spec import Basic

from .conftest import Connect
from .support import WAIT_S, Broker, fresh, publish_numbers, pump, queue_exists

HEARTBEAT_S = 1
PUBLISHERS, MESSAGES = 8, 50
CONFIRMS = 1000


def test_pika_finds_the_abilities_it_looks_for(connection: pika.BlockingConnection) -> None:
    assert connection.publisher_confirms_supported
    assert connection.basic_nack_supported
    assert connection.consumer_cancel_notify_supported
    assert connection.exchange_exchange_bindings_supported


@pytest.mark.parametrize(("user", "password"), [("guest", "wrong"), ("nobody", "guest")])
def test_a_wrong_login_is_refused_with_a_reason(broker: Broker, user: str, password: str) -> None:
    parameters = broker.pika_parameters(credentials=pika.PlainCredentials(user, password))
    with pytest.raises(ProbableAuthenticationError, match="Login was refused using auth.* PLAIN"):
        pika.BlockingConnection(parameters)


def test_an_absent_virtual_host_is_refused(connect: Connect) -> None:
    with pytest.raises(ProbableAccessDeniedError, match="'NOT_ALLOWED - vhost nowhere not found'"):
        connect(virtual_host="nowhere")


def test_a_silent_client_is_dropped_with_its_exclusive_queue(
    broker: Broker, connect: Connect
) -> None:
    observer = connect().channel()
    observer.confirm_delivery()
    silent = pika.BlockingConnection(broker.pika_parameters(heartbeat=HEARTBEAT_S))
    name = fresh("silent")
    silent.channel().queue_declare(name, exclusive=True)
    assert queue_exists(observer, name)
    pump(observer.connection, lambda: not queue_exists(observer, name), "the end of the client")
    with pytest.raises(AMQPConnectionError):
        silent.channel()


def test_a_thread_may_ack_through_its_connection(
    connection: pika.BlockingConnection, channel: BlockingChannel, queue: str
) -> None:
    channel.basic_qos(prefetch_count=1)
    publish_numbers(channel, queue, 1, 10)
    done: list[bytes] = []
    workers: list[threading.Thread] = []

    def work(tag: int, body: bytes) -> None:
        done.append(body)
        connection.add_callback_threadsafe(lambda: channel.basic_ack(tag))

    def on_message(_: object, method: Any, properties: object, body: bytes) -> None:
        worker = threading.Thread(target=work, args=(method.delivery_tag, body))
        workers.append(worker)
        worker.start()

    channel.basic_consume(queue, on_message)
    pump(connection, lambda: len(done) == 10, "ten acknowledged messages")
    for worker in workers:
        worker.join(WAIT_S)
    assert done == [str(number).encode() for number in range(1, 11)]


def test_every_pipelined_publish_is_confirmed_once(broker: Broker) -> None:
    """Through the callback-driven connection, which does not wait for confirms."""
    queue, settled = fresh("queue"), set[int]()

    def on_confirm(frame: Any) -> None:
        assert isinstance(frame.method, Basic.Ack)
        last = frame.method.delivery_tag
        tags = set(range(1 if frame.method.multiple else last, last + 1)) - settled
        assert tags, "a tag was confirmed twice"
        settled.update(tags)
        if len(settled) == CONFIRMS:
            connection.close()

    def on_channel(channel: pika.channel.Channel) -> None:
        channel.confirm_delivery(on_confirm)
        channel.queue_declare(queue, exclusive=True)
        for number in range(CONFIRMS):
            channel.basic_publish("", queue, str(number).encode())

    connection = pika.SelectConnection(
        broker.pika_parameters(),
        on_open_callback=lambda opened: opened.channel(on_open_callback=on_channel),
        on_close_callback=lambda closed, _: closed.ioloop.stop(),
    )
    connection.ioloop.call_later(WAIT_S, connection.ioloop.stop)
    connection.ioloop.start()
    connection.ioloop.close()
    assert settled == set(range(1, CONFIRMS + 1))
