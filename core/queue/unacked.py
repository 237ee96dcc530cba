"""Unacknowledged deliveries of a channel, as ranges of delivery tags.

Each delivered message range is one range of tags. Acks in order advance its front; from the first
ack out of order on, it has a flag per message, so that a second ack of a tag is detected. Ranges
are never split. A settled range frees its messages at once. It is removed from the list when
nothing is outstanding, or when the list has doubled: a consumer may hold one message while it
settles a million later ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Final, NamedTuple

from ..message.batch import Batch
from ..message.queue_entry import MessageRange
from ..message.settled_set import SettledSet
from ..slices import drain
from .consumer import Consumer
from .queue import Queue

_CLEAR_MIN: Final = 512
"""Settled ranges are not removed below this length of the list."""
LONG_RANGES: Final = 250
"""Ranges that are settled in about 3 ms."""
SORTED_AT_ONCE: Final = 2_000
"""Deliveries that are sorted together, before the sorted parts are merged."""


class DeliveryRange(NamedTuple):
    """A range of deliveries removed from `Unacked`; `consumer` is None for those of basic.get.

    `tag` is the delivery tag of the first; the tags of the others follow.
    """

    consumer: Consumer | None
    queue: Queue
    messages: MessageRange
    tag: int


class _TagRange(SettledSet):
    """The deliveries of one message range, and which of them are settled."""

    __slots__ = ("consumer", "messages", "queue", "tag")

    def __init__(
        self, tag: int, consumer: Consumer | None, queue: Queue, messages: MessageRange
    ) -> None:
        super().__init__(messages.high - messages.low)
        self.tag = tag
        self.consumer = consumer
        self.queue = queue
        self.messages: MessageRange | None = messages
        """None when all are settled."""

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

    def settle_one(self, position: int) -> DeliveryRange:
        """Settles an unsettled position."""
        piece = self.piece(position, position + 1)
        self.mark(position, position + 1)
        if not self.unsettled:
            self.messages = None
        return piece

    def settle(self, start: int, stop: int, into: list[DeliveryRange]) -> None:
        """Settles the unsettled positions from `start` to `stop - 1` and appends them to `into`."""
        start = max(start, self.front)
        if self.flags is not None:
            for low, high in self.intervals(start, stop):
                into.append(self.piece(low, high))
                self.mark(low, high)
        elif start < stop:
            into.append(self.piece(start, stop))
            self.mark(start, stop)
        if not self.unsettled:
            self.messages = None


class Unacked:
    """The outstanding deliveries of one channel, `count` messages in all."""

    __slots__ = ("_clear_at", "_first", "_ranges", "count")

    def __init__(self) -> None:
        self._ranges: list[_TagRange] = []
        self._first = 0
        self._clear_at = _CLEAR_MIN
        self.count = 0

    def add(
        self, tag: int, consumer: Consumer | None, queue: Queue, messages: MessageRange
    ) -> None:
        """Adds a range that was delivered with the tags `tag`, `tag + 1`, ..."""
        if len(self._ranges) >= self._clear_at:
            self._clear()
        self._ranges.append(_TagRange(tag, consumer, queue, messages))
        self.count += messages.high - messages.low

    def _clear(self) -> None:
        self._ranges = [tags for tags in self._ranges if tags.unsettled]
        self._first = 0
        self._clear_at = max(_CLEAR_MIN, 2 * len(self._ranges))

    def take(self, first: int, last: int) -> list[DeliveryRange] | None:
        """Removes the deliveries `first` to `last`; None, and none removed, if one is unknown."""
        if first == last:
            tags = self._find(first)
            if tags is None:
                return None
            piece = tags.settle_one(first - tags.tag)
            self._taken(1)
            return [piece]
        if any(self._find(tag) is None for tag in range(first, last + 1)):
            return None
        pieces: list[DeliveryRange] = []
        tag = first
        while tag <= last:
            tags = self._find(tag)
            assert tags is not None
            stop = min(last + 1, tags.tag + tags.count)
            tags.settle(tag - tags.tag, stop - tags.tag, pieces)
            tag = stop
        self._taken(last + 1 - first)
        return pieces

    def take_up_to(self, last: int) -> list[DeliveryRange] | None:
        """Removes every delivery up to `last`; None if `last` itself is not outstanding."""
        if self._find(last) is None:
            return None
        pieces: list[DeliveryRange] = []
        ranges = self._ranges
        for index in range(self._first, len(ranges)):
            tags = ranges[index]
            if tags.tag > last:
                break
            tags.settle(tags.front, min(tags.count, last - tags.tag + 1), pieces)
        self._taken(sum(piece.messages.high - piece.messages.low for piece in pieces))
        return pieces

    def ranges(self) -> Iterator[MessageRange]:
        """Yields the outstanding ranges, the oldest first, including settled messages in them."""
        for tags in self._ranges[self._first :]:
            if tags.messages is not None:
                yield tags.messages

    def outstanding(self) -> Iterator[tuple[int, Consumer | None, Queue]]:
        """Yields the first unsettled tag, the consumer and the queue of each range that has one,
        the oldest first."""
        for tags in self._ranges[self._first :]:
            if tags.unsettled:
                yield tags.tag + tags.front, tags.consumer, tags.queue

    @property
    def is_long(self) -> bool:
        """Whether settling all deliveries would take longer than a turn may."""
        return len(self._ranges) - self._first > LONG_RANGES

    def detach_up_to(self, last: int) -> Detached | None:
        """As `take_up_to`, in nearly constant time: the tags are unknown at once, the deliveries
        count until they are iterated over."""
        if self._find(last) is None:
            return None
        ranges, first = self._ranges, self._first
        rest: list[DeliveryRange] = []
        index = bisect_right(ranges, last, lo=first, key=_tag)
        newest = ranges[index - 1]
        if newest.tag + newest.count > last + 1:
            index -= 1
            newest.settle(newest.front, last + 1 - newest.tag, rest)
        self._ranges, self._first = ranges[index:], 0
        return Detached(self, ranges[first:index], rest)

    def detach_all(self) -> Detached:
        """As `detach_up_to`, for all deliveries."""
        ranges, self._ranges = self._ranges[self._first :], []
        self._first = 0
        return Detached(self, ranges, [])

    def take_all(self) -> list[DeliveryRange]:
        """Removes all deliveries."""
        pieces: list[DeliveryRange] = []
        for tags in self._ranges[self._first :]:
            tags.settle(tags.front, tags.count, pieces)
        self._ranges = []
        self._first = 0
        self.count = 0
        return pieces

    def put_back(self, pieces: Iterable[DeliveryRange]) -> Iterator[None]:
        """Makes removed deliveries outstanding again, under their tags, once the last step is done.
        Until then nothing may be settled; later deliveries come behind them."""
        taken: list[deque[DeliveryRange]] = []
        some: list[DeliveryRange] = []
        for piece in pieces:
            some.append(piece)
            if len(some) == SORTED_AT_ONCE:
                taken.append(_sorted(some))
                some = []
            yield
        taken.append(_sorted(some))
        ranges: list[_TagRange] = []
        for piece in _joined(merge(self.detach_all(), *map(drain, taken), key=_tag)):
            ranges.append(_TagRange(piece.tag, piece.consumer, piece.queue, piece.messages))
            self.count += piece.messages.count
            yield
        self._ranges = ranges + self._ranges[self._first :]
        self._first = 0

    def _find(self, tag: int) -> _TagRange | None:
        ranges = self._ranges
        first = self._first
        if first == len(ranges):
            return None
        tags = ranges[first]
        if tag - tags.tag >= tags.count:
            tags = ranges[bisect_right(ranges, tag, lo=first, key=_tag) - 1]
        index = tag - tags.tag
        if not tags.front <= index < tags.count:
            return None
        if tags.flags is not None and tags.flags[index]:
            return None
        return tags

    def _taken(self, count: int) -> None:
        self.count -= count
        ranges = self._ranges
        first = self._first
        while first < len(ranges) and not ranges[first].unsettled:
            first += 1
        self._first = first
        if first and first == len(ranges):
            # A channel that has settled everything uses no memory while it is idle.
            self._ranges = []
            self._first = 0
            self._clear_at = _CLEAR_MIN


class Detached:
    """Deliveries removed from `Unacked` that still count until they are iterated over."""

    __slots__ = ("_ranges", "_rest", "_unacked")

    def __init__(
        self, unacked: Unacked, ranges: list[_TagRange], rest: list[DeliveryRange]
    ) -> None:
        self._unacked = unacked
        self._ranges = deque(ranges)
        self._rest = rest

    def __iter__(self) -> Iterator[DeliveryRange]:
        """Yields the deliveries, the oldest first; once."""
        for tags in drain(self._ranges):
            pieces: list[DeliveryRange] = []
            tags.settle(tags.front, tags.count, pieces)
            yield from map(self._counted, pieces)
        yield from map(self._counted, self._rest)

    def outstanding(self) -> Iterator[tuple[Queue, Batch, int]]:
        """Yields queue, batch and number of messages of all deliveries not iterated over yet."""
        for tags in self._ranges:
            if tags.messages is not None:
                yield tags.queue, tags.messages.entry.batch, tags.unsettled
        for piece in self._rest:
            yield piece.queue, piece.messages.entry.batch, piece.messages.count

    def _counted(self, piece: DeliveryRange) -> DeliveryRange:
        self._unacked.count -= piece.messages.count
        return piece


def _sorted(pieces: list[DeliveryRange]) -> deque[DeliveryRange]:
    return deque(sorted(pieces, key=_tag))


def _tag(tags: _TagRange | DeliveryRange) -> int:
    return tags.tag


def _joined(pieces: Iterable[DeliveryRange]) -> Iterator[DeliveryRange]:
    """Joins adjacent ranges, or there would be more of them with each rollback."""
    last: DeliveryRange | None = None
    for piece in pieces:
        if last is not None and _is_next(last, piece):
            last.messages.high = piece.messages.high
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last


def _is_next(first: DeliveryRange, second: DeliveryRange) -> bool:
    one, other = first.messages, second.messages
    return (
        second.tag == first.tag + one.count
        and other.entry is one.entry
        and other.low == one.high
        and other.redelivered == one.redelivered
        and second.consumer is first.consumer
    )
