"""Two brokers that get the same bytes: one scans reads, the other handles frame by frame.

Each has a publisher, a consumer that acknowledges, a reader with another channel number and small
frames, and a consumer of messages from the store. Everything that these connections are sent is
compared after each piece; only confirms may come later on the fast side, since what is stored
together is confirmed together.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from tests.conformance import frames
from tests.support.amqp import Client, Reply, make_broker, method, publish, read, split, take_turns
from tests.support.manual_store import ManualStore
from warrenmq.core.clock import ManualClock
from warrenmq.core.proto.connection_state import ConnectionState
from warrenmq.core.proto.target_cache import TARGETS_MAX

READER_CHANNEL = 5
OPENED_OR_CLOSED = frozenset(
    frames.method(name)[:4] for name in ("Channel.OpenOk", "Channel.Close", "Channel.CloseOk")
)
CONFIRMS = frozenset(frames.method(name)[:4] for name in ("Basic.Ack", "Basic.Nack"))
REPLY_NAME = re.compile(rb"(?<=amq\.rabbitmq\.reply-to\.)[\w-]{24}")
"""Random, so the two sides differ in it."""
EXCHANGES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("by-key", "x-consistent-hash", {}),
    ("by-id", "x-consistent-hash", {"hash-property": "message_id"}),
    ("parts", "x-modulus-hash", {}),
    ("any", "x-random", {"alternate-exchange": "by-key"}),
)
"""Those that choose one queue; `any` chooses its last binding here."""


class Confirmed:
    """Confirmed publishes: channel, how often that was opened or closed, tag, ack or nack."""

    def __init__(self) -> None:
        self.publishes: set[tuple[int, int, int, str]] = set()
        self.turns: dict[int, int] = defaultdict(int)
        self._last: dict[int, int] = defaultdict(int)

    def read(self, out: bytes) -> bytes:
        """Notes the confirms; returns everything else. Each tag comes once, in order."""
        rest = b""
        for _, channel, frame in split(out):
            if frame[7:11] not in CONFIRMS:
                rest += frame
                if frame[7:11] in OPENED_OR_CLOSED:
                    self.turns[channel] += 1
                    self._last[channel] = 0
                continue
            (reply,) = read(frame)
            first, last = self._last[channel] + 1, reply["delivery_tag"]
            assert last > first if reply["multiple"] else last == first
            self._last[channel] = last
            turn = self.turns[channel]
            self.publishes |= {(channel, turn, tag, reply.name) for tag in range(first, last + 1)}
        return rest

    @property
    def of_open_channels(self) -> set[tuple[int, int, int, str]]:
        return {publish for publish in self.publishes if publish[1] == self.turns[publish[0]]}


class Side:
    """One broker with its clients."""

    def __init__(self, fast: bool, paging: bool, crowded: bool) -> None:
        self.store = ManualStore()
        self.store.paging = paging
        self.clock = ManualClock()
        self.broker = make_broker(self.store, self.clock)
        self.publisher = Client(self.broker, fast=fast)
        self.acker = Client(self.broker, fast=fast)
        self.keeper = Client(self.broker, fast=fast)
        self.reader = Client(self.broker, fast=fast, frame_max=frames.FRAME_MIN)
        for queue in ("acked", "read", "kept"):
            self.publisher.declare(queue)
        self.publisher.declare("durable", durable=True)
        self.publisher.declare(
            "short", arguments={"x-max-length": 2, "x-overflow": "reject-publish"}
        )
        for queue in ("acked", "read"):
            self.publisher.call("Queue.Bind", queue=queue, exchange="amq.fanout")
            self.publisher.call("Queue.Bind", queue=queue, exchange="amq.topic", routing_key="eu.#")
        self.publisher.call(
            "Queue.Bind", queue="kept", exchange="amq.headers", arguments={"kind": "a"}
        )
        for name, kind, arguments in EXCHANGES:
            self.publisher.call(
                "Exchange.Declare", exchange=name, exchange_type=kind, arguments=arguments
            )
            for queue, weight in (("acked", "10"), ("read", "20"), ("kept", "10")):
                self.publisher.call("Queue.Bind", queue=queue, exchange=name, routing_key=weight)
        self.publisher.call(
            "Exchange.Bind", destination="by-id", source="amq.topic", routing_key="by.*"
        )
        self.publisher.feed(open_channel(2))
        self.publisher.send("Confirm.Select")
        self.publisher.send(
            "Basic.Consume", queue="amq.rabbitmq.reply-to", consumer_tag="replies", no_ack=True
        )
        if crowded:
            self.publisher.receive(
                b"".join(
                    publish(1, b"", exchange="amq.topic", routing_key=f"us.{number}")
                    for number in range(TARGETS_MAX)
                )
            )
        self.acker.consume("acked")
        self.keeper.consume("durable", "d", no_ack=True)
        self.reader.send("Channel.Open", READER_CHANNEL)
        self.reader.consume("read", "r", READER_CHANNEL, no_ack=True)
        self.clients = (self.publisher, self.acker, self.reader, self.keeper)
        self.confirmed = Confirmed()
        self.come()

    def feed(self, client: int, data: bytes) -> list[bytes]:
        self.clients[client].receive(data)
        return self.come()

    def come(self) -> list[bytes]:
        """Returns the output to each client, without the confirms, which `confirmed` takes."""
        take_turns(self.broker)
        while self.store.arrive():
            take_turns(self.broker)
        outs = [REPLY_NAME.sub(b"?" * 24, client.transport.taken()) for client in self.clients]
        return [self.confirmed.read(outs[0]), *outs[1:]]

    def commit(self) -> list[bytes]:
        self.store.commit()
        return self.come()

    def wait(self, ms: int) -> list[bytes]:
        self.clock.advance(ms)
        return self.come()

    def counts(self) -> list[tuple[str, int, int]]:
        queues = self.broker.vhosts["/"].queues.values()
        return [(queue.name, queue.ready_count, queue.unacked_count) for queue in queues]


def open_channel(channel: int) -> bytes:
    return method(channel, "Channel.Open")


class Sides:
    """A fast and a slow side; `crowded`: as many targets were used before as are cached."""

    def __init__(self, *, paging: bool = False, crowded: bool = False) -> None:
        self.fast = Side(True, paging, crowded)
        self.slow = Side(False, paging, crowded)

    def act(self, act: Callable[[Side], list[bytes]]) -> list[bytes]:
        """Does the same on both sides and compares; returns the output to each client."""
        got, expected = act(self.fast), act(self.slow)
        if got != expected:
            assert [readable(out) for out in got] == [readable(out) for out in expected]
        assert got == expected
        assert self.fast.confirmed.publishes <= self.slow.confirmed.publishes
        assert self.fast.publisher.connection.state is self.slow.publisher.connection.state
        return expected

    def feed(self, data: bytes, cuts: list[float], client: int = 0) -> list[list[bytes]]:
        """Feeds a client's bytes in pieces, cut at these shares of the whole."""
        return [self.act(partial(Side.feed, client=client, data=one)) for one in pieces(data, cuts)]

    def commit(self) -> None:
        self.act(Side.commit)
        if self.fast.publisher.connection.state is ConnectionState.OPEN:
            confirmed = self.slow.confirmed.of_open_channels
            assert self.fast.confirmed.of_open_channels == confirmed
        assert self.fast.counts() == self.slow.counts()


def pieces(data: bytes, cuts: list[float]) -> list[bytes]:
    places = sorted({int(cut * len(data)) for cut in cuts} | {0, len(data)})
    return [data[low:high] for low, high in pairwise(places)]


def readable(out: bytes) -> list[Reply]:
    return [
        Reply(reply.channel, reply.name, reply.fields, None, reply.body[:40]) for reply in read(out)
    ]
