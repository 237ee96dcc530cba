"""Message expiry, by the queue's TTL and by the `expiration` of each message.

Deadlines are monotonic milliseconds, set when the message enters the queue; requeueing keeps them.
Under the queue's TTL alone older messages expire first, so only the head is checked. Messages with
an `expiration` may expire earlier, so their ranges are in a heap too. They stay in it when they are
delivered, and are removed when the heap has doubled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol

from ..message.queue_entry import MessageRange, QueueEntry
from .backlog import Backlog

if TYPE_CHECKING:
    from ..timers import Timer, Timers

_CLEAR_MIN: Final = 64
"""The heap is not cleaned below this size."""
DUE_AT_ONCE: Final = 1_000
"""Ranges expired in one turn, about 2 ms."""


class _Time(Protocol):
    timers: Timers
    now_ms: int


class Expiry:
    """The deadlines of one queue's messages; `wake` has the queue dispatched when one passes."""

    __slots__ = (
        "_clear_at", "_heap", "_order", "_retimed", "_time", "_timer", "_ttl_ms", "_wake",
        "zero_ttl_requeued",
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
        """Whether unacked messages may have a deadline of an earlier TTL."""
        self.zero_ttl_requeued = False
        """A message with a TTL of 0 was requeued: the next dispatch delivers or expires it."""

    def set_deadline(self, messages: MessageRange, *, recovered: bool = False) -> None:
        """Sets the deadline of an entry that was just enqueued, or recovered after a restart.

        The clock may have been set meanwhile, so at most the whole TTL is left after a restart.
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
        """Watches a requeued range again, with the deadline that it had."""
        if self._retimed:
            messages.entry.deadline_ms = None
            self.set_deadline(messages, recovered=True)
        deadline_ms = messages.entry.deadline_ms
        if deadline_ms is None:
            return
        if self._has_no_time(messages.entry):
            deadline_ms = messages.entry.deadline_ms = self._time.now_ms
            self.zero_ttl_requeued = True
        self._note(messages, deadline_ms)

    def _has_no_time(self, entry: QueueEntry) -> bool:
        """Returns whether the TTL is 0."""
        text = entry.batch.attributes.expiration
        return self._ttl_ms == 0 or (text is not None and int(text) == 0)

    def _note(self, messages: MessageRange, deadline_ms: int) -> None:
        if messages.entry.batch.attributes.expiration is not None:
            if len(self._heap) >= self._clear_at:
                self._clear()
            heappush(self._heap, (deadline_ms, next(self._order), messages))
        self._set_timer(deadline_ms)

    def _clear(self) -> None:
        """Rebuilds the heap with each range that still has messages, once."""
        latest = {item[2]: item for item in self._heap if item[2].low < item[2].high}
        self._heap = list(latest.values())
        heapify(self._heap)
        self._clear_at = max(_CLEAR_MIN, 2 * len(self._heap))

    def reset_deadlines(self, backlog: Backlog, ttl_ms: int | None) -> None:
        """Applies another TTL of the queue, also to the messages in it."""
        self._ttl_ms = ttl_ms
        self._retimed = True
        self.forget()
        for messages in backlog:
            if isinstance(messages, MessageRange):
                messages.entry.deadline_ms = None
                self.set_deadline(messages, recovered=True)

    def forget(self) -> None:
        """Forgets all deadlines, of a queue that was emptied."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()

    def is_expired(self, messages: MessageRange) -> bool:
        """Returns whether a range must not be delivered any more.

        It may be in the very millisecond of its deadline: a TTL of 0 means "to a consumer that is
        ready now, or not at all".
        """
        deadline_ms = messages.entry.deadline_ms
        if deadline_ms is None or deadline_ms >= self._time.now_ms:
            return False
        # With a TTL of 0 it expires at the end of a dispatch, when no ready consumer took it.
        return not self._has_no_time(messages.entry)

    def due(self, backlog: Backlog, now_ms: int) -> Iterator[MessageRange]:
        """Removes and yields expired ranges, at most `DUE_AT_ONCE`; then sets the timer for the
        next deadline."""
        self.zero_ttl_requeued = False
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
        """Yields expired ranges by deadline and then by arrival, the order in which they are
        dead-lettered; each must be removed before the next is requested."""
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
        """Returns the first expired range among those with an `expiration`."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            messages = heap[0][2]
            # Requeued messages may have got a new deadline.
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
