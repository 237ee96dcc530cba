"""Deliveries that wait for their acknowledgement, as ranges of delivery tags.

A delivery of a range is one range. Acks in order move its front; from the first odd ack on the
range keeps a flag per message, so that a second ack of the same tag is found out. Ranges are
never split. A settled one lets go of its messages at once. It leaves the list when nothing is
outstanding any more, or else when the list has doubled: a consumer may sit on one message while it
settles a million behind it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import NamedTuple

from ..message.batch import Batch, MessageRange
from ..slices import drain
from .consumer import Consumer
from .queue import Queue

_CLEAR_MIN = 512
"""Fewer ranges are not worth looking through."""


LONG_RANGES = 250
"""About 3 ms."""
SORTED_AT_ONCE = 2_000
"""What was taken in any order is put in order in pieces, which are merged."""


class DeliveryRange(NamedTuple):
    """Messages taken out of the unacked, together; `consumer` is None for those got by get.

    `tag` is the delivery tag of the first; the others' count on from it.
    """

    consumer: Consumer | None
    queue: Queue
    messages: MessageRange
    tag: int


class _Range:
    __slots__ = ("consumer", "count", "flags", "front", "left", "messages", "queue", "tag")

    def __init__(
        self, tag: int, consumer: Consumer | None, queue: Queue, messages: MessageRange
    ) -> None:
        self.tag = tag
        self.consumer = consumer
        self.queue = queue
        self.messages: MessageRange | None = messages
        self.count = messages.high - messages.low
        self.left = self.count
        self.front = 0
        self.flags: bytearray | None = None

    def piece(self, start: int, stop: int) -> DeliveryRange:
        messages = self.messages
        assert messages is not None
        low = messages.low
        return DeliveryRange(
            self.consumer,
            self.queue,
            MessageRange(messages.entry, low + start, low + stop, messages.redelivered),
            self.tag + start,
        )

    def settle(self, start: int, stop: int, into: list[DeliveryRange]) -> None:
        """Takes what is unsettled of positions `start` to `stop - 1`."""
        start = max(start, self.front)
        flags = self.flags
        if flags is None:
            if start < stop:
                into.append(self.piece(start, stop))
                self._mark(start, stop)
            return
        while start < stop:
            if flags[start]:
                start += 1
                continue
            end = flags.find(1, start, stop)
            end = stop if end < 0 else end
            into.append(self.piece(start, end))
            self._mark(start, end)
            start = end

    def _mark(self, start: int, stop: int) -> None:
        self.left -= stop - start
        if not self.left:
            self.messages = None
        if start == self.front:
            self.front = stop
            flags = self.flags
            if flags is not None:
                while self.front < self.count and flags[self.front]:
                    self.front += 1
            return
        if self.flags is None:
            self.flags = bytearray(self.count)
        self.flags[start:stop] = b"\x01" * (stop - start)


class Unacked:
    """The outstanding deliveries of one channel; `count` messages."""

    __slots__ = ("_clear_at", "_first", "_ranges", "count")

    def __init__(self) -> None:
        self._ranges: list[_Range] = []
        self._first = 0
        self._clear_at = _CLEAR_MIN
        self.count = 0

    def add(
        self, tag: int, consumer: Consumer | None, queue: Queue, messages: MessageRange
    ) -> None:
        """The range was delivered with the tags `tag`, `tag + 1`, ..."""
        if len(self._ranges) >= self._clear_at:
            self._clear()
        self._ranges.append(_Range(tag, consumer, queue, messages))
        self.count += messages.high - messages.low

    def _clear(self) -> None:
        self._ranges = [held for held in self._ranges if held.left]
        self._first = 0
        self._clear_at = max(_CLEAR_MIN, 2 * len(self._ranges))

    def take(self, first: int, last: int) -> list[DeliveryRange] | None:
        """Takes the deliveries `first` to `last`; None, and nothing taken, if one is unknown."""
        pieces: list[DeliveryRange] = []
        if first == last:
            held = self._find(first)
            if held is None:
                return None
            place = first - held.tag
            held.settle(place, place + 1, pieces)
            self._taken(1)
            return pieces
        if any(self._find(tag) is None for tag in range(first, last + 1)):
            return None
        tag = first
        while tag <= last:
            held = self._find(tag)
            assert held is not None
            stop = min(last + 1, held.tag + held.count)
            held.settle(tag - held.tag, stop - held.tag, pieces)
            tag = stop
        self._taken(last + 1 - first)
        return pieces

    def take_up_to(self, last: int) -> list[DeliveryRange] | None:
        """Takes every delivery up to `last`, which must be outstanding itself; else None."""
        if self._find(last) is None:
            return None
        pieces: list[DeliveryRange] = []
        ranges = self._ranges
        for place in range(self._first, len(ranges)):
            held = ranges[place]
            if held.tag > last:
                break
            held.settle(held.front, min(held.count, last - held.tag + 1), pieces)
        self._taken(sum(piece.messages.high - piece.messages.low for piece in pieces))
        return pieces

    def ranges(self) -> Iterator[MessageRange]:
        """What is outstanding in memory, the oldest first; settled messages in between included."""
        for held in self._ranges[self._first :]:
            if held.messages is not None:
                yield held.messages

    def outstanding(self) -> Iterator[tuple[int, Consumer | None, Queue]]:
        """Of each range with something unsettled, the oldest first: the first such tag, who got it
        and from where."""
        for held in self._ranges[self._first :]:
            if held.left:
                yield held.tag + held.front, held.consumer, held.queue

    @property
    def is_long(self) -> bool:
        """Whether looking at all deliveries would take longer than a turn may."""
        return len(self._ranges) - self._first > LONG_RANGES

    def detach_up_to(self, last: int) -> Detached | None:
        """As `take_up_to`, in a time that hardly grows with the number of deliveries: their tags
        are unknown at once, they count until they are looked at."""
        if self._find(last) is None:
            return None
        ranges, first = self._ranges, self._first
        rest: list[DeliveryRange] = []
        place = bisect_right(ranges, last, lo=first, key=_tag)
        newest = ranges[place - 1]
        if newest.tag + newest.count > last + 1:
            place -= 1
            newest.settle(newest.front, last + 1 - newest.tag, rest)
        self._ranges, self._first = ranges[place:], 0
        return Detached(self, ranges[first:place], rest)

    def detach_all(self) -> Detached:
        """As `detach_up_to`, without an end."""
        ranges, self._ranges = self._ranges[self._first :], []
        self._first = 0
        return Detached(self, ranges, [])

    def take_all(self) -> list[DeliveryRange]:
        pieces: list[DeliveryRange] = []
        for held in self._ranges[self._first :]:
            held.settle(held.front, held.count, pieces)
        self._ranges = []
        self._first = 0
        self.count = 0
        return pieces

    def put_back(self, pieces: Iterable[DeliveryRange]) -> Iterator[None]:
        """What was taken is outstanding again, under its tags, when the last step is done. Until
        then nothing may be settled; what is delivered meanwhile comes behind it."""
        taken: list[deque[DeliveryRange]] = []
        some: list[DeliveryRange] = []
        for piece in pieces:
            some.append(piece)
            if len(some) == SORTED_AT_ONCE:
                taken.append(_sorted(some))
                some = []
            yield
        taken.append(_sorted(some))
        ranges: list[_Range] = []
        for piece in _joined(merge(self.detach_all(), *map(drain, taken), key=_tag)):
            ranges.append(_Range(piece.tag, piece.consumer, piece.queue, piece.messages))
            self.count += piece.messages.count
            yield
        self._ranges = ranges + self._ranges[self._first :]
        self._first = 0

    def _find(self, tag: int) -> _Range | None:
        ranges = self._ranges
        first = self._first
        if first == len(ranges):
            return None
        held = ranges[first]
        if tag - held.tag >= held.count:
            held = ranges[bisect_right(ranges, tag, lo=first, key=_tag) - 1]
        place = tag - held.tag
        if not held.front <= place < held.count:
            return None
        if held.flags is not None and held.flags[place]:
            return None
        return held

    def _taken(self, count: int) -> None:
        self.count -= count
        ranges = self._ranges
        first = self._first
        while first < len(ranges) and not ranges[first].left:
            first += 1
        self._first = first
        if first and first == len(ranges):
            # A channel that has settled everything keeps nothing, however long it is idle then.
            self._ranges = []
            self._first = 0
            self._clear_at = _CLEAR_MIN


class Detached:
    """Deliveries whose tags are not outstanding any more."""

    __slots__ = ("_ranges", "_rest", "_unacked")

    def __init__(self, unacked: Unacked, ranges: list[_Range], rest: list[DeliveryRange]) -> None:
        self._unacked = unacked
        self._ranges = deque(ranges)
        self._rest = rest

    def __iter__(self) -> Iterator[DeliveryRange]:
        """The oldest first; once."""
        for held in drain(self._ranges):
            pieces: list[DeliveryRange] = []
            held.settle(held.front, held.count, pieces)
            yield from map(self._counted, pieces)
        yield from map(self._counted, self._rest)

    def outstanding(self) -> Iterator[tuple[Queue, Batch, int]]:
        """The queue, and how many messages of which batch, of all that has not been given yet."""
        for held in self._ranges:
            if held.messages is not None:
                yield held.queue, held.messages.entry.batch, held.left
        for piece in self._rest:
            yield piece.queue, piece.messages.entry.batch, piece.messages.count

    def _counted(self, piece: DeliveryRange) -> DeliveryRange:
        self._unacked.count -= piece.messages.count
        return piece


def _sorted(pieces: list[DeliveryRange]) -> deque[DeliveryRange]:
    return deque(sorted(pieces, key=_tag))


def _tag(held: _Range | DeliveryRange) -> int:
    return held.tag


def _joined(pieces: Iterable[DeliveryRange]) -> Iterator[DeliveryRange]:
    """Neighbours become one again, or each time they come back there would be more of them."""
    last: DeliveryRange | None = None
    for piece in pieces:
        if last is not None and _goes_on(last, piece):
            last.messages.high = piece.messages.high
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last


def _goes_on(first: DeliveryRange, then: DeliveryRange) -> bool:
    one, other = first.messages, then.messages
    return (
        then.tag == first.tag + one.count
        and other.entry is one.entry
        and other.low == one.high
        and other.redelivered == one.redelivered
        and then.consumer is first.consumer
    )
