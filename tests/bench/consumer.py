"""Consumers: deliveries have a known size, so counting them is counting bytes."""

from __future__ import annotations

import selectors
import time
from dataclasses import dataclass

from . import frames
from .client import Address, BenchError, Client
from .frames import Message, SingleAcks
from .worker import Control

BUFFER_BYTES = 1 << 20
SAMPLE = 10
POLL_S = 0.1
SETTLE_S = 0.05
LOW_TAGS = bytes(range(256)) * (BUFFER_BYTES // 256 // 32)


@dataclass(frozen=True)
class Subscription:
    """One consumer on a connection of its own.

    `ack_every` 0 means automatic acks, 1 acks every message by itself, more acks that many
    at once. With an `ack_step`, a power of two, only tags that it divides are acked, each by
    itself, and the others never. `same_body` is off where bodies or properties differ; sizes
    never do. `arguments` are the entries of a table.
    """

    queue: str
    message: Message
    prefetch: int = 0
    ack_every: int = 0
    channel: int = 1
    tag: str = "c"
    same_body: bool = True
    ack_step: int = 1
    arguments: bytes = b""


@dataclass(frozen=True)
class Counted:
    """Deliveries of all subscriptions of a worker, and the time from first to last."""

    count: int
    seconds: float


class _Tally:
    """One subscription's socket: counts, acks, and keeps the first and last frames."""

    def __init__(self, address: Address, plan: Subscription) -> None:
        self._plan = plan
        self.client = Client(address, plan.channel)
        self.size = len(plan.message.delivered(1, plan.tag, plan.channel))
        self._tag_octet = frames.FRAME_OVERHEAD_BYTES + 4 + len(plan.tag) + 7
        self.bytes = self._acked = 0
        self._head, self._tail = b"", b""
        is_single = plan.ack_every == 1 or plan.ack_step > 1
        self._singles = SingleAcks(plan.channel, plan.ack_step) if is_single else None

    @property
    def count(self) -> int:
        return self.bytes // self.size

    def start(self, buffer: bytearray) -> None:
        plan = self._plan
        no_ack = plan.ack_every == 0
        self.client.consume(
            plan.queue,
            plan.tag,
            no_ack=no_ack,
            prefetch=plan.prefetch,
            arguments=plan.arguments,
        )
        # Without a timeout a read is one system call; the parent bounds the whole run.
        self.client.socket.settimeout(None)
        if early := len(self.client.buffered):
            buffer[:early] = self.client.buffered
            self.take(buffer, early)

    def read(self, buffer: bytearray) -> None:
        got = self.client.socket.recv_into(buffer)
        if not got:
            raise BenchError(f"the broker closed the connection after {self.count} deliveries")
        self.take(buffer, got)

    def take(self, buffer: bytearray, got: int) -> None:
        self._check_all(buffer, got)
        self.bytes += got
        if len(self._head) < SAMPLE * self.size:
            self._head += buffer[: min(got, SAMPLE * self.size)]
        kept = 2 * self.size
        if got >= kept:
            self._tail = bytes(buffer[got - kept : got])
        else:
            self._tail = (self._tail + buffer[:got])[-kept:]
        if self._plan.ack_every:
            self._ack()

    def _check_all(self, buffer: bytearray, got: int) -> None:
        """Every delivery's end octet, and the low octet of its tag: order, and none twice."""
        ends = buffer[(-1 - self.bytes) % self.size : got : self.size]
        if ends.count(frames.END) != len(ends):
            raise BenchError(f"no frame end after {self.count} deliveries of {self.size} bytes")
        first = (self._tag_octet - self.bytes) % self.size
        tags = buffer[first : got : self.size]
        start = ((self.bytes + first) // self.size + 1) % 256
        if tags != LOW_TAGS[start : start + len(tags)]:
            raise BenchError(f"wrong delivery tags after {self.count} deliveries")

    def _ack(self) -> None:
        count = self.count
        if count - self._acked < self._plan.ack_every:
            return
        if self._singles:
            self.client.socket.sendall(self._singles.frames(self._acked + 1, count))
        else:
            self.client.socket.sendall(frames.ack(self._plan.channel, count, multiple=True))
        self._acked = count

    def finish(self) -> None:
        """Acks what is left, checks the sampled frames, and closes."""
        if self._plan.ack_every and self._plan.ack_step == 1 and self._acked < self.count:
            self.client.socket.sendall(frames.ack(self._plan.channel, self.count, multiple=True))
        for index in range(min(SAMPLE, self.count)):
            self._check(index + 1, self._head[index * self.size : (index + 1) * self.size])
        if self.count:
            end = len(self._tail) - self.bytes % self.size
            self._check(self.count, self._tail[end - self.size : end])
        if self.bytes % self.size:
            raise BenchError(f"{self.bytes} bytes are not whole deliveries of {self.size}")
        self.client.socket.close()

    def _check(self, tag: int, found: bytes) -> None:
        plan = self._plan
        wanted = plan.message.delivered(tag, plan.tag, plan.channel)
        if not plan.same_body:
            head = frames.FRAME_OVERHEAD_BYTES + 4 + 1 + len(plan.tag) + 8
            wanted, found = wanted[:head], found[:head]
        if found != wanted:
            raise BenchError(f"delivery {tag}: got {found[:200].hex()}, not {wanted[:200].hex()}")


def consume(
    control: Control,
    address: Address,
    plans: tuple[Subscription, ...],
    limit_s: float,
    progress: memoryview,
    *,
    start_before: bool = True,
) -> Counted:
    """Counts until the number that comes over the control pipe is reached, or `limit_s` ends.

    With `start_before` off the consumers start after the word to go, for filled queues.
    """
    tallies = [_Tally(address, plan) for plan in plans]
    buffer = bytearray(BUFFER_BYTES)
    selector = selectors.DefaultSelector()
    selector.register(control.pipe, selectors.EVENT_READ)
    for tally in tallies:
        if start_before:
            tally.start(buffer)
        selector.register(tally.client.socket, selectors.EVENT_READ, tally)
    control.ready()
    begun = time.monotonic()
    if not start_before:
        for tally in tallies:
            tally.start(buffer)
    first, last = _count(control, selector, tallies, buffer, begun + limit_s, progress)
    for tally in tallies:
        tally.finish()
    seconds = last - (first if start_before else begun)
    return Counted(sum(tally.count for tally in tallies), seconds)


def _count(
    control: Control,
    selector: selectors.BaseSelector,
    tallies: list[_Tally],
    buffer: bytearray,
    deadline: float,
    progress: memoryview,
) -> tuple[float, float]:
    """Gives the times of the first and the last delivery."""
    expected: int | None = None
    first = last = 0.0
    total = 0
    settled = 0.0
    while (now := time.monotonic()) < deadline and not (settled and now > settled):
        for key, _ in selector.select(SETTLE_S if settled else POLL_S):
            if key.data is None:
                expected = control.pipe.recv()
                selector.unregister(control.pipe)
            else:
                key.data.read(buffer)
                last = time.monotonic()
                first = first or last
        total = sum(tally.count for tally in tallies)
        progress[0] = total
        if expected is not None and total >= expected and not settled:
            # A little longer: one delivery too many is an error too.
            settled = now + SETTLE_S
    return first, last or time.monotonic()
