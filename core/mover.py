"""Moves: messages that leave a queue for others, by way of an exchange.

Dead letters (`letters.py`) and delayed messages that are due (`release.py`) are moved. Each becomes
a new message; the copy and the end of the old one are kept together. It is looked at by itself, so
a turn moves a bounded number and the rest waits in line.

Dead letters of a transaction are made in the same way, but handed over all at once when it is
committed (`MoveGroup`). They have a line of their own, for a client waits for them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakSet

from .block import Block, Span
from .letters import DeadLetters
from .outbox import Copy, Outbox
from .queue.delay import RELEASED
from .release import Release
from .slices import drain

if TYPE_CHECKING:
    from .broker import Broker
    from .queue.queue import Queue
    from .store.port import ManySettled

logger = logging.getLogger(__name__)

MOVES_PER_TURN = 100
"""About 2 ms: a turn follows every read, and all of them come before somebody's answer."""
AHEAD_BLOCKS = 64
AHEAD_BYTES = 1_048_576
"""How much of what is not resident is asked for together, at most."""


class Course(Protocol):
    """Where messages of one queue go, and in what shape."""

    def copy(self, block: Block, index: int) -> Copy | None:
        """What becomes of one message; None if it goes nowhere."""


class DeadLetter(NamedTuple):
    """Messages that a queue lets go of, and why."""

    queue: Queue
    span: Span
    reason: str


class Destination(Protocol):
    """Who takes what is moved."""

    outbox: Outbox

    def moved(self, queue: Queue, span: Span) -> None:
        """The outbox has the copies of these messages."""

    def lost(self, queue: Queue, span: Span) -> None:
        """These can't be read; the store has said so, and still has them."""


class _Shown:
    """Another block of one message in place of the one that is moved."""

    __slots__ = ("_course", "_shown")

    def __init__(self, course: Course, shown: Block) -> None:
        self._course = course
        self._shown = shown

    def copy(self, block: Block, index: int) -> Copy | None:
        return self._course.copy(self._shown, 0)


