"""The load of a run: a crew that is started, stopped and drained, on any broker.

site = Site(Address("127.0.0.1", 5672))
site.begin_life()
load = Load(site)
load.start()
site.pace.allowed = lambda: 1_000_000
...
load.finish()
print(site.checker.verdict())
"""

from __future__ import annotations

import time

from .clients import connected
from .journal import CONFIRMED
from .plan import DEAD, LATE, make_crew
from .site import Site

POLL_S = 0.05
STUCK_S = 30.0
"""A queue that owes messages and delivers nothing for so long has lost them."""


class Load:
    """Publishers and consumers on a site whose server runs."""

    def __init__(self, site: Site, *, transactions: bool = True) -> None:
        self.site = site
        crew = make_crew(site, transactions=transactions)
        self.publishers, self.consumers = crew.publishers, crew.consumers

    def start(self) -> None:
        for worker in [*self.consumers, *self.publishers]:
            worker.start()

    @property
    def confirmed(self) -> int:
        return sum(journal.count(CONFIRMED) for journal in self.site.checker.journals)

    def finish(self) -> None:
        """Ends the publishers, waits until the queues are empty, and ends the consumers."""
        self.site.calm.set()
        for publisher in self.publishers:
            publisher.stop()
        self.drain()
        # Dead letters come from the consumers of other queues, so theirs are the last.
        for consumer in sorted(self.consumers, key=lambda one: one.queue in (DEAD, LATE)):
            consumer.stop()

    def count_rest(self) -> None:
        """Tells the checker how many messages each queue has left."""
        for queue in self.site.checker.inboxes:
            self.site.checker.drained(queue, self._depth(queue))

    def drain(self) -> bool:
        """Lets nothing new in until the queues are empty; False when something is missing."""
        self.site.calm.set()
        checker = self.site.checker
        arrivals, since = -1, time.monotonic()
        while self._owing() and time.monotonic() - since < STUCK_S:
            if checker.arrivals != arrivals:
                arrivals, since = checker.arrivals, time.monotonic()
            time.sleep(POLL_S)
        return not self._owing()

    def _owing(self) -> bool:
        queues = self.site.checker.inboxes
        return any(self._depth(queue) or self.site.checker.missing(queue) for queue in queues)

    def _depth(self, queue: str) -> int:
        """How many messages are ready; raises when the queue is gone."""
        with connected(self.site.amqp) as client:
            return client.declare_queue(queue, passive=True)
