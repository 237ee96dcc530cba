"""x-max-priority: a backlog for each priority, served from the highest to the lowest.

Levels are created with their first message, and empty ones are removed when there are many. A
priority above the queue's highest counts as that one, and no priority as 0 (RabbitMQ).

Recovered messages are read while the server is already serving. Until all that may have a priority
are sorted, their paged-out ranges are the head and nothing is delivered, since the next message may
be among them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from ..wire.properties import RANKED
from .backlog import SMALL_RANGES, Backlog, PageOutRange

_END: Final = object()
LEVELS_MANY: Final = 32
"""Empty levels that are skipped before they are removed."""


class PriorityBacklog(Backlog):
    """A backlog with priorities 0 to `highest`; a requeued message returns to its position among
    those of its priority."""

    __slots__ = ("_highest", "_levels", "_order", "_unsorted")

    def __init__(self, highest: int) -> None:
        super().__init__()
        self._highest = highest
        self._levels: dict[int, Backlog] = {}
        self._order: list[int] = []
        self._unsorted: deque[PagedOut] = deque()
        """Paged-out ranges of the lowest level that may have messages of other priorities."""

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

    def append_range(self, part: MessageRange | PagedOut) -> None:
        """Appends a range; a paged-out one has no message with a priority unless recovery marks it
        as `RANKED`."""
        if isinstance(part, PagedOut) and part.special & RANKED:
            self._unsorted.append(part)
        self.count += part.count
        self.paged_out_ranges += isinstance(part, PagedOut)
        level = self._of(0) if isinstance(part, PagedOut) else self._level(part.entry)
        level.append_range(part)

    def paged_in(self, paged_out: PagedOut, ranges: Sequence[MessageRange]) -> None:
        level = self._of(0)
        locations = level.paged_out_ranges
        self.count -= paged_out.lost
        level.paged_in(paged_out, self._sorted(ranges) if paged_out.special & RANKED else ranges)
        self.paged_out_ranges += level.paged_out_ranges - locations

    def _sorted(self, ranges: Sequence[MessageRange]) -> Sequence[MessageRange]:
        """Moves ranges that have a priority from the lowest level to theirs; returns the rest."""
        lowest = self._of(0)
        found: dict[Backlog, list[MessageRange]] = {lowest: []}
        for messages in ranges:
            found.setdefault(self._level(messages.entry), []).append(messages)
        rest = found.pop(lowest)
        for level, of_level in found.items():
            level.insert(of_level)
            lowest.count -= sum(messages.count for messages in of_level)
        return rest

    def front(self, entries: int) -> Iterator[MessageRange]:
        """As in the base, for each priority; at most `entries` ranges in all."""
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
        page_out_range: PageOutRange,
        *,
        plain: bool = True,
    ) -> Iterator[None]:
        """As in the base, the lowest priority first; messages with a priority are only evicted."""
        above = self.count
        for priority in list(reversed(self._order)):
            level = self._levels.get(priority)
            if level is None:
                continue
            above -= level.count
            steps = level.page_out(
                max(0, keep - above), page_out_range, plain=plain and priority == 0
            )
            while self._counted(level, steps):
                yield

    def _counted(self, level: Backlog, steps: Iterator[None]) -> bool:
        """Takes a step and counts the paged-out ranges that it creates; False at the end."""
        locations = level.paged_out_ranges
        more = next(steps, _END) is not _END
        self.paged_out_ranges += level.paged_out_ranges - locations
        return more
