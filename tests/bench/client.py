"""A small blocking AMQP client: it declares and consumes, then hands out its bare socket."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple

from . import frames

TIMEOUT_S = 60.0
READ_BYTES = 1 << 18
CHANNEL_MAX = 100

START, START_OK, TUNE, TUNE_OK, OPEN, OPEN_OK = 10, 11, 30, 31, 40, 41
CONNECTION, CHANNEL, EXCHANGE, QUEUE, BASIC, CONFIRM, TX = 10, 20, 40, 50, 60, 85, 90
CLOSE = {(CONNECTION, 50), (CHANNEL, 40)}


class Address(NamedTuple):
    host: str
    port: int
    user: str = "guest"
    password: str = "guest"
    vhost: str = "/"


class BenchError(Exception):
    """The broker answered or delivered something unexpected."""


def handshake(address: Address, channel: int) -> list[tuple[bytes, tuple[int, int]]]:
    """The bytes of each step, and the method that ends the step."""
    credentials = f"\0{address.user}\0{address.password}".encode()
    start_ok = frames.long(b"") + frames.short("PLAIN") + frames.long(credentials)
    tune_ok = struct.pack(">HIH", CHANNEL_MAX, frames.MAX_FRAME_BYTES, 0)
    opening = frames.short(address.vhost) + b"\x00\x00"
    return [
        (b"AMQP\x00\x00\x09\x01", (CONNECTION, START)),
        (
            frames.method(0, CONNECTION, START_OK, start_ok + frames.short("en_US")),
            (CONNECTION, TUNE),
        ),
        (
            frames.method(0, CONNECTION, TUNE_OK, tune_ok)
            + frames.method(0, CONNECTION, OPEN, opening),
            (CONNECTION, OPEN_OK),
        ),
        (frames.method(channel, CHANNEL, 10, b"\x00"), (CHANNEL, 11)),
    ]


class Client:
    """A connection with one open channel; every wait is bounded by `TIMEOUT_S`."""

    def __init__(self, address: Address, channel: int = 1, *, shake: bool = True) -> None:
        self.channel = channel
        self.steps = handshake(address, channel)
        self.socket = socket.create_connection(address[:2], timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffered = bytearray()
        self.start_payload = b""
        for send, expected in self.steps if shake else ():
            self.socket.sendall(send)
            self.take_step(expected)

    def take_step(self, expected: tuple[int, int]) -> None:
        payload = self.expect(*expected)
        if expected == (CONNECTION, START):
            self.start_payload = payload

    def read_frame(self) -> tuple[int, bytes]:
        """Type and payload of the next one."""
        while True:
            if len(self.buffered) >= 7:
                kind, _, size = struct.unpack_from(">BHI", self.buffered)
                if len(self.buffered) >= size + frames.FRAME_OVERHEAD_BYTES:
                    payload = bytes(self.buffered[7 : 7 + size])
                    del self.buffered[: size + frames.FRAME_OVERHEAD_BYTES]
                    return kind, payload
            data = self.socket.recv(READ_BYTES)
            if not data:
                raise BenchError("the broker closed the connection")
            self.buffered += data

    def expect(self, class_id: int, method_id: int) -> bytes:
        """Gives the arguments of the awaited method; any other frame is an error."""
        kind, payload = self.read_frame()
        found = struct.unpack_from(">HH", payload) if kind == frames.METHOD else (kind, -1)
        if found in CLOSE:
            code, length = struct.unpack_from(">HB", payload, 4)
            raise BenchError(f"closed: {code} {payload[7 : 7 + length].decode()}")
        if found != (class_id, method_id):
            raise BenchError(f"expected method {class_id}.{method_id}, got {found}")
        return payload[4:]

    def call(self, class_id: int, method_id: int, arguments: bytes = b"") -> bytes:
        """Sends a synchronous method and gives the arguments of its `-ok` (the next number)."""
        self.socket.sendall(frames.method(self.channel, class_id, method_id, arguments))
        return self.expect(class_id, method_id + 1)

    def declare_exchange(
        self, name: str, kind: str, *, durable: bool = False, arguments: bytes = b""
    ) -> None:
        flags = bytes((2 if durable else 0,))
        head = b"\x00\x00" + frames.short(name) + frames.short(kind)
        self.call(EXCHANGE, 10, head + flags + frames.long(arguments))

    def delete_exchange(self, name: str) -> None:
        self.call(EXCHANGE, 20, b"\x00\x00" + frames.short(name) + b"\x00")

    def declare_queue(
        self, name: str, *, durable: bool = False, passive: bool = False, arguments: bytes = b""
    ) -> int:
        """Gives the number of ready messages."""
        wanted = declare_arguments(name, durable=durable, passive=passive, arguments=arguments)
        answer = self.call(QUEUE, 10, wanted)
        messages: int = struct.unpack_from(">I", answer, 1 + answer[0])[0]
        return messages

    def bind(self, queue: str, exchange: str, key: str) -> None:
        self.call(QUEUE, 20, bind_arguments(queue, exchange, key))

    def delete_queue(self, name: str) -> None:
        self.call(QUEUE, 40, b"\x00\x00" + frames.short(name) + b"\x00")

    def consume(
        self, queue: str, tag: str, *, no_ack: bool, prefetch: int = 0, arguments: bytes = b""
    ) -> None:
        if prefetch:
            self.call(BASIC, 10, struct.pack(">IHB", 0, prefetch, 0))
        flags = bytes((2 if no_ack else 0,))
        names = frames.short(queue) + frames.short(tag)
        self.call(BASIC, 20, b"\x00\x00" + names + flags + frames.long(arguments))

    def get(self, queue: str, content_bytes: int) -> None:
        """Takes one message off a queue, whose content frames have that many bytes in all."""
        self.call(BASIC, 70, b"\x00\x00" + frames.short(queue) + b"\x01")
        while len(self.buffered) < content_bytes:
            if not (data := self.socket.recv(READ_BYTES)):
                raise BenchError("the broker closed the connection")
            self.buffered += data
        del self.buffered[:content_bytes]

    def select_transactions(self) -> None:
        self.call(TX, 10)

    def select_confirms(self) -> None:
        self.call(CONFIRM, 10, b"\x00")

    def close_channel(self) -> None:
        """Returns when the broker has taken in everything that was sent before."""
        self.call(CHANNEL, 40, struct.pack(">HBHH", 200, 0, 0, 0))

    def close(self) -> None:
        """Leaves politely, so that the broker does not log a lost client."""
        self.socket.sendall(frames.method(0, CONNECTION, 50, struct.pack(">HBHH", 200, 0, 0, 0)))
        self.expect(CONNECTION, 51)
        self.socket.close()


def declare_arguments(
    name: str, *, durable: bool = False, passive: bool = False, arguments: bytes = b""
) -> bytes:
    flags = bytes((passive | durable << 1,))
    return b"\x00\x00" + frames.short(name) + flags + frames.long(arguments)


def bind_arguments(queue: str, exchange: str, key: str) -> bytes:
    names = frames.short(queue) + frames.short(exchange) + frames.short(key)
    return b"\x00\x00" + names + b"\x00" + frames.long(b"")


def open_many(address: Address, count: int) -> list[Client]:
    """Opens connections with one channel each, step by step over all of them."""
    clients = [Client(address, shake=False) for _ in range(count)]
    for step in range(len(handshake(address, 1))):
        for client in clients:
            client.socket.sendall(client.steps[step][0])
        for client in clients:
            client.take_step(client.steps[step][1])
    return clients


def names(prefix: str, count: int, first: int = 0) -> Sequence[str]:
    """Names of one width, so that their answers have one size."""
    return [f"{prefix}{number:07}" for number in range(first, first + count)]
