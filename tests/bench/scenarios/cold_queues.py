"""A start with very many queues that have a few messages each, and then all of them are drained."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from functools import partial

from .. import frames
from ..brokers import Broker
from ..client import BASIC, QUEUE, READ_BYTES, BenchError, Client, declare_arguments, names
from ..figures import Figures
from ..frames import PERSISTENT, Message
from ..pipeline import pipeline
from ..scenario import Scenario, Settings
from ..spent import Spent
from .throughput import SMALL

QUEUE_COUNT, EACH = 100_000, 3
TTL = b"\x0dx-message-ttll" + struct.pack(">q", 86_400_000)
DECLARE_S = 120.0
PUBLISHED_AT_ONCE, CONSUMED_AT_ONCE = 2_000, 1_000
DELIVER, CONSUME_OK = b"\x00\x3c\x00\x3c", b"\x00\x3c\x00\x15"
KINDS = {"plain": b"", "ttl": TTL}
"""What the queues have for arguments."""


def declare(client: Client, queues: Sequence[str], arguments: bytes) -> int:
    """Gives how many of them there are when the time is up."""
    declared = (declare_arguments(name, durable=True, arguments=arguments) for name in queues)
    requests = [frames.method(1, QUEUE, 10, one) for one in declared]
    answer = len(frames.method(1, QUEUE, 11, frames.short(queues[0]) + bytes(8)))
    return pipeline(client, requests, answer, DECLARE_S)


def fill(client: Client, queues: Sequence[str]) -> None:
    """Publishes to one after the other, again and again."""
    client.select_transactions()
    published = [Message("", name, SMALL, PERSISTENT).published() for name in queues]
    for _ in range(EACH):
        for at in range(0, len(queues), PUBLISHED_AT_ONCE):
            client.socket.sendall(b"".join(published[at : at + PUBLISHED_AT_ONCE]))
            client.call(90, 20)


def _consume(name: str) -> bytes:
    arguments = b"\x00\x00" + frames.short(name) + frames.short(name) + b"\x02" + frames.long(b"")
    return frames.method(1, BASIC, 20, arguments)


def _drain(client: Client, queues: Sequence[str], messages: int) -> None:
    """Consumes from all, without acks; returns when that many messages have come."""
    sent = answered = delivered = 0
    rest = b""
    while answered < len(queues) or delivered < messages:
        if sent < len(queues) and sent - answered <= CONSUMED_AT_ONCE:
            some = queues[sent : sent + CONSUMED_AT_ONCE]
            client.socket.sendall(b"".join(map(_consume, some)))
            sent += len(some)
        data = client.socket.recv(READ_BYTES)
        if not data:
            raise BenchError(f"closed after {delivered:,} of {messages:,} messages")
        data = rest + data
        answered += data.count(CONSUME_OK)
        delivered += data.count(DELIVER)
        rest = data[1 - len(DELIVER) :]


def _drained_cpu_us(broker: Broker, queues: Sequence[str], messages: int) -> float:
    """Drains them over a new connection; gives the server's CPU time per queue."""
    client = Client(broker.address)
    spent = Spent(broker)
    _drain(client, queues, messages)
    cpu_us = spent.cpu_us(len(queues)) or 0.0
    client.close_channel()
    client.close()
    return cpu_us


def cold_queues(broker: Broker, settings: Settings, *, kind: str) -> Figures:
    """Seconds: from the process's start to its word that it serves. Out: messages a second when
    all queues are consumed then, `CPU` per message with its part of the consume. What a queue costs
    so, what it costs if its messages are in memory, and what a consume of an empty queue takes are
    in the note.
    """
    queues = names("bench-cold-", min(QUEUE_COUNT, settings.messages // EACH))
    client = Client(broker.address)
    queues = queues[: declare(client, queues, KINDS[kind])]
    fill(client, queues)
    client.close()
    messages = EACH * len(queues)
    line = Figures(seconds=broker.restart(False), job=messages)
    start_cpu_s = broker.meter.read().cpu_s
    spent, start = Spent(broker), time.monotonic()
    cold_us = _drained_cpu_us(broker, queues, messages)
    line.out_rate = messages / (time.monotonic() - start)
    line.cpu_us, line.rss_mb = cold_us / EACH, spent.peak_mb()
    client = Client(broker.address)
    fill(client, queues)
    client.close()
    hot_us = _drained_cpu_us(broker, queues, messages)
    empty_us = _drained_cpu_us(broker, queues, 0)
    line.note = f"{len(queues):,} queues: {start_cpu_s:.1f} s of CPU until it serves; a queue "
    line.note += f"{cold_us:.0f} us, in memory {hot_us:.0f}, empty {empty_us:.0f}"
    return line


SCENARIOS = tuple(
    Scenario(f"cold-queues-{kind}", partial(cold_queues, kind=kind), fresh=True, long=True)
    for kind in KINDS
)
