"""Moves: messages that leave a queue for others, by way of an exchange.

Dead letters (`dead_letters.py`) and delayed messages that are due (`delayed.py`) are moved. Each
becomes a new message; the copy and the end of the old one are kept together. It is looked at by
itself, so a turn moves a bounded number and the rest waits in line.

Dead letters of a transaction are made in the same way, but handed over all at once when it is
committed (`RepublishGroup`). They have a line of their own, for a client waits for them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakSet

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
"""How much of what is not resident is asked for together, at most."""


class Republishing(Protocol):
    """Where messages of one queue go, and in what shape."""

    def copy(self, batch: Batch, index: int) -> Copy | None:
        """What becomes of one message; None if it goes nowhere."""


class DeadLetter(NamedTuple):
    """Messages that a queue lets go of, and why."""

    queue: Queue
    messages: MessageRange
    reason: str


class Destination(Protocol):
    """Who takes what is moved."""

    copies: CopyBatcher

    def moved(self, queue: Queue, messages: MessageRange) -> None:
        """The outbox has the copies of these messages."""

    def lost(self, queue: Queue, messages: MessageRange) -> None:
        """These can't be read; the store has said so, and still has them."""


class _Shown:
    """Another batch of one message in place of the one that is moved."""

    __slots__ = ("_course", "_shown")

    def __init__(self, course: Republishing, shown: Batch) -> None:
        self._course = course
        self._shown = shown

    def copy(self, batch: Batch, index: int) -> Copy | None:
        return self._course.copy(self._shown, 0)


