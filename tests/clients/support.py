"""Helpers of the tests with pika: a consumer that collects, unique names, bounded waits."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import UnroutableError

WAIT_S = 60.0
_numbers = itertools.count(1)
_run = uuid.uuid4().hex[:8]


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that listens; `name` is warren or rabbitmq."""

    name: str
    host: str
    port: int
    url: str

    def pika_parameters(self, **parameters: Any) -> pika.ConnectionParameters:
        return pika.ConnectionParameters(host=self.host, port=self.port, **parameters)


class Delivery(NamedTuple):
    method: Any
    properties: pika.BasicProperties
    body: bytes


def fresh(word: str) -> str:
    """A name that no other test uses, so that tests on one broker don't meet."""
    return f"{word}-{_run}-{next(_numbers)}"


def pump(connection: pika.BlockingConnection, done: Callable[[], bool], what: str) -> None:
    """Lets pika work until `done()`; raises `TimeoutError` naming `what` after `WAIT_S`."""
    deadline = time.monotonic() + WAIT_S
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {WAIT_S} s")
        connection.process_data_events(time_limit=0.02)


class Inbox:
    """A consumer that keeps what it gets; `options` are those of `basic_consume`."""

    def __init__(
        self, channel: BlockingChannel, queue: str, *, auto_ack: bool = True, **options: Any
    ) -> None:
        self._connection = channel.connection
        self.deliveries: list[Delivery] = []
        self.tag = channel.basic_consume(queue, self._keep, auto_ack=auto_ack, **options)

    def _keep(self, _: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
        self.deliveries.append(Delivery(method, properties, body))

    def wait(self, count: int) -> list[Delivery]:
        """Gives all deliveries as soon as there are `count`."""
        pump(self._connection, lambda: len(self.deliveries) >= count, f"delivery {count}")
        return self.deliveries

    @property
    def bodies(self) -> list[bytes]:
        return [delivery.body for delivery in self.deliveries]


def get(channel: BlockingChannel, queue: str, *, auto_ack: bool = True) -> Delivery:
    """Gets one message, waiting for it; a queue that stays empty raises `TimeoutError`."""
    got: list[Delivery] = []

    def try_once() -> bool:
        method, properties, body = channel.basic_get(queue, auto_ack=auto_ack)
        if method is not None:
            got.append(Delivery(method, properties, body))
        return bool(got)

    pump(channel.connection, try_once, f"a message in {queue}")
    return got[0]


def publish_numbers(channel: BlockingChannel, queue: str, first: int, last: int) -> list[bytes]:
    """Publishes the numbers first to last, both included, and gives the bodies."""
    bodies = [str(number).encode() for number in range(first, last + 1)]
    for body in bodies:
        channel.basic_publish("", queue, body)
    return bodies


def ready_count(channel: BlockingChannel, queue: str) -> int:
    """Ready messages; RabbitMQ lets this question overtake publishes that are not confirmed."""
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def wait_ready(channel: BlockingChannel, queue: str, count: int) -> None:
    """Waits until exactly `count` messages are ready in the queue."""
    pump(
        channel.connection,
        lambda: ready_count(channel, queue) == count,
        f"{count} ready messages in {queue}",
    )


def queue_exists(channel: BlockingChannel, queue: str) -> bool:
    """Asks by publishing: unlike a declare, that keeps no idle queue alive. Needs confirms."""
    try:
        channel.basic_publish("", queue, b"is anybody there?", mandatory=True)
    except UnroutableError:
        return False
    return True
