"""Counts how often messages are returned to a queue, and delays their redelivery.

For queues with a delivery limit. The count of a message is written to disk when it is returned
(never when it is delivered), so it survives a restart; deliveries carry it as `x-delivery-count`.
In a quorum queue only failures count (reject, the close of a channel), not explicit returns (nack,
recover; RabbitMQ 4.3), and `x-acquired-count` says how often a message was delivered before; in
other queues every return counts (LavinMQ).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count, groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from ..definitions.facts import DeliveryCounts
from ..message.queue_entry import MessageRange, QueueEntry
from .header_rewriting import with_header
from .rules import RetryDelay

if TYPE_CHECKING:
    from ..timers import Timer, Timers
    from .context import QueueContext

COUNT_HEADER: Final = b"x-delivery-count"
ACQUIRED_HEADER: Final = b"x-acquired-count"
_ACQUIRED_BITS: Final = 32
"""Both numbers are stored as one: the acquired count is above the low 32 bits."""


class ReturnCounts(NamedTuple):
    """The returns of a message: as counted for the delivery limit, and in total."""

    counted: int
    total: int


class RedeliveryCounter:
    """Counts of returns by sequence number, for messages that are ready or unacked."""

    __slots__ = ("_acquired", "_counts", "_facts")

    def __init__(
        self, broker: QueueContext, queue_id: int, *, durable: bool, quorum: bool = False
    ) -> None:
        self._facts = DeliveryCounts(broker.facts, queue_id) if durable else None
        stored = {} if self._facts is None else self._facts.load()
        self._counts = {number: value % (1 << _ACQUIRED_BITS) for number, value in stored.items()}
        self._acquired: dict[int, int] | None = None
        if quorum:
            self._acquired = {number: value >> _ACQUIRED_BITS for number, value in stored.items()}

    def count_returns(
        self, messages: MessageRange, *, failed: bool = True
    ) -> Iterator[tuple[MessageRange, ReturnCounts]]:
        """Counts a return of each message; yields ranges of messages with equal counts."""
        entry, low = messages.entry, messages.low
        times = [self._count(entry, at, failed) for at in range(messages.low, messages.high)]
        for each, alike in groupby(times):
            high = low + sum(1 for _ in alike)
            yield MessageRange(entry, low, high, True), each
            low = high

    def split_by_limit(
        self, messages: MessageRange, limit: int, *, failed: bool
    ) -> Iterator[tuple[MessageRange, bool]]:
        """Yields the messages in ranges, each with whether one more return exceeds `limit`."""
        added = failed or self._acquired is None
        entry, low = messages.entry, messages.low
        counts = self._counts
        over = (
            counts.get(entry.sequence(at), 0) + added > limit for at in range(low, messages.high)
        )
        for is_over, alike in groupby(over):
            high = low + sum(1 for _ in alike)
            yield MessageRange(entry, low, high, messages.redelivered), is_over
            low = high

    def _count(self, entry: QueueEntry, position: int, failed: bool) -> ReturnCounts:
        sequence, acquired = entry.sequence(position), self._acquired
        counted = self._counts.get(sequence, 0) + (failed or acquired is None)
        self._counts[sequence] = value = counted
        times = counted
        if acquired is not None:
            times = acquired[sequence] = acquired.get(sequence, 0) + 1
            value |= times << _ACQUIRED_BITS
        if self._facts is not None and entry.batch.attributes.persistent:
            self._facts.store(sequence, value)
        return ReturnCounts(counted, times)

    def forget(self, messages: MessageRange) -> None:
        """Forgets messages that have left the queue."""
        if not self._counts:
            return
        for position in range(messages.low, messages.high):
            sequence = messages.entry.sequence(position)
            if self._counts.pop(sequence, None) is not None and self._facts is not None:
                self._facts.drop(sequence)
            if self._acquired is not None:
                self._acquired.pop(sequence, None)

    def with_headers(self, messages: MessageRange) -> MessageRange:
        """Returns the messages with their counts as headers, if they have any."""
        if not self._counts or not messages.redelivered:
            return messages
        entry = messages.entry
        sequences = [entry.sequence(at) for at in range(messages.low, messages.high)]
        messages = _with(messages, COUNT_HEADER, self._counts, sequences)
        return _with(messages, ACQUIRED_HEADER, self._acquired or {}, sequences)

    def end(self) -> None:
        """Forgets all counts: the queue does not count any more."""
        if self._facts is not None:
            for sequence in self._counts:
                self._facts.drop(sequence)
        self._counts.clear()
        if self._acquired is not None:
            self._acquired.clear()


def _with(
    messages: MessageRange, header: bytes, numbers: dict[int, int], sequences: list[int]
) -> MessageRange:
    values = [numbers.get(sequence) or None for sequence in sequences]
    return with_header(messages, header, values) if any(values) else messages


class DelayedRetries:
    """Returned messages that wait before they are redelivered (x-delayed-retry-type)."""

    __slots__ = ("_heap", "_order", "_put_back", "_timer", "_timers")

    def __init__(self, timers: Timers, put_back: Callable[[MessageRange], None]) -> None:
        self._timers = timers
        self._put_back = put_back
        self._heap: list[tuple[int, int, MessageRange]] = []
        self._order = count()
        self._timer: Timer | None = None

    def add(self, messages: MessageRange, delay: RetryDelay, times: int, now_ms: int) -> None:
        due_ms = now_ms + min(delay.min_ms * times, delay.max_ms)
        heappush(self._heap, (due_ms, next(self._order), messages))
        self._set_timer()

    def end(self) -> None:
        """Forgets the messages of a deleted queue."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        due_ms = self._heap[0][0]
        timer = self._timer
        if timer is not None:
            if timer.action is not None and timer.at_ms <= due_ms:
                return
            timer.cancel()
        self._timer = self._timers.at(due_ms, lambda: self._wake(due_ms))

    def _wake(self, now_ms: int) -> None:
        self._timer = None
        while self._heap and self._heap[0][0] <= now_ms:
            self._put_back(heappop(self._heap)[2])
        if self._heap:
            self._set_timer()
