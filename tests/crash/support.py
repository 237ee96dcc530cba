"""What tests of faults need: publishers whose answers are counted, and queues read to their end."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.bench import frames
from tests.bench.client import Address, BenchError
from tests.support.server import WarrenServer

from .clients import connect, connected
from .wire import Answers, Closed, Deliveries, Encoder, Form, read_body, settle

READ_BYTES = 1 << 18
TAG = "c"


def amqp(server: WarrenServer) -> Address:
    return Address(server.host, server.amqp_port)


@dataclass
class Fates:
    """Numbers of messages, by what the broker answered; the rest is unknown."""

    confirmed: list[int] = field(default_factory=list)
    nacked: list[int] = field(default_factory=list)


class Sender:
    """A publisher in confirm mode whose messages are numbered from `first` on."""

    def __init__(
        self, server: WarrenServer, queue: str, *, size: int = 64, first: int = 0,
        durable: bool = True, persistent: bool = True,
    ) -> None:  # fmt: skip
        self.client = connect(amqp(server))
        self.client.declare_queue(queue, durable=durable)
        self.client.select_confirms()
        self.fates = Fates()
        self._first = first
        self.sent = 0
        self._answers = Answers(self.client.buffered)
        properties = frames.PERSISTENT if persistent else frames.TRANSIENT
        self._encoder = Encoder(Form(0, "", queue, size, properties))

    def send(self, count: int) -> None:
        """Publishes and does not wait."""
        data = self._encoder.publishes(self._first + self.sent, count)
        self.sent += count
        self.client.socket.sendall(data)

    @property
    def waiting(self) -> int:
        """How many have no answer yet."""
        return self.sent - self._answers.count

    def read(self) -> None:
        """Takes what has been answered; raises `OSError` or `Closed` at the end of it all."""
        data = self.client.socket.recv(READ_BYTES)
        if not data:
            raise ConnectionResetError("closed by the broker")
        for first, last, ack in self._answers.feed(data):
            numbers = range(self._first + first - 1, self._first + last)
            (self.fates.confirmed if ack else self.fates.nacked).extend(numbers)

    def wait(self) -> Fates:
        """Returns when every publish is answered."""
        while self.waiting:
            self.read()
        return self.fates

    def wait_or_end(self) -> bool:
        """As `wait`; False if the connection ended instead."""
        try:
            self.wait()
        except (ConnectionError, Closed):
            return False
        return True

    def publish(self, count: int, at_once: int = 1_000) -> Fates:
        """Publishes and waits for all answers, so many at a time."""
        for start in range(0, count, at_once):
            self.send(min(at_once, count - start))
            self.wait()
        return self.fates

    def close(self) -> None:
        self.client.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass
class Taken:
    number: int
    redelivered: bool


class Taker:
    """A consumer that acks when it is told to."""

    def __init__(self, address: Address, queue: str, prefetch: int = 0) -> None:
        self.client = connect(address)
        self.client.consume(queue, TAG, no_ack=False, prefetch=prefetch)
        self._reader = Deliveries(self.client.buffered)
        self._tag = 0
        self._early = self._reader.feed(b"")

    def take(self, count: int) -> list[Taken]:
        """The next messages, unacked."""
        found: list[Taken] = []
        deliveries, self._early = self._early, []
        while True:
            for tag, redelivered, body in deliveries:
                numbers = read_body(body)
                assert numbers is not None, body[:64]
                found.append(Taken(numbers[1], redelivered))
                self._tag = tag
            if len(found) >= count:
                return found
            data = self.client.socket.recv(READ_BYTES)
            if not data:
                raise ConnectionResetError("closed by the broker")
            deliveries = self._reader.feed(data)

    def ack(self) -> None:
        """All that was taken."""
        self.client.socket.sendall(settle(self._tag, multiple=True))

    def leave(self) -> None:
        """Returns when the broker has taken in what was acked."""
        self.client.buffered.clear()
        self.client.socket.sendall(frames.method(1, 20, 40, b"\x00\xc8\x00\x00\x00\x00\x00"))
        while (20, 41) not in self._reader.others:
            self._reader.feed(self.client.socket.recv(READ_BYTES))
        self.client.socket.close()


def depth(server: WarrenServer, queue: str) -> int:
    """How many messages are ready; raises `BenchError` when there is no such queue."""
    with connected(amqp(server)) as client:
        return client.declare_queue(queue, passive=True, durable=True)


def exists(server: WarrenServer, queue: str) -> bool:
    try:
        depth(server, queue)
    except BenchError:
        return False
    return True


def drain(server: WarrenServer, queue: str) -> list[Taken]:
    """Takes and acks all that is ready."""
    count = depth(server, queue)
    if not count:
        return []
    taker = Taker(amqp(server), queue)
    found = taker.take(count)
    taker.ack()
    taker.leave()
    return found


def numbers(taken: list[Taken]) -> list[int]:
    return [one.number for one in taken]
