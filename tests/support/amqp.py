"""AMQP without sockets: clients of a broker in this process, for tests of its protocol.

    broker = make_broker()
    client = Client(broker)
    client.call("Queue.Declare", queue="q")
    client.publish(b"hello", routing_key="q")

What is sent is one read of a socket and the broker's turns behind it, until it has nothing more
to do. What came back is in `replies`, methods with the content that belongs to them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pamqp.frame
from pamqp.commands import Basic

from tests.conformance import frames
from tests.support.users import guest_users
from warrenmq.core.auth import User
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.context import BrokerLimits
from warrenmq.core.proto.connection import Connection
from warrenmq.core.store.port import Store

MAX_TURNS = 100_000
FRAME_MAX = 131_072
HEAD_BYTES = 7


def make_broker(
    store: Store | None = None, clock: ManualClock | None = None, limits: BrokerLimits | None = None
) -> Broker:
    """A broker whose time stands still, with the user `guest`."""
    return Broker(guest_users(), store=store, clock=clock or ManualClock(), limits=limits)


def take_turns(broker: Broker) -> None:
    """Turns until the broker has nothing more to do."""
    broker.tick()
    for _ in range(MAX_TURNS):
        if not broker.turn():
            return
    raise AssertionError("the broker has more to do without end")


class MemoryTransport:
    """Keeps what is written; a login waits in `logins` until it is answered."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.writes = 0
        self.closed = False
        self.logins: list[tuple[str, str, Callable[[User | None], None]]] = []
        self.drops_after_s: list[float] = []
        self.times_unblocked = 0

    def write(self, data: bytes | bytearray) -> None:
        assert not self.closed, "written behind the end"
        self.written += data
        self.writes += 1

    def close(self) -> None:
        self.closed = True

    def authenticate(self, name: str, password: str, answer: Callable[[User | None], None]) -> None:
        self.logins.append((name, password, answer))

    def drop_later(self, after_s: float) -> None:
        self.drops_after_s.append(after_s)

    def unblocked(self) -> None:
        self.times_unblocked += 1

    def taken(self) -> bytes:
        """Returns the bytes written since the last call."""
        taken, self.written = bytes(self.written), bytearray()
        return taken


@dataclass(frozen=True)
class Reply:
    """A method, with properties and body if it carries content; a heartbeat has no fields."""

    channel: int
    name: str
    fields: dict[str, Any]
    properties: Basic.Properties | None = None
    body: bytes = b""

    def __getitem__(self, field: str) -> Any:
        return self.fields[field]

    @property
    def headers(self) -> dict[str, Any]:
        assert self.properties is not None
        return dict(self.properties.headers or {})


