"""Messages that wait in a queue: new ones in order, returned ones in front of them.

All that was ever delivered is older than what was not, so returned spans, sorted by sequence
number, are served before the ready ones and a requeued message is back at its original place
(AMQP 0-9-1 4.7). Among the ready ones there may be cold stretches, which the store turns into
spans again when they have come to the front. Spans taken out are cut from the front; those that
expire in the middle are emptied and skipped, and removed when they are many.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from ..block import Cold, Run, Span
from ..slices import release

EMPTIED_MAX = 64
"""So many spans without messages may stand among the others."""
STEP_SPANS, STEP_MESSAGES = 32, 2_000
"""What one step of paging out looks at."""
NEWEST_AT_ONCE = 10_000
AHEAD_SPANS = 64
"""Spans that are looked through for cold stretches behind them: this is asked at each pump."""
SMALL_STRETCHES, SMALL_MESSAGES = 8, 256
"""So many stretches with so many messages in all are read together."""


class Backlog:
    """The spans of one queue; `count` messages in all."""

    __slots__ = ("_emptied", "_ready", "_returned", "cold_stretches", "count")

    def __init__(self) -> None:
        self._ready: deque[Span | Cold] = deque()
        self._returned: list[Span] = []  # newest first: the oldest is popped off the end
        self._emptied = 0
        self.count = 0
        self.cold_stretches = 0

    def levels(self) -> Sequence[Backlog]:
        """Backlogs that are in order by themselves: with priorities, one for each."""
        return (self,)

    def append(self, run: Run) -> Span:
        span = Span(run, 0, run.count)
        self._ready.append(span)
        self.count += run.count
        return span

    def put_back(self, span: Span) -> Span:
        """Puts a delivered span back at its place; gives the span that now holds it."""
        returned = self._returned
        self.count += span.high - span.low
        place, sequence = len(returned), span.sequence
        if returned and _newest_first(returned[-1]) >= -sequence:
            place = bisect_left(returned, -sequence, key=_newest_first)
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

    def head(self) -> Span | Cold | None:
        """What holds the oldest message."""
        returned = self._returned
        while returned:
            span = returned[-1]
            if span.low < span.high:
                return span
            returned.pop()
        ready = self._ready
        while ready:
            first = ready[0]
            if first.count:
                return first
            ready.popleft()
            self.cold_stretches -= isinstance(first, Cold)
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
            self._let_go(span)
        self.count -= taken.high - taken.low
        return taken

    def _let_go(self, span: Span) -> None:
        """An emptied span at the front goes at once: it would hold a read's bytes. Those that
        expired behind it go when they are many."""
        returned, ready = self._returned, self._ready
        if returned and returned[-1] is span:
            returned.pop()
        elif ready and ready[0] is span:
            ready.popleft()
        else:
            self._emptied += 1
            if self._emptied > max(EMPTIED_MAX, (len(ready) + len(returned)) // 2):
                self._clear()

    def _clear(self) -> None:
        self._emptied = 0
        self._returned = [span for span in self._returned if span.low < span.high]
        self._ready = deque(
            held for held in self._ready if isinstance(held, Cold) or held.low < held.high
        )

    def empty(self, span: Span) -> Span:
        """Takes all that is left of a span, wherever it stands."""
        return self.take(span, span.high - span.low)

    def __iter__(self) -> Iterator[Span | Cold]:
        yield from (span for span in reversed(self._returned) if span.low < span.high)
        yield from (held for held in self._ready if held.count)

    def release(self) -> Iterator[None]:
        """Frees what it holds, in steps; nobody uses it any more."""
        for level in self.levels():
            yield from release(level._ready, level._ready.pop)
            yield from release(level._returned, level._returned.pop)

    def freeze(self, held: Span | Cold) -> None:
        """Takes in what is known to be in the queue, behind all that is there."""
        self._ready.append(held)
        self.count += held.count
        self.cold_stretches += isinstance(held, Cold)

    def thawed(self, cold: Cold, spans: Sequence[Span]) -> None:
        """The first messages of a stretch are in memory again."""
        ready = self._ready
        place = ready.index(cold)
        self.count -= cold.lost
        cold.lost = 0
        ready.rotate(-place)
        if not cold.count:
            ready.popleft()
            self.cold_stretches -= 1
        ready.extendleft(reversed(spans))
        ready.rotate(place)

    def insert(self, spans: Sequence[Span]) -> None:
        """Takes in messages that follow each other, at their place by number: what came in since a
        start may stand behind it."""
        ready = self._ready
        place = bisect_left(ready, _number(spans[0]), key=_number)
        ready.rotate(-place)
        ready.extendleft(reversed(spans))
        ready.rotate(place)
        self.count += sum(span.count for span in spans)

    def front(self, entries: int) -> Iterator[Span]:
        """The spans among the first entries, up to a cold stretch."""
        for held in islice(chain(reversed(self._returned), self._ready), entries):
            if isinstance(held, Cold):
                return
            if held.low < held.high:
                yield held

    def first_cold(self, *, special: bool = False) -> Cold | None:
        """The first cold stretch, wherever it stands; or the first that is `special`."""
        if not self.cold_stretches:
            return None
        for level in self.levels():
            for held in level._ready:
                if isinstance(held, Cold) and (held.special or not special):
                    return held
        return None

    def cold_within(self, messages: int) -> list[Cold]:
        """The first cold stretch, if it begins among so many messages of the front, and those
        behind it that are small."""
        found: list[Cold] = []
        small = SMALL_MESSAGES
        for held in islice(self._ready, AHEAD_SPANS):
            if isinstance(held, Cold):
                small -= held.count
                if held.count and not (found and small < 0):
                    found.append(held)
                if small <= 0 or len(found) == SMALL_STRETCHES:
                    break
            messages -= held.count
            if messages <= 0:
                break
        return found

    def newest(self) -> Span | None:
        """A span of the last messages, None if they are cold."""
        last = self._ready[-1] if self._ready else None
        return last if isinstance(last, Span) else None

    def chill(
        self, keep: int, freeze: Callable[[Span, Cold | None], Cold | None], *, plain: bool = True
    ) -> Iterator[None]:
        """Lets `freeze` turn spans into cold stretches, all but about `keep` messages at the
        front; in steps, between which the queue may change.

        It is given the stretch that a span follows, if it follows one, and may make that longer.
        In a queue that is not `plain` there are no stretches: the newest messages come first, and
        it ends where a block is not resident, since those before it were let go of earlier.
        """
        return self._chill_all(keep, freeze) if plain else self._evict_newest(keep, freeze)

    def _chill_all(
        self, keep: int, freeze: Callable[[Span, Cold | None], Cold | None]
    ) -> Iterator[None]:
        """From the oldest on: what follows a stretch joins it. `at` entries are behind it; when
        entries come or go at the front meanwhile, a few are passed over or looked at again."""
        ready = self._ready
        at = 0
        for held in ready:
            keep -= held.count
            if keep < 0:
                break
            at += 1
        while at < len(ready):
            at = self._chill_some(at, freeze)
            yield

    def _chill_some(self, at: int, freeze: Callable[[Span, Cold | None], Cold | None]) -> int:
        """Looks at some of the entries from the one at `at` on; gives where to go on."""
        ready = self._ready
        ready.rotate(-at)
        last = ready[-1] if at else None
        before = last if isinstance(last, Cold) and last.count else None
        looked: list[Span | Cold] = []
        messages = 0
        for _ in range(min(STEP_SPANS, len(ready) - at)):
            held = ready.popleft()
            messages += held.count if isinstance(held, Span) else 0
            cold = held if isinstance(held, Cold) else None
            if isinstance(held, Span) and held.count:
                cold = freeze(held, before)
            if cold is None:
                looked.append(held)
            elif cold is not before:
                looked.append(cold)
                self.cold_stretches += cold is not held
            before = cold
            if messages > STEP_MESSAGES:
                break
        ready.extendleft(reversed(looked))
        ready.rotate(at)
        return at + len(looked)

    def _evict_newest(
        self, keep: int, freeze: Callable[[Span, Cold | None], Cold | None]
    ) -> Iterator[None]:
        left = self.count
        for held in self._newest():
            if left <= keep or isinstance(held, Cold):
                return
            if held.count and not held.run.block.resident:
                return
            left -= held.count
            if held.count:
                freeze(held, None)
            yield

    def _newest(self) -> Iterator[Span | Cold]:
        """Spans and stretches from the end on, though others may come in meanwhile."""
        seen = 0
        last: Span | Cold | None = None
        while some := list(islice(reversed(self._ready), seen, seen + NEWEST_AT_ONCE)):
            # Behind those that came in since stands what was seen last, unless it has gone.
            place = next((at for at, held in enumerate(some, 1) if held is last), 0)
            yield from some[place:]
            seen += len(some)
            last = some[-1]


def _number(held: Span | Cold) -> int:
    assert isinstance(held, Span)  # Only the lowest priority has stretches.
    return held.run.sequence(held.low if held.low < held.high else held.high - 1)


def _newest_first(span: Span) -> int:
    return -_number(span)


def _joins(first: Span, second: Span) -> bool:
    return (
        first.run is second.run
        and first.high == second.low
        and first.redelivered == second.redelivered
    )
