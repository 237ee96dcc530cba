"""The ranges of messages that wait to be republished, and the work on each message."""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from ..message.batch import Batch
from ..message.queue_entry import MessageRange
from ..publish.buffer import PublishBuffer
from .republished_message import RepublishedMessage

if TYPE_CHECKING:
    from ..context import BrokerContext
    from ..queue.queue import Queue

logger = logging.getLogger(__name__)

AHEAD_BATCHES: Final = 64
AHEAD_BYTES: Final = 1_048_576
"""How many paged-out batches, and bytes of them, are read ahead at most."""


class Republishing(Protocol):
    """Makes the new messages of one queue."""

    def copy(self, batch: Batch, index: int) -> RepublishedMessage | None:
        """Returns the new message of one; None if it is dropped."""


class CopyCollector(Protocol):
    """Collects the copies, and settles the originals."""

    copies: PublishBuffer

    def copied(self, queue: Queue, messages: MessageRange) -> None:
        """Called when `copies` has the copies of these messages."""

    def unreadable(self, queue: Queue, messages: MessageRange) -> None:
        """Called for messages that the store can't read; it still has them."""


class RepublishFifo:
    """Ranges of messages, republished one after another; `busy` while one can be."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._waiting: deque[tuple[Queue, MessageRange, Republishing, CopyCollector]] = deque()
        self._fetching: set[Batch] = set()
        self._failed: set[Batch] = set()
        """Batches that can't be read; each has ranges in here, and goes with the last of them."""

    @property
    def busy(self) -> bool:
        return bool(self._waiting) and self._waiting[0][1].entry.batch not in self._fetching

    def add(
        self,
        queue: Queue,
        messages: MessageRange,
        republishing: Republishing,
        destination: CopyCollector,
    ) -> None:
        self._waiting.append((queue, messages, republishing, destination))

    def run(self, room: int) -> None:
        """Republishes at most `room` messages."""
        waiting = self._waiting
        while waiting and room:
            queue, messages, republishing, destination = waiting[0]
            batch = messages.entry.batch
            if batch in self._failed:
                waiting.popleft()
                destination.unreadable(queue, messages)
                continue
            if not batch.resident:
                self._fetch()
                return
            some = MessageRange(
                messages.entry, messages.low, min(messages.high, messages.low + room)
            )
            messages.low = some.high
            room -= some.count
            if messages.low == messages.high:
                waiting.popleft()
            for position in range(some.low, some.high):
                index = messages.entry.index(position)
                self._republish(queue, batch, index, republishing, destination.copies)
            destination.copied(queue, some)
        if not waiting:
            self._failed.clear()

    def _republish(
        self,
        queue: Queue,
        batch: Batch,
        index: int,
        republishing: Republishing,
        copies: PublishBuffer,
    ) -> None:
        """Republishes one message. No error in it may stop the broker's turn."""
        try:
            copy = republishing.copy(batch, index)
            if copy is not None:
                copies.add(copy)
        except Exception:
            logger.exception(
                "a message of queue '%s' in vhost '%s' could not be republished and is dropped",
                queue.name,
                queue.vhost,
            )

    def _fetch(self) -> None:
        """Reads the first batch, and paged-out ones behind it, from disk."""
        room = AHEAD_BYTES
        for _, messages, _, _ in islice(self._waiting, AHEAD_BATCHES):
            batch = messages.entry.batch
            if batch.resident or batch in self._fetching:
                continue
            self._fetching.add(batch)
            self._broker.store.batches.fetch(batch, partial(self._fetched, batch))
            room -= batch.size_bytes
            if room <= 0:
                return

    def _fetched(self, batch: Batch) -> None:
        self._fetching.discard(batch)
        if not batch.resident:
            self._failed.add(batch)
        self._broker.on_work()
