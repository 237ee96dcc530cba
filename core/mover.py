"""Moves: messages that leave a queue for others, by way of an exchange.

Dead letters (`letters.py`) and delayed messages that are due (`release.py`) are moved. Each becomes
a new message; the copy and the end of the old one are kept together. It is looked at by itself, so
a turn moves a bounded number and the rest waits in line.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from .block import Block, Span
from .letters import DeadLetters
from .outbox import Copy, Outbox
from .queue.delay import RELEASED
from .release import Release

if TYPE_CHECKING:
    from .broker import Broker
    from .queue.queue import Queue

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


class Mover:
    """The line of spans on their way."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._outbox = Outbox(broker)
        self._line: deque[tuple[Queue, Span, Course]] = deque()
        self._coming: set[Block] = set()
        self._unreadable: WeakSet[Block] = WeakSet()

    @property
    def busy(self) -> bool:
        """Whether there is something to be done now, not only to wait for."""
        return bool(self._line) and self._line[0][1].run.block not in self._coming

    def add(self, queue: Queue, span: Span, reason: str) -> None:
        """Takes over messages that are in no queue any more."""
        course: Course
        if reason == RELEASED:
            course = Release(self._broker, queue)
        elif queue.rules is not None and queue.rules.dead_letter_exchange is not None:
            course = DeadLetters(self._broker, queue, queue.rules, reason)
        else:
            queue.done_with(span)
            return
        self._line.append((queue, span, course))

    def run(self) -> None:
        """Moves at most `MOVES_PER_TURN` messages: copies and settlements are kept together."""
        with self._broker.store.together():
            self._run()
            self._outbox.flush()

    def _run(self) -> None:
        line, left = self._line, MOVES_PER_TURN
        while line and left:
            queue, span, course = line[0]
            block = span.run.block
            if block in self._unreadable:
                # The store has said so, and still has it.
                line.popleft()
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
                self._move(queue, block, span.run.index(position), course)
            queue.done_with(some)

    def _move(self, queue: Queue, block: Block, index: int, course: Course) -> None:
        """Moves one message. Whatever is wrong with it, it must not stop the broker's turn."""
        try:
            copy = course.copy(block, index)
            if copy is not None:
                self._outbox.add(copy)
        except Exception:
            logger.exception(
                "a message of queue '%s' in vhost '%s' could not be moved on and is dropped",
                queue.name,
                queue.vhost,
            )

    def _fetch(self) -> None:
        """Asks for the first block of the line and for those behind it that are on disk too."""
        room = AHEAD_BYTES
        for _, span, _ in islice(self._line, AHEAD_BLOCKS):
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
