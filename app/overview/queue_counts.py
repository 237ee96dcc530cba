"""Counts over the queues of a virtual host, and its queues that need attention."""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import Final, NamedTuple

from ...core.auth.reserved import is_reserved
from ...core.broker import Broker
from ...core.queue.queue import Queue
from ...hub.delivery.envelope import DELAY_PREFIX
from ...hub.engine.own import DEAD_QUEUE
from ...hub.subscriptions.subscription import OWN_QUEUE_PREFIX
from .trouble import TROUBLES, Trouble, growth_per_s, trouble_of, troubles_of

SHOWN: Final = 5
"""Queues and callbacks that are listed."""
NO_CONSUMER: Final = "no consumer"
GROWING: Final = "growing"
SUBSCRIPTION_WAITS: Final = "subscription is paused or waits"


class TroubledQueue(NamedTuple):
    """A queue that needs attention; the greater the worse."""

    has_no_consumer: bool
    messages: int
    vhost: str
    name: str
    unacknowledged: int
    consumers: int
    growth_per_s: float

    @property
    def reason(self) -> str:
        if not self.has_no_consumer:
            return GROWING
        return SUBSCRIPTION_WAITS if self.name.startswith(OWN_QUEUE_PREFIX) else NO_CONSUMER


class VhostCounts:
    """Figures of one virtual host; `add` is called for each of its queues."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.connections = 0
        self.channels = 0
        self.exchanges = 1
        """The default exchange is one too."""
        self.queues = 0
        self.consumers = 0
        self.ready = 0
        self.unacknowledged = 0
        self.retries = 0
        """Messages that wait for another attempt."""
        self.dead_letters = 0
        self.troubles = dict.fromkeys(TROUBLES, 0)
        """How many queues have each trouble, without the hub's own."""
        self.troubled: list[TroubledQueue] = []
        """The worst, as a heap with the least of them first."""

    def add(self, queue: Queue) -> None:
        self.queues += 1
        ready, unacknowledged = queue.ready_count, queue.unacked_count
        if queue.ring is not None:
            self.consumers += queue.consumer_count
        trouble = trouble_of(self._broker, queue) if ready else Trouble.NONE
        if (trouble or queue.is_paused) and not is_reserved(queue.name):
            for kind in troubles_of(queue, trouble):
                self.troubles[kind] += 1
        if not (ready or unacknowledged):
            return
        self.ready += ready
        self.unacknowledged += unacknowledged
        if queue.name.startswith(DELAY_PREFIX):
            self.retries += ready
        elif queue.name == DEAD_QUEUE.name:
            self.dead_letters += ready + unacknowledged
        else:
            self._look(queue, trouble, ready, unacknowledged)

    def _look(self, queue: Queue, trouble: Trouble, ready: int, unacknowledged: int) -> None:
        """Lists the queue if it is worse than one that is listed."""
        rank = trouble is Trouble.NO_CONSUMER, ready + unacknowledged
        is_full = len(self.troubled) == SHOWN
        if trouble is Trouble.NONE or (is_full and rank <= self.troubled[0][:2]):
            return
        found = TroubledQueue(
            *rank, queue.vhost, queue.name, unacknowledged, queue.consumer_count,
            growth_per_s(self._broker, queue),
        )  # fmt: skip
        if is_full:
            heappushpop(self.troubled, found)
        else:
            heappush(self.troubled, found)
