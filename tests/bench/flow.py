"""One flow of messages: topology, producers, consumers, and the figures that come out."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from .brokers import Broker
from .client import BenchError, Client
from .consumer import Counted, Subscription, consume
from .figures import Figures
from .frames import Stream
from .producer import Load, Sent, publish
from .spent import Spent
from .worker import Crew, Worker

DRAIN_LIMIT_S = 60.0
SLOWEST_DRAIN_PER_S = 10_000


@dataclass(frozen=True)
class Exchange:
    name: str
    kind: str
    bindings: tuple[tuple[str, str], ...]
    """Pairs of queue and key."""


@dataclass(frozen=True)
class Flow:
    """The declarations, publishers and consumers; `copies` deliveries come of each publish."""

    queues: tuple[str, ...]
    producers: tuple[tuple[Callable[[], Stream], Load], ...] = ()
    consumers: tuple[Subscription, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    copies: int = 1
    durable: bool = False
    arguments: bytes = b""
    """Those of the queues, as the entries of a table."""


@dataclass
class Outcome:
    """The raw result of a flow."""

    sent: list[Sent] = field(default_factory=list)
    counted: Counted | None = None

    @property
    def published(self) -> int:
        return sum(sent.count for sent in self.sent)

    @property
    def in_rate(self) -> float | None:
        seconds = max((sent.seconds for sent in self.sent), default=0.0)
        return self.published / seconds if seconds else None

    @property
    def out_rate(self) -> float | None:
        if self.counted is None or not self.counted.seconds:
            return None
        return self.counted.count / self.counted.seconds


class Running:
    """The load processes of a flow: started ready, then released together."""

    def __init__(self, crew: Crew, broker: Broker, flow: Flow, *, filled: int = 0) -> None:
        self._crew, self._flow, self._filled = crew, flow, filled
        self._progress = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")
        longest = max((load.seconds for _, load in flow.producers), default=0.0)
        self._limit_s = longest + DRAIN_LIMIT_S + filled / SLOWEST_DRAIN_PER_S
        self._consumer: Worker | None = None
        if flow.consumers:
            target = partial(consume, start_before=not filled)
            self._consumer = crew.hire(
                target, broker.address, flow.consumers, self._limit_s, self._progress
            )
        self._producers = [
            crew.hire(publish, broker.address, make(), load, self.consumed)
            for make, load in flow.producers
        ]

    def consumed(self) -> int:
        """Returns the number of messages delivered so far."""
        return self._progress[0]

    def go(self) -> None:
        self._crew.go()

    def finish_producers(self) -> Outcome:
        """Waits for the producers alone; the consumer goes on until it is stopped."""
        return Outcome([worker.result(self._limit_s) for worker in self._producers])

    def finish(self) -> Outcome:
        """Waits for the producers, sends the consumer their count, and waits for that too.

        Raises `BenchError` when another number came out than went in.
        """
        outcome = self.finish_producers()
        if self._consumer is not None:
            expected = (outcome.published + self._filled) * self._flow.copies
            self._consumer.pipe.send(expected)
            outcome.counted = self._consumer.result(self._limit_s)
            if outcome.counted.count != expected:
                raise BenchError(f"{outcome.counted.count} came out, not {expected}")
        return outcome


class Standing:
    """A flow's queues and exchanges, declared on entry and deleted on exit."""

    def __init__(self, broker: Broker, flow: Flow) -> None:
        self._broker, self._flow = broker, flow

    def __enter__(self) -> None:
        client, flow = Client(self._broker.address), self._flow
        for queue in flow.queues:
            client.declare_queue(queue, durable=flow.durable, arguments=flow.arguments)
        for exchange in flow.exchanges:
            client.declare_exchange(exchange.name, exchange.kind, durable=flow.durable)
            for queue, key in exchange.bindings:
                client.bind(queue, exchange.name, key)
        client.close()

    def __exit__(self, *_: object) -> None:
        client = Client(self._broker.address)
        for exchange in self._flow.exchanges:
            client.delete_exchange(exchange.name)
        for queue in self._flow.queues:
            client.delete_queue(queue)
        client.close()


def fill(broker: Broker, flow: Flow) -> Outcome:
    """Runs only the producers of a flow whose queues stand already."""
    with Crew() as crew:
        running = Running(crew, broker, Flow(flow.queues, flow.producers))
        running.go()
        return running.finish()


def drain(broker: Broker, flow: Flow, count: int) -> Outcome:
    """Runs only the consumers, until the `count` messages that wait have come out."""
    with Crew() as crew:
        running = Running(crew, broker, replace(flow, producers=()), filled=count)
        running.go()
        return running.finish()


def figures(outcome: Outcome, spent: Spent) -> Figures:
    messages = outcome.counted.count if outcome.counted else outcome.published
    return Figures(outcome.in_rate, outcome.out_rate, spent.cpu_us(messages), spent.peak_mb())


def run(broker: Broker, flow: Flow) -> Figures:
    """Stands the flow up, runs it, and gives its line."""
    with Standing(broker, flow), Crew() as crew:
        running = Running(crew, broker, flow)
        spent = Spent(broker)
        running.go()
        return figures(running.finish(), spent)