class Mover:
    """The two lines of spans on their way."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._at_once = _AtOnce(broker)
        self._alone = _Line(broker)
        self._grouped = _Line(broker)

    @property
    def busy(self) -> bool:
        """Whether there is something to be done now, not only to wait for."""
        return self._alone.busy or self._grouped.busy

    def add(self, queue: Queue, span: Span, reason: str, shown: Block | None = None) -> None:
        """Takes over messages that are in no queue any more; a single one goes as it is `shown`."""
        course: Course
        if reason == RELEASED:
            course = Release(self._broker, queue)
        elif queue.rules is not None and queue.rules.dead_letter_exchange is not None:
            course = DeadLetters(self._broker, queue, queue.rules, reason)
            if shown is not None:
                course = _Shown(course, shown)
        else:
            queue.done_with(span)
            return
        self._alone.add(queue, span, course, self._at_once)

    def gather(self, ready: Callable[[], None], many: ManySettled | None = None) -> MoveGroup:
        """Makes the dead letters that it is given until it is complete; in a later turn `ready` is
        called, and they can be handed over. Their sources are noted in `many`, if there is one."""
        return MoveGroup(self._broker, self._grouped, ready, many)

    def run(self) -> None:
        """Moves at most `MOVES_PER_TURN` messages: copies and settlements are kept together."""
        share = MOVES_PER_TURN // (1 + (self._alone.busy and self._grouped.busy))
        self._grouped.run(share)
        with self._broker.store.together():
            self._alone.run(share)
            self._at_once.outbox.flush()


class _AtOnce:
    """Hands over what was moved in the same turn."""

    def __init__(self, broker: Broker) -> None:
        self.outbox = Outbox(broker)

    def moved(self, queue: Queue, span: Span) -> None:
        queue.done_with(span)

    def lost(self, queue: Queue, span: Span) -> None:
        """They are in no queue any more."""


class MoveGroup:
    """Dead letters of unacknowledged messages that take effect together."""

    def __init__(
        self, broker: Broker, line: _Line, ready: Callable[[], None], many: ManySettled | None
    ) -> None:
        self.outbox = Outbox(broker, is_held=True)
        self._broker = broker
        self._line = line
        self._ready = ready
        self._many = many
        self._left = 1
        """Messages that are not moved yet, and one until it is complete."""
        self._moved: deque[tuple[Queue, Span]] = deque()
        self._lost: deque[tuple[Queue, Span]] = deque()

    @property
    def is_ready(self) -> bool:
        return not self._left

    def add(self, letter: DeadLetter) -> None:
        """One more, of a queue that has an exchange for it."""
        queue, span, reason = letter
        assert queue.rules is not None
        course = DeadLetters(self._broker, queue, queue.rules, reason)
        self._left += span.count
        self._line.add(queue, Span(span.run, span.low, span.high), course, self)

    def complete(self) -> None:
        """No more will be added."""
        self._count(1)

    def moved(self, queue: Queue, span: Span) -> None:
        if self._many is not None:
            queue.note_settled(span, self._many)
        self._moved.append((queue, span))
        self._count(span.count)

    def lost(self, queue: Queue, span: Span) -> None:
        self._lost.append((queue, span))
        self._count(span.count)

    def _count(self, count: int) -> None:
        self._left -= count
        if not self._left:
            self._ready()

    def hand_over(self) -> int:
        """Puts the copies into their queues, inside of `store.together()`; gives the commit number
        to wait for, 0 for none. The sources are to be settled."""
        return self.outbox.hand_over()

    def settle(self) -> Iterator[None]:
        """Settles the sources, some at a step; inside of `store.together()`, unless they were
        noted and logged."""
        many = self._many
        for queue, span in drain(self._moved):
            if many is None:
                queue.settle(span)
            else:
                queue.count_settled(span, many)
            yield
        for queue, span in drain(self._lost):
            queue.unacked_count -= span.count
            yield


class _Line:
    """Spans that are moved one after another."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._line: deque[tuple[Queue, Span, Course, Destination]] = deque()
        self._coming: set[Block] = set()
        self._unreadable: WeakSet[Block] = WeakSet()

    @property
    def busy(self) -> bool:
        return bool(self._line) and self._line[0][1].run.block not in self._coming

    def add(self, queue: Queue, span: Span, course: Course, destination: Destination) -> None:
        self._line.append((queue, span, course, destination))

    def run(self, left: int) -> None:
        """Moves at most so many messages."""
        line = self._line
        while line and left:
            queue, span, course, destination = line[0]
            block = span.run.block
            if block in self._unreadable:
                line.popleft()
                destination.lost(queue, span)
                continue
            if not block.resident:
                self._fetch()
                return
            some = Span(span.run, span.low, min(span.high, span.low + left))
            span.low = some.high
            left -= some.count
            if span.low == span.high:
                line.popleft()
            for position in range(some.low, some.high):
                self._move(queue, block, span.run.index(position), course, destination.outbox)
            destination.moved(queue, some)

    def _move(self, queue: Queue, block: Block, index: int, course: Course, outbox: Outbox) -> None:
        """Moves one message. Whatever is wrong with it, it must not stop the broker's turn."""
        try:
            copy = course.copy(block, index)
            if copy is not None:
                outbox.add(copy)
        except Exception:
            logger.exception(
                "a message of queue '%s' in vhost '%s' could not be moved on and is dropped",
                queue.name,
                queue.vhost,
            )

    def _fetch(self) -> None:
        """Asks for the first block of the line and for those behind it that are on disk too."""
        room = AHEAD_BYTES
        for _, span, _, _ in islice(self._line, AHEAD_BLOCKS):
            block = span.run.block
            if block.resident or block in self._coming:
                continue
            self._coming.add(block)
            self._broker.store.fetch(block, partial(self._arrived, block))
            room -= block.size_bytes
            if room <= 0:
                return

    def _arrived(self, block: Block) -> None:
        self._coming.discard(block)
        if not block.resident:
            self._unreadable.add(block)
        self._broker.on_work()
