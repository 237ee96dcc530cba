"""x-max-priority: a backlog for each priority, the highest first.

Levels come with their messages, and empty ones go when there are many. A priority above the
queue's highest counts as that one, and no priority as 0 (RabbitMQ).

What an earlier process left is read when the server serves already. Until all of it is sorted that
may have a priority, its ranges are the head, and nothing goes out: the next message may be among
them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from ..message.batch import MessageRange, PagedOut, QueueEntry
from ..wire.properties import RANKED
from .backlog import SMALL_RANGES, Backlog

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
        self._unsorted: deque[PagedOut] = deque()
        """Ranges of the lowest level among which there may be messages of others."""

    def _level(self, entry: QueueEntry) -> Backlog:
        return self._of(min(entry.batch.attributes.priority, self._highest))

    def _of(self, priority: int) -> Backlog:
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = Backlog()
            self._order = sorted(self._levels, reverse=True)
        return level

    def levels(self) -> Sequence[Backlog]:
        return [self._levels[priority] for priority in self._order]

    def append(self, entry: QueueEntry) -> MessageRange:
        self.count += entry.count
        return self._level(entry).append(entry)

    def requeue(self, messages: MessageRange) -> MessageRange:
        self.count += messages.high - messages.low
        return self._level(messages.entry).requeue(messages)

    def head(self) -> MessageRange | PagedOut | None:
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

    def take(self, messages: MessageRange, limit: int) -> MessageRange:
        taken = self._level(messages.entry).take(messages, limit)
        self.count -= taken.high - taken.low
        return taken

    def __iter__(self) -> Iterator[MessageRange | PagedOut]:
        for level in self.levels():
            yield from level

    def append_range(self, held: MessageRange | PagedOut) -> None:
        """A paged-out range has no message with a priority, unless a start says so of it."""
        if isinstance(held, PagedOut) and held.special & RANKED:
            self._unsorted.append(held)
        self.count += held.count
        self.paged_out_ranges += isinstance(held, PagedOut)
        level = self._of(0) if isinstance(held, PagedOut) else self._level(held.entry)
        level.append_range(held)

    def paged_in(self, paged_out: PagedOut, ranges: Sequence[MessageRange]) -> None:
        level = self._of(0)
        locations = level.paged_out_ranges
        self.count -= paged_out.lost
        level.paged_in(paged_out, self._sorted(ranges) if paged_out.special & RANKED else ranges)
        self.paged_out_ranges += level.paged_out_ranges - locations

    def _sorted(self, ranges: Sequence[MessageRange]) -> Sequence[MessageRange]:
        """Puts ranges of the lowest level that have a priority where they belong; gives the
        rest."""
        lowest = self._of(0)
        found: dict[Backlog, list[MessageRange]] = {lowest: []}
        for messages in ranges:
            found.setdefault(self._level(messages.entry), []).append(messages)
        left = found.pop(lowest)
        for level, moved in found.items():
            level.insert(moved)
            lowest.count -= sum(messages.count for messages in moved)
        return left

    def front(self, entries: int) -> Iterator[MessageRange]:
        """As above, of each priority; no more ranges than that in all."""
        return islice(chain.from_iterable(level.front(entries) for level in self.levels()), entries)

    def paged_out_within(self, messages: int) -> list[PagedOut]:
        if self._unsorted:
            return [
                paged_out for paged_out in islice(self._unsorted, SMALL_RANGES) if paged_out.count
            ]
        for level in self.levels():
            found = level.paged_out_within(messages)
            messages -= level.count
            if found or messages <= 0:
                return found
        return []

    def newest(self) -> MessageRange | None:
        for priority in reversed(self._order):
            level = self._levels[priority]
            if level.count:
                return level.newest()
        return None

    def page_out(
        self,
        keep: int,
        freeze: Callable[[MessageRange, PagedOut | None], PagedOut | None],
        *,
        plain: bool = True,
    ) -> Iterator[None]:
        """The lowest priority first; the store makes no range of what has one."""
        above = self.count
        for priority in list(reversed(self._order)):
            level = self._levels.get(priority)
            if level is None:
                continue
            above -= level.count
            steps = level.page_out(max(0, keep - above), freeze, plain=plain and priority == 0)
            while self._counted(level, steps):
                yield

    def _counted(self, level: Backlog, steps: Iterator[None]) -> bool:
        """Takes a step, and notes the ranges that it has made; False if there is none."""
        locations = level.paged_out_ranges
        more = next(steps, _END) is not _END
        self.paged_out_ranges += level.paged_out_ranges - locations
        return more
