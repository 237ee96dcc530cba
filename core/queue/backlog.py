"""The ready messages of a queue: new ones in order of arrival, requeued ones before them.

All messages that were delivered are older than those that were not, so requeued ranges, sorted by
sequence number, are served first, and a requeued message is at its original position again (AMQP
0-9-1 4.7). Among the others there may be paged-out ranges, which the store reads when they come to
the front. Messages are removed from the front; ranges that expire in the middle are emptied and
skipped, and removed when they are many.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Final

from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from ..slices import release

EMPTIED_MAX: Final = 64
"""Empty ranges kept among the others before they are removed."""
STEP_RANGES, STEP_MESSAGES = 32, 2_000
"""Limits of one step of paging out."""
NEWEST_AT_ONCE: Final = 10_000
AHEAD_RANGES: Final = 64
"""Ranges at the front that each dispatch searches for paged-out ranges."""
SMALL_RANGES, SMALL_MESSAGES = 8, 256
"""Limits of the paged-out ranges that are read together: ranges, and messages in all."""


PageOutRange = Callable[[MessageRange, PagedOut | None], PagedOut | None]
"""Pages out a range, also by extending the paged-out range before it, if there is one; returns the
paged-out range, or None if it made none."""


class Backlog:
    """The ranges of one queue, with `count` messages in all."""

    __slots__ = ("_emptied", "_ready", "_returned", "count", "paged_out_ranges")

    def __init__(self) -> None:
        self._ready: deque[MessageRange | PagedOut] = deque()
        self._returned: list[MessageRange] = []  # newest first: the oldest is popped off the end
        self._emptied = 0
        self.count = 0
        self.paged_out_ranges = 0

    def levels(self) -> Sequence[Backlog]:
        """Returns the backlogs that are in order by themselves: with priorities, one for each."""
        return (self,)

    def append(self, entry: QueueEntry) -> MessageRange:
        messages = MessageRange(entry, 0, entry.count)
        self._ready.append(messages)
        self.count += entry.count
        return messages

    def requeue(self, messages: MessageRange) -> MessageRange:
        """Puts a delivered range back at its position; returns the range that it is part of now."""
        returned = self._returned
        self.count += messages.high - messages.low
        index, sequence = len(returned), messages.sequence
        if returned and _newest_first(returned[-1]) >= -sequence:
            index = bisect_left(returned, -sequence, key=_newest_first)
        if index < len(returned) and _is_adjacent(returned[index], messages):
            older = returned[index]
            older.high = messages.high
            return older
        if index and _is_adjacent(messages, returned[index - 1]):
            newer = returned[index - 1]
            newer.low = messages.low
            return newer
        returned.insert(index, messages)
        return messages

    def head(self) -> MessageRange | PagedOut | None:
        """Returns the range with the oldest message, None if there are no messages."""
        returned = self._returned
        while returned:
            messages = returned[-1]
            if messages.low < messages.high:
                return messages
            returned.pop()
        ready = self._ready
        while ready:
            first = ready[0]
            if first.count:
                return first
            ready.popleft()
            self.paged_out_ranges -= isinstance(first, PagedOut)
        return None

    def take(self, messages: MessageRange, limit: int) -> MessageRange:
        """Removes up to `limit` messages from the front of the range that `head` has returned."""
        available = messages.high - messages.low
        if available > limit:
            taken = MessageRange(
                messages.entry, messages.low, messages.low + limit, messages.redelivered
            )
            messages.low += limit
        else:
            taken = MessageRange(messages.entry, messages.low, messages.high, messages.redelivered)
            messages.low = messages.high
            self._remove_empty(messages)
        self.count -= taken.high - taken.low
        return taken

    def _remove_empty(self, messages: MessageRange) -> None:
        """Removes an empty range: at the front at once, since it refers to the bytes of a batch;
        elsewhere when there are many."""
        returned, ready = self._returned, self._ready
        if returned and returned[-1] is messages:
            returned.pop()
        elif ready and ready[0] is messages:
            ready.popleft()
        else:
            self._emptied += 1
            if self._emptied > max(EMPTIED_MAX, (len(ready) + len(returned)) // 2):
                self._clear()

    def _clear(self) -> None:
        self._emptied = 0
        self._returned = [messages for messages in self._returned if messages.low < messages.high]
        self._ready = deque(
            part for part in self._ready if isinstance(part, PagedOut) or part.low < part.high
        )

    def empty(self, messages: MessageRange) -> MessageRange:
        """Removes all messages of a range, wherever it is in the backlog."""
        return self.take(messages, messages.high - messages.low)

    def __iter__(self) -> Iterator[MessageRange | PagedOut]:
        yield from (
            messages for messages in reversed(self._returned) if messages.low < messages.high
        )
        yield from (part for part in self._ready if part.count)

    def parts(self) -> list[MessageRange | PagedOut]:
        """Returns all ranges in order, also empty ones; cheaper than an iteration."""
        found: list[MessageRange | PagedOut] = []
        for level in self.levels():
            found += reversed(level._returned)
            found += level._ready
        return found

    def release(self) -> Iterator[None]:
        """Frees all ranges, in steps; the backlog is not used any more."""
        for level in self.levels():
            yield from release(level._ready, level._ready.pop)
            yield from release(level._returned, level._returned.pop)

    def append_range(self, part: MessageRange | PagedOut) -> None:
        """Appends a recovered or delayed range behind all others."""
        self._ready.append(part)
        self.count += part.count
        self.paged_out_ranges += isinstance(part, PagedOut)

    def paged_in(self, paged_out: PagedOut, ranges: Sequence[MessageRange]) -> None:
        """Inserts the first messages of a paged-out range, just read, in front of what is left of
        it."""
        ready = self._ready
        index = ready.index(paged_out)
        self.count -= paged_out.lost
        paged_out.lost = 0
        ready.rotate(-index)
        if not paged_out.count:
            ready.popleft()
            self.paged_out_ranges -= 1
        ready.extendleft(reversed(ranges))
        ready.rotate(index)

    def insert(self, ranges: Sequence[MessageRange]) -> None:
        """Inserts consecutive ranges at their position by sequence number: messages that arrived
        since the start may be behind them."""
        ready = self._ready
        index = bisect_left(ready, _sequence(ranges[0]), key=_sequence)
        ready.rotate(-index)
        ready.extendleft(reversed(ranges))
        ready.rotate(index)
        self.count += sum(messages.count for messages in ranges)

    def front(self, entries: int) -> Iterator[MessageRange]:
        """Yields the ranges among the first `entries`, up to a paged-out range."""
        for part in islice(chain(reversed(self._returned), self._ready), entries):
            if isinstance(part, PagedOut):
                return
            if part.low < part.high:
                yield part

    def first_paged_out(self, *, special: bool = False) -> PagedOut | None:
        """Returns the first paged-out range, or the first that is `special`; None if there is
        none."""
        if not self.paged_out_ranges:
            return None
        for level in self.levels():
            for part in level._ready:
                if isinstance(part, PagedOut) and (part.special or not special):
                    return part
        return None

    def paged_out_within(self, messages: int) -> list[PagedOut]:
        """Returns the first paged-out range if it begins within the first `messages`, and the small
        ones that follow it."""
        found: list[PagedOut] = []
        small = SMALL_MESSAGES
        for part in islice(self._ready, AHEAD_RANGES):
            if isinstance(part, PagedOut):
                small -= part.count
                if part.count and not (found and small < 0):
                    found.append(part)
                if small <= 0 or len(found) == SMALL_RANGES:
                    break
            messages -= part.count
            if messages <= 0:
                break
        return found

    def newest(self) -> MessageRange | None:
        """Returns the last range, None if it is paged out."""
        last = self._ready[-1] if self._ready else None
        return last if isinstance(last, MessageRange) else None

    def page_out(
        self,
        keep: int,
        page_out_range: PageOutRange,
        *,
        plain: bool = True,
    ) -> Iterator[None]:
        """Pages out all but about `keep` messages at the front; in steps, between which the queue
        may change.

        If not `plain`, messages are only evicted, the newest first, until a batch is not resident:
        those before it were evicted earlier.
        """
        return (
            self._page_out_all(keep, page_out_range)
            if plain
            else self._evict_newest(keep, page_out_range)
        )

    def _page_out_all(self, keep: int, page_out_range: PageOutRange) -> Iterator[None]:
        """Pages out from the oldest range on. `at` ranges are done; when ranges are added or
        removed at the front meanwhile, a few are skipped or visited again."""
        ready = self._ready
        at = 0
        for part in ready:
            keep -= part.count
            if keep < 0:
                break
            at += 1
        while at < len(ready):
            at = self._page_out_some(at, page_out_range)
            yield

    def _page_out_some(self, at: int, page_out_range: PageOutRange) -> int:
        """Pages out some ranges from position `at` on; returns the next position."""
        ready = self._ready
        ready.rotate(-at)
        last = ready[-1] if at else None
        before = last if isinstance(last, PagedOut) and last.count else None
        visited: list[MessageRange | PagedOut] = []
        messages = 0
        for _ in range(min(STEP_RANGES, len(ready) - at)):
            part = ready.popleft()
            messages += part.count if isinstance(part, MessageRange) else 0
            paged_out = part if isinstance(part, PagedOut) else None
            if isinstance(part, MessageRange) and part.count:
                paged_out = page_out_range(part, before)
            if paged_out is None:
                visited.append(part)
            elif paged_out is not before:
                visited.append(paged_out)
                self.paged_out_ranges += paged_out is not part
            before = paged_out
            if messages > STEP_MESSAGES:
                break
        ready.extendleft(reversed(visited))
        ready.rotate(at)
        return at + len(visited)

    def _evict_newest(self, keep: int, page_out_range: PageOutRange) -> Iterator[None]:
        left = self.count
        for part in self._newest():
            if left <= keep or isinstance(part, PagedOut):
                return
            if part.count and not part.entry.batch.resident:
                return
            left -= part.count
            if part.count:
                page_out_range(part, None)
            yield

    def _newest(self) -> Iterator[MessageRange | PagedOut]:
        """Yields all ranges from the end on, though others may be appended meanwhile."""
        seen = 0
        last: MessageRange | PagedOut | None = None
        while some := list(islice(reversed(self._ready), seen, seen + NEWEST_AT_ONCE)):
            # The last one visited is behind those appended since, unless it was removed.
            index = next((at for at, part in enumerate(some, 1) if part is last), 0)
            yield from some[index:]
            seen += len(some)
            last = some[-1]


def _sequence(part: MessageRange | PagedOut) -> int:
    assert isinstance(part, MessageRange)  # Only the lowest priority has paged-out ranges.
    return part.entry.sequence(part.low if part.low < part.high else part.high - 1)


def _newest_first(messages: MessageRange) -> int:
    return -_sequence(messages)


def _is_adjacent(first: MessageRange, second: MessageRange) -> bool:
    return (
        first.entry is second.entry
        and first.high == second.low
        and first.redelivered == second.redelivered
    )
