"""A start with 100,000 durable queues of one kind, three messages in each."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial

from .. import frames
from ..brokers import Broker
from ..client import QUEUE, BenchError, Client, declare_arguments, names
from ..figures import Figures, Goal
from ..scenario import Scenario, Settings
from .cold_queues import EACH, KINDS, QUEUE_COUNT, declare, fill

START_S = 5.0
ASKED_AT_ONCE = 1_000


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
    seconds = broker.restart(crash)
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
    queues = names("bench-start-", min(QUEUE_COUNT, settings.messages // EACH))
    client = Client(broker.address)
    queues = queues[: declare(client, queues, KINDS[kind])]
    fill(client, queues)
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
    Scenario(f"start-queues-{kind}", partial(start_queues, kind=kind), fresh=True, long=True)
    for kind in KINDS
)