class Republisher:
    """The two lines of ranges on their way."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._at_once = _AtOnce(broker)
        self._alone = _Line(broker)
        self._grouped = _Line(broker)

    @property
    def busy(self) -> bool:
        """Whether there is something to be done now, not only to wait for."""
        return self._alone.busy or self._grouped.busy

    def add(
        self, queue: Queue, messages: MessageRange, reason: str, shown: Batch | None = None
    ) -> None:
        """Takes over messages that are in no queue any more; a single one goes as it is `shown`."""
        course: Republishing
        if reason == RELEASED:
            course = DelayedRelease(self._broker, queue)
        elif queue.rules is not None and queue.rules.dead_letter_exchange is not None:
            course = DeadLetters(self._broker, queue, queue.rules, reason)
            if shown is not None:
                course = _Shown(course, shown)
        else:
            queue.settle_dead_lettered(messages)
            return
        self._alone.add(queue, messages, course, self._at_once)

    def gather(self, ready: Callable[[], None], many: ManySettled | None = None) -> RepublishGroup:
        """Makes the dead letters that it is given until it is complete; in a later turn `ready` is
        called, and they can be handed over. Their sources are noted in `many`, if there is one."""
        return RepublishGroup(self._broker, self._grouped, ready, many)

    def run(self) -> None:
        """Moves at most `REPUBLISHED_PER_TURN` messages: copies and settlements are kept
        together."""
        share = REPUBLISHED_PER_TURN // (1 + (self._alone.busy and self._grouped.busy))
        self._grouped.run(share)
        with self._broker.store.together():
            self._alone.run(share)
            self._at_once.copies.flush()


class _AtOnce:
    """Hands over what was moved in the same turn."""

    def __init__(self, broker: Broker) -> None:
        self.copies = CopyBatcher(broker)

    def moved(self, queue: Queue, messages: MessageRange) -> None:
        queue.settle_dead_lettered(messages)

    def lost(self, queue: Queue, messages: MessageRange) -> None:
        """They are in no queue any more."""


class RepublishGroup:
    """Dead letters of unacknowledged messages that take effect together."""

    def __init__(
        self, broker: Broker, line: _Line, ready: Callable[[], None], many: ManySettled | None
    ) -> None:
        self.copies = CopyBatcher(broker, is_held=True)
        self._broker = broker
        self._line = line
        self._ready = ready
        self._many = many
        self._left = 1
        """Messages that are not moved yet, and one until it is complete."""
        self._moved: deque[tuple[Queue, MessageRange]] = deque()
        self._lost: deque[tuple[Queue, MessageRange]] = deque()

    @property
    def is_ready(self) -> bool:
        return not self._left

    def add(self, dead_letter: DeadLetter) -> None:
        """One more, of a queue that has an exchange for it."""
        queue, messages, reason = dead_letter
        assert queue.rules is not None
        course = DeadLetters(self._broker, queue, queue.rules, reason)
        self._left += messages.count
        self._line.add(
            queue, MessageRange(messages.entry, messages.low, messages.high), course, self
        )

    def complete(self) -> None:
        """No more will be added."""
        self._count(1)

    def moved(self, queue: Queue, messages: MessageRange) -> None:
        if self._many is not None:
            queue.note_settled(messages, self._many)
        self._moved.append((queue, messages))
        self._count(messages.count)

    def lost(self, queue: Queue, messages: MessageRange) -> None:
        self._lost.append((queue, messages))
        self._count(messages.count)

    def _count(self, count: int) -> None:
        self._left -= count
        if not self._left:
            self._ready()

    def publish_all(self) -> int:
        """Puts the copies into their queues, inside of `store.together()`; gives the commit number
        to wait for, 0 for none. The sources are to be settled."""
        return self.copies.publish_all()

    def settle(self) -> Iterator[None]:
        """Settles the sources, some at a step; inside of `store.together()`, unless they were
        noted and logged."""
        many = self._many
        for queue, messages in drain(self._moved):
            if many is None:
                queue.settle(messages)
            else:
                queue.count_settled(messages, many)
            yield
        for queue, messages in drain(self._lost):
            queue.unacked_count -= messages.count
            yield


class _Line:
    """Ranges that are moved one after another."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._line: deque[tuple[Queue, MessageRange, Republishing, Destination]] = deque()
        self._coming: set[Batch] = set()
        self._unreadable: WeakSet[Batch] = WeakSet()

    @property
    def busy(self) -> bool:
        return bool(self._line) and self._line[0][1].entry.batch not in self._coming

    def add(
        self, queue: Queue, messages: MessageRange, course: Republishing, destination: Destination
    ) -> None:
        self._line.append((queue, messages, course, destination))

    def run(self, left: int) -> None:
        """Moves at most so many messages."""
        line = self._line
        while line and left:
            queue, messages, course, destination = line[0]
            batch = messages.entry.batch
            if batch in self._unreadable:
                line.popleft()
                destination.lost(queue, messages)
                continue
            if not batch.resident:
                self._fetch()
                return
            some = MessageRange(
                messages.entry, messages.low, min(messages.high, messages.low + left)
            )
            messages.low = some.high
            left -= some.count
            if messages.low == messages.high:
                line.popleft()
            for position in range(some.low, some.high):
                self._move(queue, batch, messages.entry.index(position), course, destination.copies)
            destination.moved(queue, some)

    def _move(
        self, queue: Queue, batch: Batch, index: int, course: Republishing, copies: CopyBatcher
    ) -> None:
        """Moves one message. Whatever is wrong with it, it must not stop the broker's turn."""
        try:
            copy = course.copy(batch, index)
            if copy is not None:
                copies.add(copy)
        except Exception:
            logger.exception(
                "a message of queue '%s' in vhost '%s' could not be moved on and is dropped",
                queue.name,
                queue.vhost,
            )

    def _fetch(self) -> None:
        """Asks for the first batch of the line and for those behind it that are on disk too."""
        room = AHEAD_BYTES
        for _, messages, _, _ in islice(self._line, AHEAD_BATCHES):
            batch = messages.entry.batch
            if batch.resident or batch in self._coming:
                continue
            self._coming.add(batch)
            self._broker.store.fetch(batch, partial(self._arrived, batch))
            room -= batch.size_bytes
            if room <= 0:
                return

    def _arrived(self, batch: Batch) -> None:
        self._coming.discard(batch)
        if not batch.resident:
            self._unreadable.add(batch)
        self._broker.on_work()
