"""A small blocking AMQP client that sends anything, valid or not.

Every read has a time limit. Replies are decoded by pamqp and kept by channel, so that a test
waits for what it wants on one channel while others go on.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import pamqp.frame
from pamqp import commands

from . import frames

HOST = "127.0.0.1"
TIMEOUT_S = 30.0
CAPABILITIES = {
    "authentication_failure_close": True,
    "basic.nack": True,
    "connection.blocked": True,
    "consumer_cancel_notify": True,
    "publisher_confirms": True,
}


class Disconnected(Exception):
    """The server closed the socket."""


@dataclass
class Content:
    """A message with the method that brought it: a delivery, a get-ok or a return."""

    method: Any
    properties: commands.Basic.Properties
    body: bytes


def decode(kind: int, channel: int, payload: bytes) -> Any:
    """Returns a method, a content header or the bytes of a body."""
    if kind == frames.BODY:
        return payload
    return pamqp.frame.unmarshal(frames.frame(kind, channel, payload))[2]


def describe(value: Any) -> str:
    return f"{value.name} {dict(value)}" if hasattr(value, "name") else repr(value)


@dataclass
class Client:
    """One TCP connection; `connect` returns an open one."""

    port: int
    timeout_s: float = TIMEOUT_S
    frame_max: int = 131_072
    _buffer: bytearray = field(default_factory=bytearray)
    _inbox: dict[int, deque[tuple[int, bytes]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.socket = socket.create_connection((HOST, self.port), self.timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Sends all bytes; if the server has closed the connection, the next read raises."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def read_bytes(self, size: int) -> bytes:
        """Returns exactly `size` bytes; raises `Disconnected` or `TimeoutError`."""
        while len(self._buffer) < size:
            try:
                chunk = self.socket.recv(65_536)
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise Disconnected(f"after {bytes(self._buffer[:64])!r}")
            self._buffer += chunk
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def read_frame(self) -> tuple[int, int, bytes]:
        """Returns the next frame, heartbeats too: kind, channel, payload."""
        kind, channel, size = struct.unpack(">BHI", self.read_bytes(7))
        assert size + frames.FRAME_OVERHEAD <= self.frame_max, f"frame of {size} bytes"
        payload = self.read_bytes(size)
        assert self.read_bytes(1) == frames.FRAME_END
        return kind, channel, payload

    def receive_raw(self, channel: int) -> tuple[int, bytes]:
        """Returns the next frame of the channel: kind and payload."""
        waiting = self._inbox.setdefault(channel, deque())
        while not waiting:
            kind, number, payload = self.read_frame()
            if kind != frames.HEARTBEAT:
                self._inbox.setdefault(number, deque()).append((kind, payload))
            if number == 0 and channel != 0 and kind == frames.METHOD:
                raise AssertionError(f"{describe(decode(kind, 0, payload))} on channel 0")
        return waiting.popleft()

    def receive(self, channel: int = 0) -> Any:
        """Returns the next method, content header or body of the channel."""
        kind, payload = self.receive_raw(channel)
        return decode(kind, channel, payload)

    def expect(self, name: str, channel: int = 0) -> Any:
        """Returns the next frame of the channel, which has to be that method."""
        value = self.receive(channel)
        assert isinstance(value, frames.method_type(name)), f"{describe(value)}, not {name}"
        return value

    def send_method(self, name: str, channel: int = 0, **fields: object) -> None:
        self.send(frames.frame(frames.METHOD, channel, frames.method(name, **fields)))

    def start(self, header: bytes = frames.PROTOCOL_HEADER) -> Any:
        self.send(header)
        return self.expect("Connection.Start")

    def log_in(
        self,
        user: str = "guest",
        password: str = "guest",
        *,
        mechanism: str = "PLAIN",
        response: str | bytes | None = None,
        capabilities: Mapping[str, object] | None = None,
    ) -> None:
        """Sends start-ok and reads nothing."""
        known = CAPABILITIES if capabilities is None else capabilities
        self.send_method(
            "Connection.StartOk",
            client_properties={"product": "raw", "capabilities": dict(known)},
            mechanism=mechanism,
            response=f"\0{user}\0{password}" if response is None else response,
            locale="en_US",
        )

    def tune(
        self, channel_max: int | None = None, frame_max: int | None = None, heartbeat: int = 0
    ) -> Any:
        """Waits for tune and sends tune-ok; fields that are not given are as offered."""
        offer = self.expect("Connection.Tune")
        self.send_method(
            "Connection.TuneOk",
            channel_max=offer.channel_max if channel_max is None else channel_max,
            frame_max=offer.frame_max if frame_max is None else frame_max,
            heartbeat=heartbeat,
        )
        acceptable = frame_max is not None and frames.FRAME_MIN <= frame_max <= offer.frame_max
        self.frame_max = frame_max if frame_max and acceptable else offer.frame_max
        return offer

    def open(self, vhost: str = "/") -> None:
        self.send_method("Connection.Open", virtual_host=vhost)
        self.expect("Connection.OpenOk")

    def channel(self, number: int = 1) -> Channel:
        """Opens a channel."""
        channel = Channel(self, number)
        channel.open()
        return channel

    def closed(
        self, code: int, text: str | None = None, culprit: str | tuple[int, int] | None = None
    ) -> str:
        """Waits for a connection.close with that code and for the end; returns the reply text.

        `culprit` is the method that the server names as the cause, `(0, 0)` for none.
        """
        self._inbox.clear()
        while not isinstance(close := self.receive(), commands.Connection.Close):
            pass
        _check_close(close, code, text, culprit)
        self.send_method("Connection.CloseOk")
        self.ended()
        return str(close.reply_text)

    def ended(self) -> None:
        """Waits for the end of the connection; nothing but heartbeats may come before it."""
        with contextlib.suppress(Disconnected):
            while True:
                kind, channel, payload = self.read_frame()
                assert kind == frames.HEARTBEAT, describe(decode(kind, channel, payload))

    def half_close(self) -> None:
        """Closes the sending side."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def hung_up(self) -> None:
        """Waits for the end, whatever is received before it."""
        with contextlib.suppress(Disconnected):
            while True:
                self.read_bytes(1)

    def close(self) -> None:
        """Closes the connection with connection.close."""
        self.send_method("Connection.Close", reply_code=200, reply_text="bye")
        self.expect("Connection.CloseOk")


