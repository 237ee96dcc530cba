"""Publishes messages together: those of a transaction, of an HTTP batch, and dead letters.

Messages that need no check of their own are framed into batches like those of a socket read: in
queues and store each of them takes 0.1 us, a single one 5 us.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ..slices import drain
from .buffered_batch import BufferedBatch
from .routed import RoutedMessage

if TYPE_CHECKING:
    from ..context import BrokerContext

BATCHED_BYTES: Final = 256
_ALONE_BYTES: Final = 1_024
"""Estimated memory of a message beside its body and properties, in a batch and alone."""


class PublishBuffer:
    """Checked and routed messages, in publish order, until `publish_all`."""

    __slots__ = ("_broker", "_items", "_last")

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._items: deque[BufferedBatch | RoutedMessage] = deque()
        self._last: BufferedBatch | None = None
        """The last item, if it is a batch."""

    @property
    def count(self) -> int:
        """The number of buffered messages."""
        return sum(
            item.frames.count if isinstance(item, BufferedBatch) else 1 for item in self._items
        )

    def add(self, message: RoutedMessage) -> int:
        """Adds a message; returns about how many bytes of memory it takes."""
        size = len(message.body) + len(message.properties)
        if message.fits_batch:
            self.add_alike(message, (message.body,))
            return size + BATCHED_BYTES
        self._items.append(message)
        self._last = None
        return size + _ALONE_BYTES

    def add_alike(self, message: RoutedMessage, bodies: Sequence[bytes]) -> None:
        """Adds a message for each body that is otherwise like `message`; all fit a batch."""
        self.batch_for(message).add(message, bodies)

    def batch_for(self, message: RoutedMessage) -> BufferedBatch:
        """Returns the batch that this message joins. Until it has `BATCH_BYTES`, or something else
        is added here, messages of the same exchange with the same attributes may be added there."""
        batch = self._last
        if batch is None or not batch.takes(message):
            if batch is not None:
                batch.frames.join()
            batch = self._last = BufferedBatch(message)
            self._items.append(batch)
        return batch

    def publish_all(self) -> tuple[bool, int]:
        """Publishes all in order; they go to the queues that exist now.

        Returns whether every queue accepted its messages, and the commit number to wait for, 0 for
        none.
        """
        self._last = None
        accepted, commit = True, 0
        for item in drain(self._items):
            item.update_queues()
            taken, number = item.publish(self._broker)
            accepted &= taken
            commit = max(commit, number)
        return accepted, commit

    def drop(self) -> Iterator[None]:
        """Drops all messages, one batch or single message at a step."""
        self._last = None
        while self._items:
            self._items.pop()
            yield
