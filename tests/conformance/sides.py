"""Two brokers in this process, without sockets, that get the same bytes.

On one, connections take the fast path where they can; on the other the cold path for everything.
A second connection reads what the first publishes, with small frames. Acknowledgements choose
among what the cold side delivered.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pamqp.frame

from tests.support.users import guest_users
from warrenmq.core.auth import User, Users
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.proto.connection import Connection

from . import frames

CHANNELS = (1, 2, 3)
NO_ACK_CHANNELS = (4, 5, 6)
READER_CHANNEL = 2
READ_BYTES = 262_144
MAX_TURNS = 10_000
QUEUES = ("a", "b", "read", "limited")


class Sink:
    """A transport that keeps what is written."""

    def __init__(self, users: Users) -> None:
        self.users = users
        self.out = bytearray()
        self.closed = False

    def write(self, data: bytes | bytearray) -> None:
        self.out += data

    def close(self) -> None:
        self.closed = True

    def authenticate(self, name: str, password: str, answer: Callable[[User | None], None]) -> None:
        answer(self.users.get(name))

    def drop_later(self, after_s: float) -> None:
        raise AssertionError("nobody logs in wrongly here")

    def unblocked(self) -> None:
        raise AssertionError("there is no alarm here")

    def taken(self) -> bytes:
        out, self.out = bytes(self.out), bytearray()
        return out


def method(channel: int, name: str, **fields: object) -> bytes:
    return frames.frame(frames.METHOD, channel, frames.method(name, **fields))


def handshake(frame_max: int) -> bytes:
    return (
        frames.PROTOCOL_HEADER
        + method(0, "Connection.StartOk", mechanism="PLAIN", response="\0guest\0guest",
                 client_properties={"capabilities": {"consumer_cancel_notify": True}})
        + method(0, "Connection.TuneOk", channel_max=0, frame_max=frame_max)
        + method(0, "Connection.Open", virtual_host="/")
    )  # fmt: skip


def begin(channel: int) -> bytes:
    """Opens a channel that confirms and consumes with acks."""
    return (
        method(channel, "Channel.Open")
        + method(channel, "Confirm.Select")
        + method(channel, "Basic.Qos", prefetch_count=5)
        + method(channel, "Basic.Consume", queue="a", consumer_tag=f"acks-{channel}")
    )


TOPOLOGY = b"".join(
    [
        *(method(1, "Queue.Declare", queue=queue) for queue in ("a", "b", "read", "kept")),
        method(1, "Queue.Declare", queue="limited",
               arguments={"x-max-length": 3, "x-overflow": "reject-publish"}),
        *(method(1, "Queue.Bind", queue=queue, exchange="amq.fanout") for queue in QUEUES[:3]),
        *(method(1, "Queue.Bind", queue=queue, exchange="amq.topic", routing_key=key)
          for queue, key in (("a", "eu.*"), ("kept", "#"), ("read", "*.fr"))),
        method(1, "Queue.Bind", queue="kept", exchange="amq.headers", arguments={"h": 1}),
    ]
)  # fmt: skip


class Side:
    """A broker with the connection under test and a reader."""

    def __init__(self, fast: bool) -> None:
        users = guest_users()
        self.broker = Broker(users, clock=ManualClock())
        self.sinks = Sink(users), Sink(users)
        self.tested = Connection(self.broker, self.sinks[0], fast=fast)
        self.reader = Connection(self.broker, self.sinks[1], fast=fast)
        self.feed(self.tested, handshake(131_072) + method(1, "Channel.Open") + TOPOLOGY)
        self.feed(self.tested, method(1, "Channel.Close") + b"".join(map(begin, CHANNELS)))
        # On channels of their own: deliveries of two queues to one channel have no order.
        for number in NO_ACK_CHANNELS:
            consume = method(
                number, "Basic.Consume", queue="b", consumer_tag=f"none-{number}", no_ack=True
            )
            self.feed(self.tested, method(number, "Channel.Open") + consume)
        self.feed(
            self.reader,
            handshake(4096)
            + method(READER_CHANNEL, "Channel.Open")
            + method(READER_CHANNEL, "Basic.Consume", queue="read", consumer_tag="r", no_ack=True),
        )

    def feed(self, connection: Connection, data: bytes) -> tuple[bytes, bytes]:
        """One read, one turn or as many as it takes; gives what both connections were sent."""
        self.broker.tick()
        connection.receive(data)
        assert not connection.unfinished, "a read that is too large for one turn"
        for _ in range(MAX_TURNS):
            if not self.broker.turn():
                break
        else:
            raise AssertionError("the broker has more to do without end")
        return self.sinks[0].taken(), self.sinks[1].taken()

    def state(self) -> list[tuple[str, int, int]]:
        queues = self.broker.vhosts["/"].queues.values()
        return sorted((queue.name, queue.ready_count, queue.consumer_count) for queue in queues)


def whole_frames(out: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Kind, channel and octets of each frame."""
    at = 0
    while at < len(out):
        kind, channel, size = struct.unpack_from(">BHI", out, at)
        after = at + size + frames.FRAME_OVERHEAD
        yield kind, channel, out[at:after]
        at = after
    assert at == len(out)


