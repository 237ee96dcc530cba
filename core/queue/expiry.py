"""Message expiry: the queue's TTL at its head, a message's own wherever it stands.

Deadlines are monotonic milliseconds, fixed when the message entered the queue; requeueing keeps
them. Under the queue's TTL alone older messages expire first, so looking at the head is enough.
A message's own `expiration` can be shorter, so those runs go into a heap as well. There they
stay when they are delivered; as the heap has doubled, what is gone from the queue is let go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Protocol

from ..block import Span
from .ready import Backlog

if TYPE_CHECKING:
    from ..timers import Timer, Timers

_CLEAR_MIN = 64
"""Fewer are not worth looking through."""


class _Time(Protocol):
    timers: Timers
    now_ms: int


class Expiry:
    """What in one queue expires, and when to look again; `wake` has the queue pumped."""

    __slots__ = ("_clear_at", "_heap", "_order", "_time", "_timer", "_ttl_ms", "_wake")

    def __init__(self, time: _Time, wake: Callable[[], None], ttl_ms: int | None) -> None:
        self._time = time
        self._wake = wake
        self._ttl_ms = ttl_ms
        self._heap: list[tuple[int, int, Span]] = []
        self._order = count()
        self._clear_at = _CLEAR_MIN
        self._timer: Timer | None = None

    def watch(self, span: Span, *, recovered: bool = False) -> None:
        """Fixes the deadline of a run that has just come in, or had before a restart.

        The clock may have been set meanwhile, so a recovered one has at least no time left and at
        most all of it.
        """
        run = span.run
        text = run.block.traits.expiration
        ttl_ms = self._ttl_ms
        if text is not None:
            own_ms = int(text)
            ttl_ms = own_ms if ttl_ms is None else min(own_ms, ttl_ms)
        if ttl_ms is None:
            return
        now_ms = self._time.now_ms
        came_ms = min(run.block.arrived_ms, now_ms) if recovered else now_ms
        run.deadline_ms = max(now_ms, came_ms + ttl_ms)
        self.watch_again(span)

    def watch_again(self, span: Span) -> None:
        """A span with a fixed deadline has come back."""
        deadline_ms = span.run.deadline_ms
        if deadline_ms is None:
            return
        if span.run.block.traits.expiration is not None:
            if len(self._heap) >= self._clear_at:
                self._clear()
            heappush(self._heap, (deadline_ms, next(self._order), span))
        self._appoint(deadline_ms)

    def _clear(self) -> None:
        """Keeps each span that still holds messages, once."""
        held = {entry[2]: entry for entry in self._heap if entry[2].low < entry[2].high}
        self._heap = list(held.values())
        heapify(self._heap)
        self._clear_at = max(_CLEAR_MIN, 2 * len(self._heap))

    def forget(self) -> None:
        """The queue has been emptied: there is nothing to wait for."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()

    def is_over(self, span: Span) -> bool:
        """True if it must not be delivered any more.

        At the very millisecond of its deadline it may: a TTL of 0 means "to a consumer that is
        ready now, or not at all".
        """
        deadline_ms = span.run.deadline_ms
        return deadline_ms is not None and deadline_ms < self._time.now_ms

    def due(self, backlog: Backlog, now_ms: int) -> Iterator[Span]:
        """Takes out what has expired; then makes the next appointment."""
        while self._heap and self._heap[0][0] <= now_ms:
            span = heappop(self._heap)[2]
            if span.low < span.high:
                yield backlog.empty(span)
        head = backlog.head()
        # What is cold has no deadline.
        while isinstance(head, Span) and (deadline_ms := head.run.deadline_ms) is not None:
            if deadline_ms > now_ms:
                self._appoint(deadline_ms)
                break
            yield backlog.empty(head)
            head = backlog.head()
        if self._heap:
            self._appoint(self._heap[0][0])

    def _appoint(self, at_ms: int) -> None:
        timer = self._timer
        if timer is not None and timer.action is not None and timer.at_ms <= at_ms:
            return
        if timer is not None:
            timer.cancel()
        self._timer = self._time.timers.at(at_ms, self._keep_appointment)

    def _keep_appointment(self) -> None:
        self._timer = None
        self._wake()
