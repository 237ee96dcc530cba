"""A window of unconfirmed publishes, and the counting of what confirms it."""

from __future__ import annotations

import select
import struct
import time

from . import frames
from .client import BenchError, Client
from .frames import Stream
from .writer import CHUNK_BYTES, Writer

LARGEST_STEP = 10_000
ACK_SIZE = len(frames.ack(1, 1, multiple=False))
_ACK_TAIL = struct.Struct(">QB")


class Confirms:
    """Counts confirmed publishes out of raw ack frames, single or multiple, in any order."""

    def __init__(self) -> None:
        self.bytes = 0
        self._floor = 0
        self._above: set[int] = set()
        self._rest = b""

    @property
    def count(self) -> int:
        return self._floor + len(self._above)

    def feed(self, data: bytes) -> None:
        self.bytes += len(data)
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


class Window:
    """Keeps a window of unconfirmed publishes full, and times each refill to its last confirm."""

    def __init__(
        self, client: Client, stream: Stream, window: int, limit: int, seconds: float
    ) -> None:
        self._deadline = time.monotonic() + seconds
        self._socket = client.socket
        self._writer, self.confirms = Writer(client, stream), Confirms()
        self._step = max(1, min(window // 4, LARGEST_STEP))
        self._chunk = max(1, CHUNK_BYTES // stream.size)
        self._window, self._limit = window, limit
        self._pending: list[tuple[int, float]] = []
        self.count = 0
        self.times_s: list[float] = []

    def refill(self) -> None:
        """Publishes a quarter of the window, or 10,000 messages, as often as it fits."""
        while self.count < self._limit and time.monotonic() < self._deadline:
            step = min(self._step, self._limit - self.count)
            if self.count + step - self.confirms.count > self._window:
                return
            self._pending.append((self.count + step, time.monotonic()))
            self._write(step)

    def _write(self, step: int) -> None:
        """Takes confirms between the pieces: a broker may stop reading who does not read it."""
        end = self.count + step
        while self.count < end:
            self.count += self._writer.write(min(self._chunk, end - self.count))
            if end - self.count and select.select([self._socket], [], [], 0)[0]:
                self.receive()

    @property
    def is_open(self) -> bool:
        return bool(self._pending)

    def receive(self) -> None:
        if not (data := self._socket.recv(CHUNK_BYTES)):
            raise BenchError(f"the broker closed the connection after {self.confirms.count}")
        self.confirms.feed(data)
        now = time.monotonic()
        while self._pending and self._pending[0][0] <= self.confirms.count:
            self.times_s.append(now - self._pending.pop(0)[1])
