"""x-max-priority: a backlog for each priority, the highest first.

Levels come with their messages, and empty ones go when there are many. A priority above the
queue's highest counts as that one, and no priority as 0 (RabbitMQ).

What an earlier process left is read when the server serves already. Until all of it is sorted that
may have a priority, its stretches are the head, and nothing goes out: the next message may be among
them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from ..block import Cold, Run, Span
from ..wire.properties import RANKED
from .ready import SMALL_STRETCHES, Backlog

_END = object()
LEVELS_MANY = 32
"""So many empty ones may be asked for the next message."""


class PriorityBacklog(Backlog):
    """As `Backlog`, by priorities 0 to `highest`. A requeued message goes back to its place among
    those of its priority."""

    __slots__ = ("_highest", "_levels", "_order", "_unsorted")

    def __init__(self, highest: int) -> None:
        super().__init__()
        self._highest = highest
        self._levels: dict[int, Backlog] = {}
        self._order: list[int] = []
        self._unsorted: deque[Cold] = deque()
        """Stretches of the lowest level among which there may be messages of others."""

    def _level(self, run: Run) -> Backlog:
        return self._of(min(run.block.traits.priority, self._highest))

    def _of(self, priority: int) -> Backlog:
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = Backlog()
            self._order = sorted(self._levels, reverse=True)
        return level

    def levels(self) -> Sequence[Backlog]:
        return [self._levels[priority] for priority in self._order]

    def append(self, run: Run) -> Span:
        self.count += run.count
        return self._level(run).append(run)

    def put_back(self, span: Span) -> Span:
        self.count += span.high - span.low
        return self._level(span.run).put_back(span)

    def head(self) -> Span | Cold | None:
        while self._unsorted:
            if self._unsorted[0].count:
                return self._unsorted[0]
            self._unsorted.popleft()
        for empty, priority in enumerate(self._order):
            level = self._levels[priority]
            if level.count:
                if empty > LEVELS_MANY:
                    self._drop(self._order[:empty])
                return level.head()
        return None

    def _drop(self, priorities: Sequence[int]) -> None:
        for priority in priorities:
            del self._levels[priority]
        self._order = self._order[len(priorities) :]

    def take(self, span: Span, limit: int) -> Span:
        taken = self._level(span.run).take(span, limit)
        self.count -= taken.high - taken.low
        return taken

    def __iter__(self) -> Iterator[Span | Cold]:
        for level in self.levels():
            yield from level

    def freeze(self, held: Span | Cold) -> None:
        """A cold stretch has no message with a priority, unless a start says so of it."""
        if isinstance(held, Cold) and held.special & RANKED:
            self._unsorted.append(held)
        self.count += held.count
        self.cold_stretches += isinstance(held, Cold)
        level = self._of(0) if isinstance(held, Cold) else self._level(held.run)
        level.freeze(held)

    def thawed(self, cold: Cold, spans: Sequence[Span]) -> None:
        level = self._of(0)
        stretches = level.cold_stretches
        self.count -= cold.lost
        level.thawed(cold, self._sorted(spans) if cold.special & RANKED else spans)
        self.cold_stretches += level.cold_stretches - stretches

    def _sorted(self, spans: Sequence[Span]) -> Sequence[Span]:
        """Puts spans of the lowest level that have a priority where they belong; gives the rest."""
        lowest = self._of(0)
        found: dict[Backlog, list[Span]] = {lowest: []}
        for span in spans:
            found.setdefault(self._level(span.run), []).append(span)
        left = found.pop(lowest)
        for level, moved in found.items():
            level.insert(moved)
            lowest.count -= sum(span.count for span in moved)
        return left

    def front(self, entries: int) -> Iterator[Span]:
        """As above, of each priority; no more spans than that in all."""
        return islice(chain.from_iterable(level.front(entries) for level in self.levels()), entries)

    def cold_within(self, messages: int) -> list[Cold]:
        if self._unsorted:
            return [cold for cold in islice(self._unsorted, SMALL_STRETCHES) if cold.count]
        for level in self.levels():
            found = level.cold_within(messages)
            messages -= level.count
            if found or messages <= 0:
                return found
        return []

    def newest(self) -> Span | None:
        for priority in reversed(self._order):
            level = self._levels[priority]
            if level.count:
                return level.newest()
        return None

    def chill(
        self, keep: int, freeze: Callable[[Span, Cold | None], Cold | None], *, plain: bool = True
    ) -> Iterator[None]:
        """The lowest priority first; the store makes no stretch of what has one."""
        above = self.count
        for priority in list(reversed(self._order)):
            level = self._levels.get(priority)
            if level is None:
                continue
            above -= level.count
            steps = level.chill(max(0, keep - above), freeze, plain=plain and priority == 0)
            while self._counted(level, steps):
                yield

    def _counted(self, level: Backlog, steps: Iterator[None]) -> bool:
        """Takes a step, and notes the stretches that it has made; False if there is none."""
        stretches = level.cold_stretches
        more = next(steps, _END) is not _END
        self.cold_stretches += level.cold_stretches - stretches
        return more
