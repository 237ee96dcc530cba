"""Queues of a server, read over AMQP by tests that publish over HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pika

WAIT_S = 30.0


@dataclass(frozen=True)
class Message:
    key: str
    properties: Any
    body: bytes

    @property
    def hops(self) -> object:
        return (self.properties.headers or {}).get("x-hub-hops")


class Queues:
    """The queues of a virtual host."""

    def __init__(self, amqp_url: str) -> None:
        self._url = amqp_url

    @contextmanager
    def channel(self) -> Iterator[Any]:
        connection = pika.BlockingConnection(pika.URLParameters(self._url))
        try:
            yield connection.channel()
        finally:
            connection.close()

    def bind(self, queue: str, source: str) -> None:
        """Declares a queue that gets everything of a topic exchange."""
        with self.channel() as channel:
            channel.queue_declare(queue, durable=True)
            channel.queue_bind(queue, source, "#")

    def take(self, queue: str, count: int = 0) -> list[Message]:
        """Takes all messages of a queue, once it has that many."""
        taken: list[Message] = []
        deadline = time.monotonic() + WAIT_S
        with self.channel() as channel:
            while True:
                method, properties, body = channel.basic_get(queue, auto_ack=True)
                if method is not None:
                    taken.append(Message(method.routing_key, properties, body))
                elif len(taken) >= count:
                    return taken
                else:
                    assert time.monotonic() < deadline, f"{len(taken)} of {count} in '{queue}'"
                    time.sleep(0.02)

    def depth(self, queue: str) -> int:
        with self.channel() as channel:
            return int(channel.queue_declare(queue, passive=True).method.message_count)
