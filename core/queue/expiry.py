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

from ..message.batch import MessageRange, QueueEntry
from .backlog import Backlog

if TYPE_CHECKING:
    from ..timers import Timer, Timers

_CLEAR_MIN = 64
"""Fewer are not worth looking through."""
DUE_AT_ONCE = 1_000
"""Ranges that are let go of in one turn, about 2 ms."""


class _Time(Protocol):
    timers: Timers
    now_ms: int


class Expiry:
    """What in one queue expires, and when to look again; `wake` has the queue dispatched."""

    __slots__ = (
        "_clear_at", "_heap", "_order", "_retimed", "_time", "_timer", "_ttl_ms", "_wake",
        "is_pressing",
    )  # fmt: skip

    def __init__(self, time: _Time, wake: Callable[[], None], ttl_ms: int | None) -> None:
        self._time = time
        self._wake = wake
        self._ttl_ms = ttl_ms
        self._heap: list[tuple[int, int, MessageRange]] = []
        self._order = count()
        self._clear_at = _CLEAR_MIN
        self._timer: Timer | None = None
        self._retimed = False
        """What is out may have been given its time by another TTL."""
        self.is_pressing = False
        """Something with a TTL of 0 came back: it goes out in the next dispatch, or not at all."""

    def set_deadline(self, messages: MessageRange, *, recovered: bool = False) -> None:
        """Fixes the deadline of an entry that has just come in, or had before a restart.

        The clock may have been set meanwhile, so a recovered one has at most all of its time left.
        """
        entry = messages.entry
        text = entry.batch.attributes.expiration
        ttl_ms = self._ttl_ms
        if text is not None:
            own_ms = int(text)
            ttl_ms = own_ms if ttl_ms is None else min(own_ms, ttl_ms)
        if ttl_ms is None:
            return
        now_ms = self._time.now_ms
        came_ms = min(entry.batch.arrived_ms, now_ms) if recovered else now_ms
        entry.deadline_ms = came_ms + ttl_ms
        self._note(messages, entry.deadline_ms)

    def requeued(self, messages: MessageRange) -> None:
        """A range has come back; its deadline is the one that it had."""
        if self._retimed:
            messages.entry.deadline_ms = None
            self.set_deadline(messages, recovered=True)
        deadline_ms = messages.entry.deadline_ms
        if deadline_ms is None:
            return
        if self._has_no_time(messages.entry):
            deadline_ms = messages.entry.deadline_ms = self._time.now_ms
            self.is_pressing = True
        self._note(messages, deadline_ms)

    def _has_no_time(self, entry: QueueEntry) -> bool:
        """Whether its TTL is 0."""
        text = entry.batch.attributes.expiration
        return self._ttl_ms == 0 or (text is not None and int(text) == 0)

    def _note(self, messages: MessageRange, deadline_ms: int) -> None:
        if messages.entry.batch.attributes.expiration is not None:
            if len(self._heap) >= self._clear_at:
                self._clear()
            heappush(self._heap, (deadline_ms, next(self._order), messages))
        self._set_timer(deadline_ms)

    def _clear(self) -> None:
        """Keeps each range that still holds messages, once."""
        held = {item[2]: item for item in self._heap if item[2].low < item[2].high}
        self._heap = list(held.values())
        heapify(self._heap)
        self._clear_at = max(_CLEAR_MIN, 2 * len(self._heap))

    def reset_deadlines(self, backlog: Backlog, ttl_ms: int | None) -> None:
        """The queue's TTL is another one now, also for what is in it."""
        self._ttl_ms = ttl_ms
        self._retimed = True
        self.forget()
        for messages in backlog:
            if isinstance(messages, MessageRange):
                messages.entry.deadline_ms = None
                self.set_deadline(messages, recovered=True)

    def forget(self) -> None:
        """The queue has been emptied: there is nothing to wait for."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()

    def is_expired(self, messages: MessageRange) -> bool:
        """True if it must not be delivered any more.

        At the very millisecond of its deadline it may: a TTL of 0 means "to a consumer that is
        ready now, or not at all".
        """
        deadline_ms = messages.entry.deadline_ms
        if deadline_ms is None or deadline_ms >= self._time.now_ms:
            return False
        # With a TTL of 0 it goes when everybody who is ready was asked: at the end of a dispatch.
        return not self._has_no_time(messages.entry)

    def due(self, backlog: Backlog, now_ms: int) -> Iterator[MessageRange]:
        """Takes out what has expired, or as much of it as is good for a turn; then makes the next
        appointment."""
        self.is_pressing = False
        left = DUE_AT_ONCE
        for messages in self._expired(backlog, now_ms):
            yield backlog.empty(messages)
            left -= 1
            if not left:
                self._wake()
                return
        if self._heap:
            self._set_timer(self._heap[0][0])

    def _expired(self, backlog: Backlog, now_ms: int) -> Iterator[MessageRange]:
        """One range after another, by deadline and then as they came, for they are dead letters in
        this order; each must be gone before the next is asked for."""
        levels = backlog.levels()
        while True:
            first = self._next_own_deadline(now_ms)
            for level in levels:
                # What is paged out has no deadline.
                head = level.head()
                if isinstance(head, MessageRange) and _is_due(head, now_ms):
                    first = head if first is None else min(first, head, key=_place)
            if first is None:
                break
            if self._heap and self._heap[0][2] is first:
                heappop(self._heap)
            yield first
        for level in levels:
            head = level.head()
            if isinstance(head, MessageRange) and head.entry.deadline_ms is not None:
                self._set_timer(head.entry.deadline_ms)

    def _next_own_deadline(self, now_ms: int) -> MessageRange | None:
        """What is over of those with a time of their own."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            messages = heap[0][2]
            # What came back has been given its time anew.
            if messages.low < messages.high and _is_due(messages, now_ms):
                return messages
            heappop(heap)
        return None

    def _set_timer(self, at_ms: int) -> None:
        timer = self._timer
        if timer is not None and timer.action is not None and timer.at_ms <= at_ms:
            return
        if timer is not None:
            timer.cancel()
        self._timer = self._time.timers.at(at_ms, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._wake()


def _is_due(messages: MessageRange, now_ms: int) -> bool:
    deadline_ms = messages.entry.deadline_ms
    return deadline_ms is not None and deadline_ms <= now_ms


def _place(messages: MessageRange) -> tuple[int, int]:
    return messages.entry.deadline_ms or 0, messages.sequence
