"""What a queue has asked the store for: blocks without their bytes, and cold stretches.

`is_awaited` while the queue can't go on before something arrives; then it is woken, and those who
wanted to get are served first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..block import Cold, Run, Span

if TYPE_CHECKING:
    from .queue import Queue
    from .ready import Backlog
    from .surroundings import Surroundings

READ_AHEAD_MESSAGES = 6_000
AHEAD_ENTRIES = 256
AHEAD_BYTES = 1_048_576
"""How much of what is not resident is asked for together, at most."""


class Arrivals:
    """Of one queue; made when it first has to wait."""

    __slots__ = ("_broker", "_getting", "_looking", "_queue", "_reading", "is_awaited")

    def __init__(self, queue: Queue, broker: Surroundings) -> None:
        self._queue = queue
        self._broker = broker
        self._getting: list[Callable[[], None]] = []
        self._reading: dict[Cold, None] = {}
        self._looking: Cold | None = None
        self.is_awaited = False

    @property
    def reading(self) -> list[Cold]:
        """The stretches that are being read."""
        return list(self._reading)

    def get(self, head: Span | Cold, action: Callable[[], None]) -> None:
        """Runs `action` when the head of the queue has arrived."""
        self.ask_for(head)
        self._getting.append(action)

    def wait(self, action: Callable[[], None]) -> None:
        """Runs `action` as `get` does, when all is back that is coming back (`returned`)."""
        self._getting.append(action)

    def returned(self) -> None:
        """All is back."""
        if self._getting and not self.is_awaited:
            self._arrived()

    def ask_for(self, head: Span | Cold) -> None:
        """The queue can't go on before this is read."""
        if isinstance(head, Cold):
            if not self.is_awaited:
                self.is_awaited = True
                for cold in self._reading:
                    self._broker.store.hurry(cold)
            if head not in self._reading:
                self._read_front(self._queue.backlog)
        elif not self.is_awaited:
            self.is_awaited = True
            self._broker.store.fetch(head.run.block, partial(self._fetched, head.run))
            self._fetch_behind(head)

    def _fetch_behind(self, head: Span) -> None:
        """Has those behind the head read too: messages that came alone have a block each."""
        room = AHEAD_BYTES - head.run.block.size_bytes
        for span in self._queue.backlog.front(AHEAD_ENTRIES):
            block = span.run.block
            if room <= 0:
                return
            if span is not head and not block.resident:
                self._broker.store.fetch(block, _nothing)
                room -= block.size_bytes

    def read(self, cold: Cold, *, is_urgent: bool = True) -> None:
        """Has the front of a stretch read, unless that is under way."""
        if cold not in self._reading:
            self._reading[cold] = None
            self._broker.store.thaw(cold, partial(self._thawed, cold), is_urgent=is_urgent)

    def look(self, cold: Cold) -> None:
        """Has it read when nobody waits for anything; one stretch at a time."""
        if self._looking is None and cold not in self._reading:
            self._looking = cold
            self.read(cold, is_urgent=False)

    def hurry(self, cold: Cold) -> None:
        """Has the front of a stretch read before all that nobody waits for."""
        if cold in self._reading:
            self._broker.store.hurry(cold)
        else:
            self.read(cold)

    def read_ahead(self, backlog: Backlog) -> None:
        """Has the next stretches read while the messages before them go out."""
        if not self._reading:
            self._read_front(backlog)

    def _read_front(self, backlog: Backlog) -> None:
        """All small stretches at the front: each would cost a turn of its own."""
        for cold in backlog.cold_within(READ_AHEAD_MESSAGES):
            self.read(cold)

    def _fetched(self, run: Run) -> None:
        """What could not be read is left out; the store has said so, and still has it."""
        if not run.block.resident:
            self._queue.leave_out(run)
        self._arrived()

    def _thawed(self, cold: Cold, spans: Sequence[Span]) -> None:
        self._reading.pop(cold, None)
        if self._looking is cold:
            self._looking = None
        try:
            self._queue.thawed(cold, spans)
        finally:
            # Whoever waits goes on with what there is, whatever has gone wrong with this.
            if self.is_awaited:
                self._arrived()

    def _arrived(self) -> None:
        self.is_awaited = False
        getting, self._getting = self._getting, []
        for action in getting:
            self._queue.get(action)
        self._broker.wake(self._queue)
        self._broker.on_work()


def _nothing() -> None:
    """It stays where it is until the queue comes to it."""
