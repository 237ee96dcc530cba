"""Durable queues in which much waits, or much is unacked."""

from __future__ import annotations

import time
from dataclasses import replace

from ..brokers import Broker
from ..client import BenchError, Client
from ..figures import Figures, Goal
from ..flow import DRAIN_LIMIT_S, SLOWEST_DRAIN_PER_S, Running, Standing, figures, fill
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..worker import Crew
from .backlog import GROWTH_MB_AT_MOST, filling
from .throughput import ACK_EVERY, PREFETCH, QUEUES

PARTS = (0, 10, 1)
AHEAD = 100_000
WARM_UP_S = 0.5
SAME_SPEED = 0.9
NEARLY = 0.9
SAMPLE_S = 0.05


def _beside_backlog(broker: Broker, settings: Settings) -> float:
    """Deliveries a second while as much comes in as goes out; what waits stays in the queue."""
    flow = filling(1 << 62, settings.seconds + WARM_UP_S, durable=True)
    (stream, load), (consumer,) = flow.producers[0], flow.consumers
    flow = replace(
        flow,
        producers=((stream, replace(load, ahead=AHEAD)),),
        consumers=(replace(consumer, prefetch=PREFETCH, ack_every=ACK_EVERY),),
    )
    with Crew() as crew:
        running = Running(crew, broker, flow, filled=1)
        running.go()
        time.sleep(WARM_UP_S)
        start, before = time.monotonic(), running.consumed()
        time.sleep(settings.seconds - WARM_UP_S)
        rate = (running.consumed() - before) / (time.monotonic() - start)
        running.finish_producers()
        return rate


def _fill_up(broker: Broker, settings: Settings, backlog: int) -> int:
    """Publishes until that many wait, or the time is up; gives how many do."""
    client = Client(broker.address)
    waiting = client.declare_queue(QUEUES[0], passive=True)
    if waiting < backlog:
        fill(broker, filling(backlog - waiting, settings.bound_s(), durable=True))
        waiting = client.declare_queue(QUEUES[0], passive=True)
    client.close()
    return waiting


def behind_backlog(broker: Broker, settings: Settings) -> Figures:
    """Persistent one-to-one, acked, through one queue: behind nothing, behind a tenth of
    `messages`, and behind all of them. Out: the last of these rates.
    """
    rates: list[float] = []
    line = Figures()
    spent = Spent(broker)
    with Standing(broker, filling(0, 0, durable=True)):
        for part in PARTS:
            backlog = settings.messages // part if part else 0
            waiting = _fill_up(broker, settings, backlog)
            rates.append(_beside_backlog(broker, settings))
            line.remark(f"behind {waiting if backlog else 0:,}: {rates[-1]:,.0f}/s")
            if waiting < NEARLY * backlog:
                break  # There was no time for more.
    line.out_rate, line.rss_mb = rates[-1], spent.peak_mb()
    slowest = min(rates) / rates[0]
    line.remark(f"ratio {slowest:.2f}")
    line.goals.append(Goal(f"ratio >= {SAME_SPEED}", slowest >= SAME_SPEED))
    return line


def _growth_until(running: Running, count: int, spent: Spent) -> int:
    """The most that the broker grew by until that many messages were out, in bytes."""
    deadline, most = time.monotonic() + DRAIN_LIMIT_S + count / SLOWEST_DRAIN_PER_S, 0
    while running.consumed() < count:
        if time.monotonic() > deadline:
            raise BenchError(f"{running.consumed():,} of {count:,} messages came out in time")
        time.sleep(SAMPLE_S)
        most = max(most, spent.growth_bytes())
    return max(most, spent.growth_bytes())


def every_second_acked(broker: Broker, settings: Settings) -> Figures:
    """Out: deliveries of a queue filled before, of which only every second is acked.

    The note tells what the broker grew by at most, the filling included.
    """
    flow = filling(settings.messages, settings.bound_s(), durable=True)
    consumer = replace(flow.consumers[0], ack_every=ACK_EVERY, ack_step=2)
    flow = replace(flow, consumers=(consumer,))
    with Standing(broker, flow):
        spent = Spent(broker)
        count = fill(broker, flow).published
        with Crew() as crew:
            running = Running(crew, broker, replace(flow, producers=()), filled=count)
            running.go()
            growth = _growth_until(running, count, spent)
            line = figures(running.finish(), spent)
    line.note = f"{count:,} out, every second acked: +{growth / 1e6:.0f} MB"
    line.goals.append(Goal(f"+{GROWTH_MB_AT_MOST} MB at most", growth <= GROWTH_MB_AT_MOST * 1e6))
    return line


SCENARIOS = (
    Scenario("every-second-acked", every_second_acked, fresh=True, long=True),
    Scenario("behind-backlog", behind_backlog, fresh=True),
)
