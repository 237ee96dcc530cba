"""Streams over a durable store, and clients that read them."""

from __future__ import annotations

import itertools
from typing import Any

from tests.core.life import Life
from tests.support.amqp import Client, Reply
from warrenmq.core.queue.stream import StreamQueue

_tags = (f"reader-{number}" for number in itertools.count())


def declare(life: Life, **arguments: Any) -> None:
    table = {"x-queue-type": "stream"} | {
        f"x-{name.replace('_', '-')}": value for name, value in arguments.items()
    }
    life.declare("s", arguments=table)


def stream(life: Life) -> StreamQueue:
    queue = life.queue("s")
    assert isinstance(queue, StreamQueue)
    return queue


def fill(life: Life, bodies: list[bytes], **fields: Any) -> None:
    for body in bodies:
        life.publish(body, "s", **fields)


class Reading:
    """A client with a consumer of the stream."""

    def __init__(
        self, life: Life, start: object = None, prefetch: int = 1000, **more: object
    ) -> None:
        self.life = life
        self.client: Client = life.connect()
        self.client.call("Basic.Qos", prefetch_count=prefetch)
        self.tag = next(_tags)
        arguments: dict[str, Any]
        arguments = dict(more) if start is None else {"x-stream-offset": start} | more
        self.seen = self.client.consume("s", self.tag, arguments=arguments)

    def more(self) -> list[Reply]:
        """Returns the deliveries up to now."""
        for _ in range(30):
            self.life.turns(1)
            self.seen += self.client.come()
        return [reply for reply in self.seen if reply.name == "Basic.Deliver"]

    def offsets(self) -> list[int]:
        return [reply.headers["x-stream-offset"] for reply in self.more()]

    def bodies(self) -> list[bytes]:
        return [reply.body for reply in self.more()]

    def ack(self) -> None:
        tag = self.more()[-1]["delivery_tag"]
        self.seen += self.client.send("Basic.Ack", delivery_tag=tag, multiple=True)