@dataclass
class Channel:
    """One channel of a client; `Client.channel` returns an open one."""

    client: Client
    number: int

    def send(self, name: str, **fields: object) -> None:
        self.client.send_method(name, self.number, **fields)

    def expect(self, name: str) -> Any:
        return self.client.expect(name, self.number)

    def call(self, name: str, **fields: object) -> Any:
        """Sends a method and returns its `-ok`, which has to be the next frame."""
        self.send(name, **fields)
        return self.expect(f"{name}Ok")

    def open(self) -> None:
        self.call("Channel.Open")

    def close(self) -> None:
        self.call("Channel.Close", reply_code=200)

    def publish(
        self,
        body: bytes = b"",
        properties: Mapping[str, object] | frames.Raw | None = None,
        **fields: object,
    ) -> None:
        """Publishes a message; `fields` are those of `Basic.Publish`."""
        self.client.send(
            frames.publish_frames(self.number, body, properties, self.client.frame_max, **fields)
        )

    def put(
        self, queue: str, *bodies: bytes, properties: Mapping[str, object] | None = None
    ) -> None:
        """Publishes to the queue and returns when the queue has it."""
        for body in bodies:
            self.publish(body, properties, routing_key=queue)
        self.ready(queue)

    def declare(self, queue: str = "", **fields: object) -> Any:
        return self.call("Queue.Declare", queue=queue, **fields)

    def consume(self, queue: str, **fields: object) -> str:
        """Returns the consumer's tag."""
        return str(self.call("Basic.Consume", queue=queue, **fields).consumer_tag)

    def content(self, name: str = "Basic.Deliver") -> Content:
        """Reads a whole message; raises `AssertionError` when something else comes."""
        return self.rest_of(self.expect(name))

    def rest_of(self, method: Any) -> Content:
        """Returns header and body after a method that was read already."""
        header = self.client.receive(self.number)
        body = b""
        while len(body) < header.body_size:
            body += self.client.receive(self.number)
        return Content(method, header.properties, body)

    def bodies(self, count: int) -> list[bytes]:
        return [self.content().body for _ in range(count)]

    def get(self, queue: str, *, no_ack: bool = True) -> Content | None:
        """Returns a message, or None for get-empty."""
        self.send("Basic.Get", queue=queue, no_ack=no_ack)
        reply = self.client.receive(self.number)
        if isinstance(reply, commands.Basic.GetEmpty):
            return None
        assert isinstance(reply, commands.Basic.GetOk), describe(reply)
        return self.rest_of(reply)

    def taken(self, queue: str, *, no_ack: bool = True) -> Content:
        """Returns the next message, which must exist."""
        message = self.get(queue, no_ack=no_ack)
        assert message is not None, f"queue {queue} is empty"
        return message

    def filled(self, queue: str, count: int) -> list[bytes]:
        """Declares a queue and puts that many messages into it; returns their bodies."""
        bodies = [b"%d" % number for number in range(count)]
        self.declare(queue)
        self.put(queue, *bodies)
        return bodies

    def drain(self, queue: str) -> list[bytes]:
        """Takes all ready messages and returns the bodies."""
        return [message.body for message in iter(lambda: self.get(queue), None)]

    def ready(self, queue: str) -> int:
        """Returns the number of ready messages."""
        return int(self.declare(queue, passive=True).message_count)

    def refused(
        self, code: int, text: str | None = None, culprit: str | tuple[int, int] | None = None
    ) -> str:
        """Waits for a channel.close with that code and answers it; returns the reply text."""
        close = self.expect("Channel.Close")
        _check_close(close, code, text, culprit)
        self.send("Channel.CloseOk")
        return str(close.reply_text)


def _check_close(
    close: Any, code: int, text: str | None, culprit: str | tuple[int, int] | None
) -> None:
    assert close.reply_code == code, describe(close)
    if text is not None:
        assert close.reply_text == text
    if culprit is not None:
        index = frames.method_type(culprit).index if isinstance(culprit, str) else None
        expected = divmod(index, 1 << 16) if index is not None else culprit
        assert (close.class_id, close.method_id) == expected, describe(close)


def connect(
    port: int,
    *,
    user: str = "guest",
    password: str = "guest",
    vhost: str = "/",
    capabilities: Mapping[str, object] | None = None,
    channel_max: int | None = None,
    frame_max: int | None = None,
    heartbeat: int = 0,
) -> Client:
    """Returns an open connection."""
    client = Client(port)
    client.start()
    client.log_in(user, password, capabilities=capabilities)
    client.tune(channel_max, frame_max, heartbeat)
    client.open(vhost)
    return client
