"""Queues that fill first and empty afterwards."""

from __future__ import annotations

from functools import partial

from ..brokers import Broker
from ..client import Client
from ..consumer import Subscription
from ..flow import Figures, Flow, Spent, Standing, drain, fill
from ..frames import Stream
from ..producer import Load
from ..scenario import Scenario, Settings
from .throughput import QUEUES, to_queue

FILL_LIMIT_S = 60.0
CONSUME_ONLY_PER_S = 700_000


def _flow(count: int, seconds: float) -> Flow:
    message = to_queue()
    load = Load(seconds, limit=count)
    stream = partial(Stream.repeat, message)
    return Flow(QUEUES[:1], ((stream, load),), (Subscription(QUEUES[0], message),))


def consume_only(broker: Broker, settings: Settings) -> Figures:
    """The queue is filled before, unmeasured; then one consumer with automatic acks."""
    count = int(CONSUME_ONLY_PER_S * settings.seconds)
    flow = _flow(count, settings.seconds)
    with Standing(broker, flow):
        waiting = fill(broker, flow).published
        spent = Spent(broker)
        outcome = drain(broker, flow, waiting)
        cpu_us = spent.cpu_us(waiting)
        return Figures(None, outcome.out_rate, cpu_us, spent.peak_mb(), note=f"{waiting:,} waiting")


def fill_and_drain(broker: Broker, settings: Settings) -> Figures:
    """In: filling; out: draining. The note tells what a waiting message costs in memory."""
    flow = _flow(settings.messages, FILL_LIMIT_S)
    with Standing(broker, flow):
        Client(broker.address).close()
        spent = Spent(broker)
        filled = fill(broker, flow)
        growth = spent.growth_bytes()
        outcome = drain(broker, flow, filled.published)
        note = f"{filled.published:,} waiting: +{growth / 1e6:.0f} MB"
        note += f", {growth / filled.published:.0f} B each"
        cpu_us = spent.cpu_us(filled.published)
        return Figures(filled.in_rate, outcome.out_rate, cpu_us, spent.peak_mb(), note=note)


SCENARIOS = (
    Scenario("consume-only", consume_only, CONSUME_ONLY_PER_S),
    Scenario("fill-drain", fill_and_drain, fresh=True),
)
