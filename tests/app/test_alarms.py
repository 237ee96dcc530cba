"""A real server that is short of memory or disk: pika, a consumer and HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.app.support import problem
from tests.clients.support import pump
from tests.support.server import WarrenServer

GUEST = ("guest", "guest")
BODY = bytes(100)
STEP, STEPS = 4_000, 50
"""Bodies page out, but what is read together keeps some bytes: more reads than there is memory
for, and how many messages one read has is the machine's affair."""


class Client:
    """A pika connection that notes what it is told of alarms."""

    def __init__(self, server: WarrenServer) -> None:
        self.told: list[str] = []
        self.connection = pika.BlockingConnection(
            pika.ConnectionParameters(server.host, server.amqp_port)
        )
        self.connection.add_on_connection_blocked_callback(
            lambda _, frame: self.told.append(frame.method.reason)
        )
        self.connection.add_on_connection_unblocked_callback(
            lambda *_: self.told.append("unblocked")
        )
        self.channel: BlockingChannel = self.connection.channel()

    def wait_told(self, count: int) -> list[str]:
        pump(self.connection, lambda: len(self.told) >= count, f"notice {count}")
        return self.told


@pytest.fixture
def short_of_memory() -> Iterator[WarrenServer]:
    with WarrenServer(env={"WARREN_MEMORY_LIMIT": "4MiB"}) as server:
        yield server


def publish_more_than_fits(client: Client, queue: str, is_refused: Callable[[], bool]) -> int:
    """Gives how many messages that were."""
    for step in range(STEPS):
        for _ in range(STEP):
            client.channel.basic_publish("", queue, BODY)
        client.connection.process_data_events(0.2)
        if is_refused():
            client.wait_told(1)
            return STEP * (step + 1)
    raise AssertionError(f"no alarm after {STEP * STEPS} messages")


def test_memory(short_of_memory: WarrenServer) -> None:
    server = short_of_memory
    assert "memory limit: 4.0 MiB (set, of " in server.output()
    publisher, consumer = Client(server), Client(server)
    publisher.channel.queue_declare("q")

    def is_refused() -> bool:
        answer = httpx.post(f"{server.http_url}/endpoint/q/q", content=BODY, auth=GUEST)
        if answer.status_code != 503:
            return False
        assert "low on memory" in problem(answer, 503)
        assert int(answer.headers["retry-after"]) > 0
        return True

    count = publish_more_than_fits(publisher, "q", is_refused)
    got: list[bytes] = []
    consumer.channel.basic_consume("q", lambda *args: got.append(args[3]), auto_ack=True)

    def everything_came() -> bool:
        publisher.connection.process_data_events(0)
        return len(got) >= count and publisher.told[-1] == "unblocked"

    pump(consumer.connection, everything_came, "the end of the alarm")
    assert set(publisher.told[::2]) == {"low on memory"}
    assert set(publisher.told[1::2]) == {"unblocked"}
    publisher.channel.basic_publish("", "q", b"last")
    pump(consumer.connection, lambda: got[-1] == b"last", "publishing goes on")
    assert set(got[:-1]) == {BODY}
    assert consumer.told == []
    answer = httpx.post(f"{server.http_url}/endpoint/q/q", content=b"http", auth=GUEST)
    assert answer.status_code == 202
    pump(consumer.connection, lambda: got[-1] == b"http", "HTTP goes on")
    assert "memory alarm: " in server.output()
    assert "memory alarm over: " in server.output()
    for client in (publisher, consumer):
        client.connection.close()
