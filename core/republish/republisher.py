"""Republishes messages that leave a queue: dead letters, and delayed messages that are due.

Each becomes a new message (`dead_letters.py`, `delayed.py`); the copy and the settlement of the
original are logged together. Each is processed by itself, so a turn republishes a bounded number
and the rest stays in a FIFO.

Dead letters of a transaction are made in the same way, but published all at once when it is
committed (`RepublishGroup`). They have a FIFO of their own, because a client waits for them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..message.batch import Batch, MessageRange
from ..queue.delay import RELEASED
from ..slices import drain
from .copies import Copy, CopyBatcher
from .dead_letters import DeadLetters
from .delayed import DelayedRelease

if TYPE_CHECKING:
    from ..broker import Broker
    from ..queue.queue import Queue
    from ..store.port import ManySettled

logger = logging.getLogger(__name__)

REPUBLISHED_PER_TURN = 100
"""About 2 ms: a turn follows every read, and all of them come before somebody's answer."""
AHEAD_BATCHES = 64
AHEAD_BYTES = 1_048_576
"""How many paged-out batches, and bytes of them, are read ahead at most."""


class Republishing(Protocol):
    """Makes the new messages of one queue."""

    def copy(self, batch: Batch, index: int) -> Copy | None:
        """Returns the new message of one; None if it is dropped."""


class DeadLetter(NamedTuple):
    """Messages that a queue dead-letters, and the reason for x-death."""

    queue: Queue
    messages: MessageRange
    reason: str


class Destination(Protocol):
    """Collects the copies, and settles the originals."""

    copies: CopyBatcher

    def copied(self, queue: Queue, messages: MessageRange) -> None:
        """Called when `copies` has the copies of these messages."""

    def unreadable(self, queue: Queue, messages: MessageRange) -> None:
        """Called for messages that the store can't read; it still has them."""


class _Replacement:
    """Republishes the message of another batch in place of the one that left the queue."""

    __slots__ = ("_replacement", "_republishing")

    def __init__(self, republishing: Republishing, replacement: Batch) -> None:
        self._republishing = republishing
        self._replacement = replacement

    def copy(self, batch: Batch, index: int) -> Copy | None:
        return self._republishing.copy(self._replacement, 0)


class Republisher:
    """The messages to be republished: one FIFO for single ones, one for groups."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._immediate = _ImmediateDestination(broker)
        self._single = _Fifo(broker)
        self._grouped = _Fifo(broker)

    @property
    def busy(self) -> bool:
        """Whether a message can be republished now; False if all wait for the disk."""
        return self._single.busy or self._grouped.busy

    def add(
        self, queue: Queue, messages: MessageRange, reason: str, replacement: Batch | None = None
    ) -> None:
        """Adds messages that have left their queue; `replacement` is republished for a single."""
        republishing: Republishing
        if reason == RELEASED:
            republishing = DelayedRelease(self._broker, queue)
        elif queue.rules is not None and queue.rules.dead_letter_exchange is not None:
            republishing = DeadLetters(self._broker, queue, queue.rules, reason)
            if replacement is not None:
                republishing = _Replacement(republishing, replacement)
        else:
            queue.settle_dead_lettered(messages)
            return
        self._single.add(queue, messages, republishing, self._immediate)

    def gather(self, ready: Callable[[], None], many: ManySettled | None = None) -> RepublishGroup:
        """Returns an empty group of dead letters; `ready` is called in a later turn, when it is
        complete and all are made. Their originals are marked as settled in `many`, if given."""
        return RepublishGroup(self._broker, self._grouped, ready, many)

    def run(self) -> None:
        """Republishes at most `REPUBLISHED_PER_TURN` messages; copies and settlements are one
        group in the store."""
        share = REPUBLISHED_PER_TURN // (1 + (self._single.busy and self._grouped.busy))
        self._grouped.run(share)
        with self._broker.store.together():
            self._single.run(share)
            self._immediate.copies.flush()


class _ImmediateDestination:
    """Publishes the copies in the same turn, and settles the originals."""

    def __init__(self, broker: Broker) -> None:
        self.copies = CopyBatcher(broker)

    def copied(self, queue: Queue, messages: MessageRange) -> None:
        queue.settle_dead_lettered(messages)

    def unreadable(self, queue: Queue, messages: MessageRange) -> None:
        """Does nothing: the messages have left their queue."""


class RepublishGroup:
    """Dead letters of unacknowledged messages that take effect together."""

    def __init__(
        self, broker: Broker, fifo: _Fifo, ready: Callable[[], None], many: ManySettled | None
    ) -> None:
        self.copies = CopyBatcher(broker, is_deferred=True)
        self._broker = broker
        self._fifo = fifo
        self._ready = ready
        self._many = many
        self._remaining = 1
        """Messages that are not copied yet, and one until it is complete."""
        self._copied: deque[tuple[Queue, MessageRange]] = deque()
        self._unreadable: deque[tuple[Queue, MessageRange]] = deque()

    @property
    def is_ready(self) -> bool:
        return not self._remaining

    def add(self, dead_letter: DeadLetter) -> None:
        """Adds dead letters of a queue that has a dead-letter exchange."""
        queue, messages, reason = dead_letter
        assert queue.rules is not None
        republishing = DeadLetters(self._broker, queue, queue.rules, reason)
        self._remaining += messages.count
        own = MessageRange(messages.entry, messages.low, messages.high)
        self._fifo.add(queue, own, republishing, self)

    def complete(self) -> None:
        """Ends the adding."""
        self._count(1)

    def copied(self, queue: Queue, messages: MessageRange) -> None:
        if self._many is not None:
            queue.note_settled(messages, self._many)
        self._copied.append((queue, messages))
        self._count(messages.count)

    def unreadable(self, queue: Queue, messages: MessageRange) -> None:
        self._unreadable.append((queue, messages))
        self._count(messages.count)

    def _count(self, count: int) -> None:
        self._remaining -= count
        if not self._remaining:
            self._ready()

    def publish_all(self) -> int:
        """Publishes the copies, inside of `store.together()`; `settle` the originals next.

        Returns the commit number to wait for, 0 for none.
        """
        return self.copies.publish_all()

    def settle(self) -> Iterator[None]:
        """Settles the originals, some at a step; inside of `store.together()`, unless they were
        marked and logged as settled."""
        many = self._many
        for queue, messages in drain(self._copied):
            if many is None:
                queue.settle(messages)
            else:
                queue.count_settled(messages, many)
            yield
        for queue, messages in drain(self._unreadable):
            queue.unacked_count -= messages.count
            yield


class _Fifo:
    """Ranges of messages, republished one after another."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: deque[tuple[Queue, MessageRange, Republishing, Destination]] = deque()
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
        destination: Destination,
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
        copies: CopyBatcher,
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
            self._broker.store.fetch(batch, partial(self._fetched, batch))
            room -= batch.size_bytes
            if room <= 0:
                return

    def _fetched(self, batch: Batch) -> None:
        self._fetching.discard(batch)
        if not batch.resident:
            self._failed.add(batch)
        self._broker.on_work()
