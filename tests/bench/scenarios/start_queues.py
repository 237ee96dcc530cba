"""A start with 100,000 durable queues of one kind, three messages in each."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial

from .. import frames
from ..brokers import Broker
from ..client import QUEUE, BenchError, Client, declare_arguments, names
from ..figures import Figures, Goal
from ..frames import PERSISTENT, PRIORITIES, QUORUM, STREAM
from ..scenario import Scenario, Settings
from .cold_queues import EACH, EXPIRING, QUEUE_COUNT, TTL, declare, fill

START_S = 5.0
ASKED_AT_ONCE = 1_000
RANKED = b"\x18\x00\x02\x05"
DAY_MS = 86_400_000


def _number(name: bytes, value: int) -> bytes:
    return bytes((len(name),)) + name + b"l" + struct.pack(">q", value)


def _text(name: bytes, value: bytes) -> bytes:
    return bytes((len(name),)) + name + b"S" + frames.long(value)


_BYTES = _number(b"x-max-length-bytes", 1_000_000)
_REJECTS = _text(b"x-overflow", b"reject-publish")
KINDS = {
    "plain": (b"", PERSISTENT),
    "ttl": (TTL, PERSISTENT),
    "expiration": (b"", EXPIRING),
    "expires": (_number(b"x-expires", DAY_MS), PERSISTENT),
    "max-length": (_number(b"x-max-length", 1_000), PERSISTENT),
    "max-length-reject": (_number(b"x-max-length", 1_000) + _REJECTS, PERSISTENT),
    "max-bytes": (_BYTES, PERSISTENT),
    "max-bytes-reject": (_BYTES + _REJECTS, PERSISTENT),
    "priority": (PRIORITIES, RANKED),
    "single-active": (b"\x18x-single-active-consumert\x01", PERSISTENT),
    "dead-letter": (_text(b"x-dead-letter-exchange", b"amq.fanout"), PERSISTENT),
    "lazy": (_text(b"x-queue-mode", b"lazy"), PERSISTENT),
    "quorum": (QUORUM, PERSISTENT),
    "stream": (STREAM, PERSISTENT),
}
"""What the queues have for arguments, and their messages for properties."""


def _waiting(client: Client, queues: Sequence[str]) -> int:
    """How many messages they have, as passive declarations tell."""
    total = 0
    for first in range(0, len(queues), ASKED_AT_ONCE):
        some = queues[first : first + ASKED_AT_ONCE]
        asked = (declare_arguments(name, durable=True, passive=True) for name in some)
        client.socket.sendall(b"".join(frames.method(1, QUEUE, 10, one) for one in asked))
        for _ in some:
            answer = client.expect(QUEUE, 11)
            total += struct.unpack_from(">I", answer, 1 + answer[0])[0]
    return total


def _start(broker: Broker, queues: Sequence[str], *, crash: bool) -> tuple[float, float]:
    """Seconds, and seconds of CPU, from the process's start to its word that it serves."""
    assert broker.restart is not None
    seconds = broker.restart(crash)
    assert broker.meter is not None
    cpu_s = broker.meter.read().cpu_s
    client = Client(broker.address)
    found, wanted = _waiting(client, queues), EACH * len(queues)
    client.close()
    if found != wanted:
        how = "a kill" if crash else "a stop"
        raise BenchError(f"{found:,} of {wanted:,} messages came back after {how}")
    return seconds, cpu_s


def start_queues(broker: Broker, settings: Settings, *, kind: str) -> Figures:
    """Seconds: the start after a kill. That after a stop, and what both take of the processor until
    the broker says that it serves, are in the note."""
    kinds = (KINDS[kind],)
    queues = names("bench-start-", min(QUEUE_COUNT, settings.messages // EACH))
    client = Client(broker.address)
    queues = queues[: declare(client, queues, kinds)]
    fill(client, queues, kinds)
    client.close()
    killed_s, killed_cpu_s = _start(broker, queues, crash=True)
    stopped_s, stopped_cpu_s = _start(broker, queues, crash=False)
    line = Figures(seconds=killed_s, job=EACH * len(queues))
    line.note = f"{len(queues):,} queues: {killed_cpu_s:.1f} s of CPU until it serves; "
    line.note += f"after a stop {stopped_s:.1f} s, {stopped_cpu_s:.1f} s of CPU"
    met = max(killed_cpu_s, stopped_cpu_s) <= START_S
    line.goals.append(Goal(f"start <= {START_S:.0f} s of CPU", met))
    return line


SCENARIOS = tuple(
    Scenario(
        f"start-queues-{kind}", partial(start_queues, kind=kind), fresh=True, restarts=True,
        long=True,
    )
    for kind in KINDS
)  # fmt: skip
