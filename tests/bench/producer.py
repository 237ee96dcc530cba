"""Publishers: ready-made frames, written in large chunks until the time or the count is up."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from . import frames
from .client import Address, BenchError, Client
from .frames import Stream
from .worker import Control

CHUNK_BYTES = 1 << 18
WAIT_S = 0.000_2
ACK_SIZE = len(frames.ack(1, 1, multiple=False))
_ACK_TAIL = struct.Struct(">QB")


@dataclass(frozen=True)
class Load:
    """How much is published: at most `limit` messages, for at most `seconds`.

    With `window` the channel is in confirm mode and at most that many are unconfirmed. With
    `ahead` the producer stays at most that many messages ahead of the consumers.
    """

    seconds: float
    limit: int = 1 << 62
    window: int = 0
    ahead: int = 0
    channel: int = 1


@dataclass
class Sent:
    """What went out, and how long the broker needed to take it all in."""

    count: int
    seconds: float
    confirm_times_s: list[float] = field(default_factory=list)


Progress = Callable[[], int]


class _Writer:
    """Walks around a stream of frames and writes the next `count` messages of it."""

    def __init__(self, client: Client, stream: Stream) -> None:
        self._socket = client.socket
        self._view = memoryview(stream.data)
        self._stream = stream
        self._position = 0

    def write(self, count: int) -> int:
        """Gives how many were written: fewer than `count` at the end of the stream."""
        written = min(count, self._stream.count - self._position)
        start = self._position * self._stream.size
        self._socket.sendall(self._view[start : start + written * self._stream.size])
        self._position = (self._position + written) % self._stream.count
        return written


def publish(
    control: Control, address: Address, stream: Stream, load: Load, consumed: Progress
) -> Sent:
    """Publishes as told; counts end with a round trip, so that the broker has them all."""
    client = Client(address, load.channel)
    if load.window:
        client.select_confirms()
    control.ready()
    start = time.monotonic()
    if load.window:
        sent = _publish_confirmed(client, stream, load)
    else:
        sent = Sent(_publish_freely(client, stream, load, consumed), 0.0)
    client.close_channel()
    sent.seconds = time.monotonic() - start
    client.close()
    return sent


def _publish_freely(client: Client, stream: Stream, load: Load, consumed: Progress) -> int:
    writer = _Writer(client, stream)
    chunk = max(1, CHUNK_BYTES // stream.size)
    if load.ahead:
        chunk = min(chunk, max(1, load.ahead // 4))
    deadline, count = time.monotonic() + load.seconds, 0
    while count < load.limit and time.monotonic() < deadline:
        if load.ahead and count - consumed() > load.ahead - chunk:
            time.sleep(WAIT_S)
            continue
        count += writer.write(min(chunk, load.limit - count))
    return count


class Confirms:
    """Counts confirmed publishes out of raw ack frames, single or multiple, in any order."""

    def __init__(self) -> None:
        self._floor = 0
        self._above: set[int] = set()
        self._rest = b""

    @property
    def count(self) -> int:
        return self._floor + len(self._above)

    def feed(self, data: bytes) -> None:
        data = self._rest + data
        whole = len(data) - len(data) % ACK_SIZE
        for offset in range(0, whole, ACK_SIZE):
            if data[offset + 7 : offset + 11] != b"\x00\x3c\x00\x50":
                raise BenchError(f"not an ack: {data[offset : offset + ACK_SIZE].hex()}")
            self._confirm(*_ACK_TAIL.unpack_from(data, offset + 11))
        self._rest = data[whole:]

    def _confirm(self, tag: int, multiple: int) -> None:
        if multiple:
            self._floor = max(self._floor, tag)
            self._above = {one for one in self._above if one > self._floor}
        else:
            self._above.add(tag)
        while self._floor + 1 in self._above:
            self._floor += 1
            self._above.discard(self._floor)


def _publish_confirmed(client: Client, stream: Stream, load: Load) -> Sent:
    """Refills a quarter of the window at a time, and times each refill to its last confirm."""
    writer, confirms = _Writer(client, stream), Confirms()
    step = max(1, load.window // 4)
    deadline = time.monotonic() + load.seconds
    count, pending, times_s = 0, list[tuple[int, float]](), list[float]()
    while (more := count < load.limit and time.monotonic() < deadline) or pending:
        while more and count - confirms.count <= load.window - step:
            pending.append((count + step, time.monotonic()))
            for_this = count + step
            while count < for_this:
                count += writer.write(for_this - count)
        confirms.feed(client.socket.recv(CHUNK_BYTES))
        now = time.monotonic()
        while pending and pending[0][0] <= confirms.count:
            times_s.append(now - pending.pop(0)[1])
    return Sent(count, 0.0, times_s)
