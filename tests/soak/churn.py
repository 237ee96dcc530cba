"""Clients that come and go: connections, channels and queues that are made and left behind."""

from __future__ import annotations

import random
import struct
from abc import abstractmethod
from collections.abc import Mapping

from tests.bench import frames
from tests.bench.client import BASIC, CHANNEL, QUEUE, Client
from tests.conformance import frames as tables
from tests.crash.clients import connect, connected
from tests.crash.site import Site, Worker
from tests.crash.wire import Encoder, Form

REST_S = 0.05
CALM_S = 0.1
BODY_BYTES = 200
LEFT_MAX = 50
"""Messages that are left in a queue, or unacked on a channel, when it ends."""
_PUBLISHER = 65_535
"""Of messages that nobody counts."""
_DURABLE, _EXCLUSIVE, _AUTO_DELETE = 2, 4, 8
_KINDS: tuple[tuple[int, Mapping[str, object]], ...] = (
    (_DURABLE, {}),
    (_DURABLE, {"x-message-ttl": 200}),
    (_DURABLE, {"x-expires": 1_000}),
    (_DURABLE, {"x-max-priority": 3}),
    (_DURABLE, {"x-max-length": 5, "x-dead-letter-exchange": "soak.nowhere"}),
    (_DURABLE, {"x-queue-type": "quorum"}),
    (_DURABLE, {"x-queue-type": "stream"}),
    (_EXCLUSIVE, {}),
    (_AUTO_DELETE, {"x-single-active-consumer": True}),
)


class Churn(Worker):
    """Does one thing again and again while there is load; `rounds` counts. A session ends with
    the load: a connection that nobody uses would be closed by the server."""

    def __init__(self, site: Site, name: str, seed: int) -> None:
        super().__init__(site, name)
        self.random = random.Random(f"{seed} {name}")
        self.rounds = 0

    def session(self) -> None:
        while self.alive and not self.site.calm.is_set() and not self.stopping.is_set():
            self.rounds += 1
            self.once()
            self.stopping.wait(REST_S)
        if self.site.calm.is_set():
            self.stopping.wait(CALM_S)

    @abstractmethod
    def once(self) -> None:
        """One round; raises what ends its connection."""

    def fill(self, client: Client, queue: str, count: int) -> None:
        """Publishes persistent messages and waits until they are confirmed."""
        form = Form(_PUBLISHER, "", queue, BODY_BYTES)
        client.select_confirms()
        client.socket.sendall(Encoder(form, client.channel).publishes(0, count))
        confirmed = 0
        while confirmed < count:
            tag, multiple = struct.unpack_from(">QB", client.expect(BASIC, 80))
            confirmed = tag if multiple else confirmed + 1


class Connections(Churn):
    """Clients with a queue of their own that leave it full: in order, or without a word."""

    def once(self) -> None:
        client = connect(self.site.amqp)
        try:
            name = f"soak.own.{self.rounds}"
            client.call(QUEUE, 10, _declare(name, _EXCLUSIVE, {}))
            self.fill(client, name, self.random.randint(1, LEFT_MAX))
            if self.random.random() < 0.5:
                client.close()
        finally:
            client.socket.close()


class Channels(Churn):
    """Channels that end with unacked messages, which go back to the queue they came from."""

    queue = "soak.channels"

    def once(self) -> None:
        with connected(self.site.amqp) as client:
            client.call(QUEUE, 10, _declare(self.queue, _DURABLE, {}))
            client.call(QUEUE, 30, b"\x00\x00" + frames.short(self.queue) + b"\x00")
            self.fill(client, self.queue, LEFT_MAX)
            for number in range(2, 2 + self.random.randint(1, 20)):
                client.channel = number
                client.call(CHANNEL, 10, b"\x00")
                client.call(BASIC, 10, struct.pack(">IHB", 0, 10, 0))
                consume = b"\x00\x00" + frames.short(self.queue) + frames.short("c") + b"\x00"
                client.call(BASIC, 20, consume + frames.long(b""))
                # What is delivered behind consume-ok is read and not acknowledged.
                client.socket.sendall(frames.method(number, CHANNEL, 40, _GOODBYE))
                _skip_to(client, (CHANNEL, 41))


class Queues(Churn):
    """Queues of every kind that are declared, filled, and deleted with what is in them."""

    def once(self) -> None:
        flags, arguments = self.random.choice(_KINDS)
        with connected(self.site.amqp) as client:
            name = f"soak.queue.{self.rounds}"
            client.call(QUEUE, 10, _declare(name, flags, arguments))
            client.bind(name, "amq.fanout", "")
            self.fill(client, name, self.random.randint(1, LEFT_MAX))
            client.delete_queue(name)


_GOODBYE = struct.pack(">HBHH", 200, 0, 0, 0)


def _declare(name: str, flags: int, arguments: Mapping[str, object]) -> bytes:
    return b"\x00\x00" + frames.short(name) + bytes((flags,)) + tables.table(dict(arguments))


def _skip_to(client: Client, wanted: tuple[int, int]) -> None:
    """Reads over deliveries to that method."""
    while True:
        kind, payload = client.read_frame()
        if kind == frames.METHOD and struct.unpack_from(">HH", payload) == wanted:
            return