def by_channel(out: bytes) -> dict[int, bytes]:
    """What each channel was sent; there is no order among channels."""
    sent: dict[int, bytes] = {}
    for _, channel, octets in whole_frames(out):
        sent[channel] = sent.get(channel, b"") + octets
    return sent


def replies(out: bytes) -> Iterator[tuple[int, Any]]:
    """The methods in a piece of output, with their channel."""
    for kind, channel, octets in whole_frames(out):
        if kind == frames.METHOD:
            yield channel, pamqp.frame.unmarshal(octets)[2]


@dataclass
class Outstanding:
    """Delivery tags that wait for an ack, by channel, as a client sees them."""

    tags: dict[int, list[int]] = field(default_factory=lambda: {n: [] for n in CHANNELS})

    def read(self, out: bytes) -> None:
        for channel, reply in replies(out):
            if reply.name == "Channel.Close":
                self.tags[channel] = []
            elif channel in CHANNELS and reply.name in ("Basic.GetOk", "Basic.Deliver"):
                self.tags[channel].append(reply.delivery_tag)

    def take(self, channel: int, at: int, multiple: bool) -> int | None:
        """Takes the tag at a place, or all up to it; None if there is none."""
        tags = self.tags[channel]
        if at >= len(tags):
            return None
        tag = tags[at]
        del tags[0 if multiple else at : at + 1]
        return tag


Step = Callable[[Outstanding], bytes]
"""Gives its bytes when it is known what is outstanding."""


def constant(data: bytes) -> Step:
    return lambda _: data


def agree(groups: list[list[Step]], cuts: list[float]) -> None:
    """Feeds both sides group by group and compares after each piece."""
    fast, cold = Side(fast=True), Side(fast=False)
    outstanding = Outstanding()
    for group in groups:
        data = b"".join(step(outstanding) for step in group)
        for piece in pieces(data, cuts):
            got, expected = fast.feed(fast.tested, piece), cold.feed(cold.tested, piece)
            for one, other in zip(got, expected, strict=True):
                assert by_channel(one) == by_channel(other), (readable(one), readable(other))
            outstanding.read(expected[0])
        assert fast.state() == cold.state()
    assert fast.sinks[0].closed == cold.sinks[0].closed


def pieces(data: bytes, cuts: list[float]) -> list[bytes]:
    """Cuts at these shares of the whole, and where a read of the server would end at the latest."""
    size = len(data)
    places = sorted({*(int(cut * size) for cut in cuts), *range(0, size, READ_BYTES), size})
    return [data[low:high] for low, high in pairwise(places)]


def readable(out: bytes) -> list[tuple[int, str, dict[str, Any]]]:
    """So that a difference can be read."""
    return [(channel, reply.name, dict(reply)) for channel, reply in replies(out)]
