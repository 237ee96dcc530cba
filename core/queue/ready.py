"""Messages that wait in a queue: new ones in order, returned ones in front of them.

All that was ever delivered is older than what was not, so returned spans, sorted by sequence
number, are served before the ready ones and a requeued message is back at its original place
(AMQP 0-9-1 4.7). Spans taken out are cut from the front; nothing is ever removed from the
middle, expired spans are emptied and skipped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator

from ..block import Run, Span


class Backlog:
    """The spans of one queue; `count` messages in all."""

    __slots__ = ("_ready", "_returned", "count")

    def __init__(self) -> None:
        self._ready: deque[Span] = deque()
        self._returned: list[Span] = []  # newest first: the oldest is popped off the end
        self.count = 0

    def append(self, run: Run) -> Span:
        span = Span(run, 0, run.count)
        self._ready.append(span)
        self.count += run.count
        return span

    def put_back(self, span: Span) -> Span:
        """Puts a delivered span back at its place; gives the span that now holds it."""
        returned = self._returned
        self.count += span.high - span.low
        place = bisect_left(returned, -span.sequence, key=_newest_first)
        if place < len(returned) and _joins(returned[place], span):
            older = returned[place]
            older.high = span.high
            return older
        if place and _joins(span, returned[place - 1]):
            newer = returned[place - 1]
            newer.low = span.low
            return newer
        returned.insert(place, span)
        return span

    def head(self) -> Span | None:
        """The span whose first message is the oldest."""
        returned = self._returned
        while returned:
            span = returned[-1]
            if span.low < span.high:
                return span
            returned.pop()
        ready = self._ready
        while ready:
            span = ready[0]
            if span.low < span.high:
                return span
            ready.popleft()
        return None

    def take(self, span: Span, limit: int) -> Span:
        """Cuts up to `limit` messages from the front of `head()`'s answer."""
        available = span.high - span.low
        if available > limit:
            taken = Span(span.run, span.low, span.low + limit, span.redelivered)
            span.low += limit
        else:
            taken = Span(span.run, span.low, span.high, span.redelivered)
            span.low = span.high
        self.count -= taken.high - taken.low
        return taken

    def empty(self, span: Span) -> Span:
        """Takes all that is left of a span, wherever it stands."""
        return self.take(span, span.high - span.low)

    def __iter__(self) -> Iterator[Span]:
        yield from (span for span in reversed(self._returned) if span.low < span.high)
        yield from (span for span in self._ready if span.low < span.high)


def _newest_first(span: Span) -> int:
    return -span.run.sequence(span.low if span.low < span.high else span.high - 1)


def _joins(first: Span, second: Span) -> bool:
    return (
        first.run is second.run
        and first.high == second.low
        and first.redelivered == second.redelivered
    )
