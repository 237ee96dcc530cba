"""Queues that fill first and empty afterwards."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..brokers import Broker
from ..client import Client
from ..consumer import Subscription
from ..disk import directory_bytes
from ..figures import Figures, Goal
from ..flow import Flow, Standing, drain, fill
from ..frames import PERSISTENT, Stream
from ..producer import Load
from ..scenario import Scenario, Settings
from ..spent import Spent
from .throughput import QUEUES, to_queue

CONSUME_ONLY_PER_S = 700_000
DRAIN_AT_LEAST = 400_000
GROWTH_MB_AT_MOST = 80


def filling(count: int, seconds: float, *, durable: bool = False) -> Flow:
    """One producer of so many messages into one queue, and one consumer with automatic acks."""
    message = to_queue()
    if durable:
        message = replace(message, properties=PERSISTENT)
    producer = (partial(Stream.repeat, message), Load(seconds, limit=count))
    return Flow(QUEUES[:1], (producer,), (Subscription(QUEUES[0], message),), durable=durable)


def consume_only(broker: Broker, settings: Settings) -> Figures:
    """The queue is filled before, unmeasured; then one consumer with automatic acks."""
    count = int(CONSUME_ONLY_PER_S * settings.seconds)
    flow = filling(count, settings.seconds)
    with Standing(broker, flow):
        waiting = fill(broker, flow).published
        spent = Spent(broker)
        outcome = drain(broker, flow, waiting)
        cpu_us = spent.cpu_us(waiting)
        return Figures(None, outcome.out_rate, cpu_us, spent.peak_mb(), note=f"{waiting:,} waiting")


def fill_and_drain(broker: Broker, settings: Settings, *, durable: bool) -> Figures:
    """In: filling; out: draining. The note tells what a waiting message costs in memory."""
    flow = filling(settings.messages, settings.bound_s(), durable=durable)
    with Standing(broker, flow):
        Client(broker.address).close()
        spent = Spent(broker)
        filled = fill(broker, flow)
        growth = spent.growth_bytes()
        disk = directory_bytes(broker.data) if durable else None
        outcome = drain(broker, flow, filled.published)
        cpu_us = spent.cpu_us(filled.published)
        line = Figures(filled.in_rate, outcome.out_rate, cpu_us, spent.peak_mb())
    line.disk_mb = None if disk is None else disk / 1e6
    line.note = f"{filled.published:,} waiting: +{growth / 1e6:.0f} MB"
    line.remark(f"{growth / filled.published:.0f} B each")
    if durable:
        goal = Goal(f"+{GROWTH_MB_AT_MOST} MB at most", growth <= GROWTH_MB_AT_MOST * 1e6)
        line.goals.append(goal)
    return line


SCENARIOS = (
    Scenario("consume-only", consume_only, CONSUME_ONLY_PER_S),
    Scenario("fill-drain", partial(fill_and_drain, durable=False), fresh=True),
    Scenario(
        "fill-drain-persistent", partial(fill_and_drain, durable=True), DRAIN_AT_LEAST, fresh=True
    ),
)
