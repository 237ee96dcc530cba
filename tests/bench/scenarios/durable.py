"""Persistent messages in durable queues, without confirms."""

from __future__ import annotations

from functools import partial

from ..consumer import Subscription
from ..flow import Flow
from ..frames import PERSISTENT, Message, Stream
from ..producer import Load
from ..scenario import Settings
from .throughput import ACK_EVERY, PREFETCH, QUEUES, SMALL, row


def kept() -> Message:
    """A persistent message for the default exchange and the first queue."""
    return Message("", QUEUES[0], SMALL, PERSISTENT)


def publish_only(settings: Settings) -> Flow:
    producer = (partial(Stream.repeat, kept()), Load(settings.seconds))
    return Flow(QUEUES[:1], (producer,), durable=True)


def one_to_one(settings: Settings, *, prefetch: int = 0, ack_every: int = 0) -> Flow:
    producer = (partial(Stream.repeat, kept()), Load(settings.seconds))
    consumer = Subscription(QUEUES[0], kept(), prefetch, ack_every)
    return Flow(QUEUES[:1], (producer,), (consumer,), durable=True)


SCENARIOS = (
    row("publish-only-persistent", publish_only, 300_000),
    row("one-to-one-persistent", one_to_one),
    row("acked-persistent", partial(one_to_one, prefetch=PREFETCH, ack_every=ACK_EVERY)),
)
