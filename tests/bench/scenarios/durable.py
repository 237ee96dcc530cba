"""Persistent messages in durable queues, without confirms."""

from __future__ import annotations

from functools import partial

from ..brokers import Broker
from ..consumer import Subscription
from ..disk import DiskSync
from ..figures import Figures
from ..flow import Flow, Running, Standing, figures
from ..frames import PERSISTENT, Message, Stream
from ..measure import percentile
from ..producer import Load
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..worker import Crew
from .throughput import ACK_EVERY, PREFETCH, QUEUES, SMALL, row

KEPT_BODY = bytes(2_048)
WINDOW = 2_000
AHEAD = 10_000


def kept(body: bytes = SMALL) -> Message:
    """A persistent message for the default exchange and the first queue."""
    return Message("", QUEUES[0], body, PERSISTENT)


def publish_only(settings: Settings) -> Flow:
    producer = (partial(Stream.repeat, kept()), Load(settings.seconds))
    return Flow(QUEUES[:1], (producer,), durable=True)


def one_to_one(settings: Settings, *, prefetch: int = 0, ack_every: int = 0) -> Flow:
    producer = (partial(Stream.repeat, kept()), Load(settings.seconds))
    consumer = Subscription(QUEUES[0], kept(), prefetch, ack_every)
    return Flow(QUEUES[:1], (producer,), (consumer,), durable=True)


def one_in_one_out(seconds: float) -> Flow:
    """At most 10,000 messages wait or are unacked at any time."""
    producer = (partial(Stream.repeat, kept()), Load(seconds, ahead=AHEAD))
    consumer = Subscription(QUEUES[0], kept(), PREFETCH, ACK_EVERY)
    return Flow(QUEUES[:1], (producer,), (consumer,), durable=True)


def all_of_2k(broker: Broker, settings: Settings) -> Figures:
    """Seconds from the first publish to the last delivery, confirmed and acked all the way."""
    message = kept(KEPT_BODY)
    load = Load(settings.bound_s(), limit=settings.messages, window=WINDOW)
    consumer = Subscription(QUEUES[0], message, PREFETCH, ACK_EVERY)
    flow = Flow(QUEUES[:1], ((partial(Stream.repeat, message), load),), (consumer,), durable=True)
    with Standing(broker, flow), Crew() as crew:
        disk = DiskSync(broker, WINDOW // 4 * len(message.published()))
        running = Running(crew, broker, flow)
        spent = Spent(broker)
        running.go()
        outcome = running.finish()
        line = figures(outcome, spent)
    times_s = outcome.sent[0].confirm_times_s
    line.p50_ms, line.p99_ms = (percentile(times_s, one) * 1e3 for one in (50, 99))
    assert outcome.counted is not None
    line.seconds, line.job = (
        max(outcome.sent[0].seconds, outcome.counted.seconds),
        outcome.published,
    )
    line.note = (
        f"{line.job:,} messages of 2 KiB, this disk's own sync {disk.median_s() * 1e3:.2f} ms"
    )
    return line


SCENARIOS = (
    row("publish-only-persistent", publish_only, 300_000),
    row("one-to-one-persistent", one_to_one),
    row("acked-persistent", partial(one_to_one, prefetch=PREFETCH, ack_every=ACK_EVERY)),
    Scenario("publish-consume-2k", all_of_2k, long=True),
)
