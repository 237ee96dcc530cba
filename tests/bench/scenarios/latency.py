"""Time from publish to delivery: paced, and with one message in flight."""

from __future__ import annotations

import select
import struct
import time

from ..brokers import Broker
from ..client import BenchError, Client
from ..figures import Figures
from ..flow import Flow, Standing
from ..frames import Message
from ..measure import percentile
from ..scenario import Scenario, Settings
from ..spent import Spent
from .throughput import QUEUES

PACED_PER_S = 5_000
DRAIN_S = 5.0
TIMEOUT_S = 10.0
BODY = struct.Struct(">QQ")
READ_BYTES = 1 << 18


class _Loop:
    """Publishes with the time in the body on one connection, reads it back on another."""

    def __init__(self, broker: Broker) -> None:
        message = Message("", QUEUES[0], bytes(BODY.size))
        self._head = message.published()[: -BODY.size - 1]
        self._end = message.published()[-1:]
        self._size = len(message.delivered(1, "c"))
        self._publisher = Client(broker.address)
        self._consumer = Client(broker.address)
        self._consumer.consume(QUEUES[0], "c", no_ack=True)
        self._consumer.socket.settimeout(TIMEOUT_S)
        self._rest = b""
        self.sent = 0
        self.times_s: list[float] = []

    def send(self) -> None:
        body = BODY.pack(time.monotonic_ns(), self.sent)
        self._publisher.socket.sendall(self._head + body + self._end)
        self.sent += 1

    def receive(self) -> None:
        """Takes what has come, in order; raises `BenchError` when a message is not the next."""
        data = self._rest + self._consumer.socket.recv(READ_BYTES)
        now = time.monotonic_ns()
        whole = len(data) - len(data) % self._size
        for end in range(self._size, whole + 1, self._size):
            then, number = BODY.unpack_from(data, end - 1 - BODY.size)
            if number != len(self.times_s):
                raise BenchError(f"message {number} came as {len(self.times_s)}")
            self.times_s.append((now - then) / 1e9)
        self._rest = data[whole:]

    def readable_within(self, seconds: float) -> bool:
        # select() waits in microseconds where epoll rounds up to milliseconds.
        return bool(select.select([self._consumer.socket], [], [], max(0.0, seconds))[0])

    def close(self) -> None:
        self._publisher.close()
        self._consumer.socket.close()


def _paced(loop: _Loop, seconds: float) -> None:
    start = time.monotonic()
    count = int(PACED_PER_S * seconds)
    while loop.sent < count:
        due = start + loop.sent / PACED_PER_S
        if (wait := due - time.monotonic()) <= 0:
            loop.send()
        elif loop.readable_within(wait):
            loop.receive()
    deadline = time.monotonic() + DRAIN_S
    while len(loop.times_s) < loop.sent and time.monotonic() < deadline:
        if loop.readable_within(0.1):
            loop.receive()
    if len(loop.times_s) != loop.sent:
        raise BenchError(f"{len(loop.times_s)} came out, not {loop.sent}")


def _one_in_flight(loop: _Loop, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        loop.send()
        while len(loop.times_s) < loop.sent:
            loop.receive()


def _measure(broker: Broker, seconds: float, *, paced: bool) -> Figures:
    with Standing(broker, Flow(QUEUES[:1])):
        loop = _Loop(broker)
        spent, start = Spent(broker), time.monotonic()
        (_paced if paced else _one_in_flight)(loop, seconds)
        rate = loop.sent / (time.monotonic() - start)
        p50, p99 = (percentile(loop.times_s, percent) * 1e3 for percent in (50, 99))
        loop.close()
        return Figures(rate, rate, spent.cpu_us(loop.sent), spent.peak_mb(), p50, p99)


def paced(broker: Broker, settings: Settings) -> Figures:
    return _measure(broker, settings.seconds, paced=True)


def one_in_flight(broker: Broker, settings: Settings) -> Figures:
    return _measure(broker, settings.seconds, paced=False)


SCENARIOS = (Scenario("latency-5k", paced), Scenario("one-in-flight", one_in_flight))