def split(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Type, channel and whole bytes of each frame; what is cut off at the end is an error."""
    at = 0
    while at < len(data):
        kind, channel, size = struct.unpack_from(">BHI", data, at)
        end = at + size + frames.FRAME_OVERHEAD
        assert end <= len(data) and data[end - 1 : end] == frames.FRAME_END
        yield kind, channel, data[at:end]
        at = end


def read(data: bytes) -> list[Reply]:
    """Decodes these bytes as a client does; contents must be whole and in order."""
    replies: list[Reply] = []
    under_way = split(data)
    for kind, channel, frame in under_way:
        if kind == frames.HEARTBEAT:
            replies.append(Reply(channel, "Heartbeat", {}))
            continue
        assert kind == frames.METHOD, f"frame of type {kind} without a method before it"
        method: Any = pamqp.frame.unmarshal(frame)[2]
        properties, body = None, b""
        if method.name in ("Basic.Deliver", "Basic.GetOk", "Basic.Return"):
            properties, body = _content(under_way, channel)
        replies.append(Reply(channel, method.name, dict(method), properties, body))
    return replies


def _content(under_way: Iterator[tuple[int, int, bytes]], channel: int) -> tuple[Any, bytes]:
    kind, number, frame = next(under_way)
    assert (kind, number) == (frames.HEADER, channel)
    header: Any = pamqp.frame.unmarshal(frame)[2]
    body = b""
    while len(body) < header.body_size:
        kind, number, frame = next(under_way)
        assert (kind, number) == (frames.BODY, channel)
        body += frame[HEAD_BYTES:-1]
    assert len(body) == header.body_size
    return header.properties, body


def method(channel: int, name: str, **fields: Any) -> bytes:
    """A whole method frame; fields that are not given are zero, false or empty."""
    return frames.frame(frames.METHOD, channel, frames.method(name, **fields))


publish = frames.publish_frames


class Client:
    """A connection that is open, with channel 1; `frame_max` 0 takes what is offered."""

    def __init__(
        self,
        broker: Broker,
        *,
        fast: bool = True,
        user: str = "guest",
        vhost: str = "/",
        frame_max: int = 0,
        tells_cancels: bool = True,
        tells_blocks: bool = False,
    ) -> None:
        self.broker = broker
        self.transport = MemoryTransport()
        self.connection = Connection(broker, self.transport, name=user, fast=fast)
        self.feed(frames.PROTOCOL_HEADER)
        capabilities = {"consumer_cancel_notify": tells_cancels, "connection.blocked": tells_blocks}
        self.feed(
            method(
                0, "Connection.StartOk", mechanism="PLAIN", response=f"\0{user}\0secret",
                client_properties={"capabilities": capabilities},
            )
        )  # fmt: skip
        for name, _, answer in self.transport.logins:
            answer(broker.users.get(name))
        self.feed(
            method(0, "Connection.TuneOk", frame_max=frame_max)
            + method(0, "Connection.Open", virtual_host=vhost)
            + method(1, "Channel.Open")
        )
        assert names(self.replies)[-1:] == ["Channel.OpenOk"], f"not let in: {self.replies}"

    def receive(self, data: bytes) -> None:
        """One read with all its turns."""
        self.broker.tick()
        self.connection.receive(data)
        take_turns(self.broker)
        while self.connection.pending.unfinished and self.connection.output.socket_writable:
            self.connection.receive(b"")
            take_turns(self.broker)

    def feed(self, data: bytes) -> list[Reply]:
        """As `receive`; returns the replies, which `replies` keeps."""
        self.receive(data)
        return self.come()

    def come(self) -> list[Reply]:
        """Returns the replies since the last call, those caused by other clients too."""
        self.replies = read(self.transport.taken())
        return self.replies

    def send(self, name: str, channel: int = 1, **fields: Any) -> list[Reply]:
        """Class connection goes on channel 0 whatever is said."""
        number = 0 if name.startswith("Connection.") else channel
        return self.feed(method(number, name, **fields))

    def call(self, name: str, channel: int = 1, **fields: Any) -> Reply:
        """Sends a method; gives the only answer."""
        (reply,) = self.send(name, channel, **fields)
        return reply

    def publish(
        self,
        body: bytes = b"",
        properties: Mapping[str, object] | frames.Raw | None = None,
        channel: int = 1,
        **fields: Any,
    ) -> list[Reply]:
        return self.feed(publish(channel, body, properties, **fields))

    def declare(self, queue: str, **fields: Any) -> None:
        assert self.call("Queue.Declare", queue=queue, **fields).name == "Queue.DeclareOk"

    def consume(self, queue: str, tag: str = "c", channel: int = 1, **fields: Any) -> list[Reply]:
        """Starts a consumer; gives what was delivered at once."""
        ok, *delivered = self.send(
            "Basic.Consume", channel, queue=queue, consumer_tag=tag, **fields
        )
        assert ok.name == "Basic.ConsumeOk", ok
        return delivered

    def messages(self, queue: str) -> int:
        """Returns the number of ready messages in a queue."""
        found = self.broker.vhosts["/"].queues.get(queue)
        assert found is not None, f"no queue {queue}"
        return found.ready_count

    def bodies(self) -> list[bytes]:
        """Of the deliveries that have come since the last time."""
        return [reply.body for reply in self.come() if reply.name == "Basic.Deliver"]


def bodies(replies: list[Reply]) -> list[bytes]:
    return [reply.body for reply in replies if reply.name in ("Basic.Deliver", "Basic.GetOk")]


def names(replies: list[Reply]) -> list[str]:
    return [reply.name for reply in replies]
