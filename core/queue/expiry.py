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

from ..block import Run, Span
from .ready import Backlog

if TYPE_CHECKING:
    from ..timers import Timer, Timers

_CLEAR_MIN = 64
"""Fewer are not worth looking through."""
DUE_AT_ONCE = 1_000
"""Spans that are let go of in one turn, about 2 ms."""


class _Time(Protocol):
    timers: Timers
    now_ms: int


class Expiry:
    """What in one queue expires, and when to look again; `wake` has the queue pumped."""

    __slots__ = (
        "_clear_at", "_heap", "_order", "_retimed", "_time", "_timer", "_ttl_ms", "_wake",
        "is_pressing",
    )  # fmt: skip

    def __init__(self, time: _Time, wake: Callable[[], None], ttl_ms: int | None) -> None:
        self._time = time
        self._wake = wake
        self._ttl_ms = ttl_ms
        self._heap: list[tuple[int, int, Span]] = []
        self._order = count()
        self._clear_at = _CLEAR_MIN
        self._timer: Timer | None = None
        self._retimed = False
        """What is out may have been given its time by another TTL."""
        self.is_pressing = False
        """Something with a TTL of 0 came back: it goes out in the next pump, or not at all."""

    def watch(self, span: Span, *, recovered: bool = False) -> None:
        """Fixes the deadline of a run that has just come in, or had before a restart.

        The clock may have been set meanwhile, so a recovered one has at most all of its time left.
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
        run.deadline_ms = came_ms + ttl_ms
        self._note(span, run.deadline_ms)

    def watch_again(self, span: Span) -> None:
        """A span has come back; its deadline is the one that it had."""
        if self._retimed:
            span.run.deadline_ms = None
            self.watch(span, recovered=True)
        deadline_ms = span.run.deadline_ms
        if deadline_ms is None:
            return
        if self._has_no_time(span.run):
            deadline_ms = span.run.deadline_ms = self._time.now_ms
            self.is_pressing = True
        self._note(span, deadline_ms)

    def _has_no_time(self, run: Run) -> bool:
        """Whether its TTL is 0."""
        text = run.block.traits.expiration
        return self._ttl_ms == 0 or (text is not None and int(text) == 0)

    def _note(self, span: Span, deadline_ms: int) -> None:
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

    def retime(self, backlog: Backlog, ttl_ms: int | None) -> None:
        """The queue's TTL is another one now, also for what is in it."""
        self._ttl_ms = ttl_ms
        self._retimed = True
        self.forget()
        for span in backlog:
            if isinstance(span, Span):
                span.run.deadline_ms = None
                self.watch(span, recovered=True)

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
        if deadline_ms is None or deadline_ms >= self._time.now_ms:
            return False
        # With a TTL of 0 it goes when everybody who is ready was asked: at the end of a pump.
        return not self._has_no_time(span.run)

    def due(self, backlog: Backlog, now_ms: int) -> Iterator[Span]:
        """Takes out what has expired, or as much of it as is good for a turn; then makes the next
        appointment."""
        self.is_pressing = False
        left = DUE_AT_ONCE
        for span in self._over(backlog, now_ms):
            yield backlog.empty(span)
            left -= 1
            if not left:
                self._wake()
                return
        if self._heap:
            self._appoint(self._heap[0][0])

    def _over(self, backlog: Backlog, now_ms: int) -> Iterator[Span]:
        """One span after another, by deadline and then as they came, for they are dead letters in
        this order; each must be gone before the next is asked for."""
        levels = backlog.levels()
        while True:
            first = self._top(now_ms)
            for level in levels:
                # What is cold has no deadline.
                head = level.head()
                if isinstance(head, Span) and _is_due(head, now_ms):
                    first = head if first is None else min(first, head, key=_place)
            if first is None:
                break
            if self._heap and self._heap[0][2] is first:
                heappop(self._heap)
            yield first
        for level in levels:
            head = level.head()
            if isinstance(head, Span) and head.run.deadline_ms is not None:
                self._appoint(head.run.deadline_ms)

    def _top(self, now_ms: int) -> Span | None:
        """What is over of those with a time of their own."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            span = heap[0][2]
            # What came back has been given its time anew.
            if span.low < span.high and _is_due(span, now_ms):
                return span
            heappop(heap)
        return None

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


def _is_due(span: Span, now_ms: int) -> bool:
    deadline_ms = span.run.deadline_ms
    return deadline_ms is not None and deadline_ms <= now_ms


def _place(span: Span) -> tuple[int, int]:
    return span.run.deadline_ms or 0, span.sequence
