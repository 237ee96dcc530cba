"""What stays on the disk when nothing stays in the broker."""

from __future__ import annotations

import time

from .. import frames
from ..brokers import Broker
from ..client import Client, declare_arguments, names
from ..disk import data_of, directory_bytes
from ..figures import Figures
from ..flow import Running, Standing, figures
from ..pipeline import pipeline
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..worker import Crew
from .durable import kept, one_in_one_out

MINUTE_S = 60.0
SAMPLE_S = 0.25
CYCLES = 100_000


def steady(broker: Broker, settings: Settings) -> Figures:
    """One persistent message in for each one acked: the size at the end, and the largest."""
    seconds = max(settings.seconds, MINUTE_S) if settings.complete else settings.seconds
    data, sizes = data_of(broker), list[int]()
    before = directory_bytes(data)
    flow = one_in_one_out(seconds)
    with Standing(broker, flow):
        with Crew() as crew:
            running = Running(crew, broker, flow)
            spent, end = Spent(broker), time.monotonic() + seconds
            running.go()
            while time.monotonic() < end:
                time.sleep(SAMPLE_S)
                sizes.append(directory_bytes(data))
            outcome = running.finish()
            line = figures(outcome, spent)
        line.disk_mb = directory_bytes(data) / 1e6
    sent_mb = outcome.published * len(kept().published()) / 1e6
    line.note = f"{seconds:.1f} s, {sent_mb:,.0f} MB went through; the disk held "
    line.note += f"{before / 1e6:.0f} MB before and {max(sizes) / 1e6:,.0f} MB at most"
    return line


def _cycle(name: str) -> bytes:
    """A durable queue is declared, and deleted again."""
    declare = frames.method(1, 50, 10, declare_arguments(name, durable=True))
    return declare + frames.method(1, 50, 40, b"\x00\x00" + frames.short(name) + b"\x00")


def churn(broker: Broker, settings: Settings) -> Figures:
    """In: queues declared and deleted per second; then what is left of them, and a restart."""
    assert broker.restart is not None
    before = directory_bytes(data_of(broker))
    wanted = names("bench-short-lived-", CYCLES)
    answer = len(frames.method(1, 50, 11, frames.short(wanted[0]) + bytes(8)))
    answer += len(frames.method(1, 50, 41, bytes(4)))
    client = Client(broker.address)
    spent, start = Spent(broker), time.monotonic()
    done = pipeline(client, [_cycle(name) for name in wanted], answer, settings.bound_s())
    line = Figures(done / (time.monotonic() - start), None, spent.cpu_us(done), spent.peak_mb())
    client.close()
    line.disk_mb = directory_bytes(data_of(broker)) / 1e6
    line.seconds, line.job = broker.restart(False), done
    killed_s = broker.restart(True)
    line.note = f"{done:,} cycles, +{line.disk_mb - before / 1e6:.1f} MB on the disk; "
    line.note += f"after a kill {killed_s:.2f} s to restart"
    return line


SCENARIOS = (
    Scenario("steady-disk", steady, fresh=True),
    Scenario("declare-delete-100k", churn, fresh=True, restarts=True, long=True),
)
