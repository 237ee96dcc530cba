"""Finds queues that need attention: those with messages that nobody takes, and those that grow."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from ...core.broker import Broker
from ...core.queue.queue import Queue

GROWING_MESSAGES: Final = 100
"""Ready messages from which a queue may count as growing: shorter ones go up and down."""
GROWING_RATE: Final = 1.0
TROUBLES: Final = ("no_consumer", "growing", "paused")
"""What queues are counted by, and lists of them filtered by."""


class Trouble(IntEnum):
    """The kinds of trouble; the greater the worse."""

    NONE = 0
    GROWING = 1
    NO_CONSUMER = 2


def trouble_of(broker: Broker, queue: Queue) -> Trouble:
    """Returns the trouble of a queue. A stream keeps its messages, so none of them waits."""
    if not queue.ready_count or queue.persists_all:
        return Trouble.NONE
    if not queue.has_consumers:
        return Trouble.NO_CONSUMER
    is_growing = (
        queue.ready_count >= GROWING_MESSAGES and growth_per_s(broker, queue) >= GROWING_RATE
    )
    return Trouble.GROWING if is_growing else Trouble.NONE


def troubles_of(queue: Queue, trouble: Trouble) -> Iterator[str]:
    """Yields which of `TROUBLES` a queue with this trouble has."""
    if trouble is Trouble.NO_CONSUMER:
        yield "no_consumer"
    elif trouble is Trouble.GROWING:
        yield "growing"
    if queue.is_paused:
        yield "paused"


def growth_per_s(broker: Broker, queue: Queue) -> float:
    """Returns how fast the number of ready messages grows."""
    counters = queue.counters
    if counters is None or counters.samples is None:
        return 0.0
    return broker.statistics.sampler.rate(counters, "messages_ready")
