"""The purges of one queue; each is confirmed when it and all earlier ones are on disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..message.queue_entry import PagedOut

if TYPE_CHECKING:
    from ..slices import Steps
    from .backlog import Backlog
    from .context import QueueContext
    from .queue import Queue


class Purge:
    """A purge in progress; `is_over` once all its messages are settled."""

    __slots__ = ("done", "is_over")

    def __init__(self, done: Callable[[], None]) -> None:
        self.done = done
        self.is_over = False


class PendingPurges:
    """The unconfirmed purges of one queue, in the order in which they began."""

    __slots__ = ("_broker", "_commit", "_pending")

    def __init__(self, broker: QueueContext) -> None:
        self._broker = broker
        self._pending: deque[Purge] = deque()
        self._commit = 0

    def begin(self, done: Callable[[], None]) -> Purge:
        """Adds a purge. `done` is called when it and those before it are on disk: they may have
        dropped messages that it would have dropped."""
        purge = Purge(done)
        self._pending.append(purge)
        return purge

    def settle(
        self, queue: Queue, backlog: Backlog, reading: Iterable[Steps], purge: Purge
    ) -> Steps:
        """Settles the messages of a purged backlog, then ends the purge; if the queue is deleted
        they are only freed. `reading` discards the ranges that were being read."""
        store = self._broker.store
        for steps in reading:
            yield from steps
        while (head := backlog.head()) is not None and not queue.deleted:
            if isinstance(head, PagedOut):
                yield from store.discard(queue, head)
                continue
            queue.settle_dead_lettered(backlog.empty(head))
            yield None
        self.end(purge, store.barrier() if queue.durable else 0)
        yield from backlog.release()

    def end(self, purge: Purge, commit: int) -> None:
        """Ends a purge whose messages are settled; that is on disk with the given commit."""
        purge.is_over = True
        self._commit = max(self._commit, commit)
        pending = self._pending
        while pending and pending[0].is_over:
            self._broker.commits.when_decided(self._commit, pending.popleft().done)
