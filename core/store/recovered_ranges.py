"""Finds the messages that an earlier process left in a queue, as paged-out ranges in order.

The parts of a queue follow each other, unless compaction has moved records: then those that overlap
are merged record by record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..message.queue_entry import MessageRange, PagedOut
from ..wire.properties import RANKED, TIMED
from .entry_loader import EntryLoader
from .record_index import RecordIndex
from .segment_part import SegmentPart
from .settled_set import settled_set_of


class _RecordRange(NamedTuple):
    """Records `low` to `high - 1` of a part, with the number of their unsettled messages."""

    part: SegmentPart
    low: int
    high: int
    unsettled: int


class RecoveredRanges:
    """Makes paged-out ranges for queues that are made from their definitions."""

    def __init__(self, loader: EntryLoader) -> None:
        self._loader = loader

    def of(
        self, parts: list[SegmentPart], *, ranks: bool = False, in_order: bool = False
    ) -> list[PagedOut]:
        """Returns the queue's messages in order. `ranks` if the queue orders by priority,
        `in_order` if it ignores priority and expiration."""
        special = 0 if in_order else TIMED | RANKED * ranks
        parts = [part for part in parts if part.unsettled]
        parts.sort(key=_first)
        if _are_disjoint(parts):
            return [
                add_range(part, part.front, part.records, part.unsettled, part.special & special)
                for part in parts
            ]
        found: list[tuple[int, _RecordRange]] = []
        for part, apart in zip(parts, _disjoint(parts), strict=True):
            if apart:
                found.append(
                    (part.first, _RecordRange(part, part.front, part.records, part.unsettled))
                )
            else:
                found += self._each_record(part)
        found.sort(key=lambda pair: pair[0])
        joined = _merge_adjacent(records for _, records in found)
        return [add_range(*records, records.part.special & special) for records in joined]

    def _each_record(self, part: SegmentPart) -> list[tuple[int, _RecordRange]]:
        """Returns the unsettled records of a part, each with the number of its first message."""
        index = self._loader.index(part)
        return [
            (index[ordinal].first, _RecordRange(part, ordinal, ordinal + 1, unsettled))
            for ordinal in range(part.front, part.records)
            if (unsettled := self._unsettled(part, index, ordinal))
        ]

    def _unsettled(self, part: SegmentPart, index: RecordIndex, ordinal: int) -> int:
        if part.is_dead(ordinal):
            return 0
        if ordinal not in part.partial:
            return index[ordinal].count
        ranges = self._ranges(part, [ordinal])
        unsettled = sum(messages.count for messages in ranges)
        entry = part.entries.pop(ordinal, None)
        if entry is not None:  # None if it is damaged.
            part.partial[ordinal] = settled_set_of(entry).bits(0, entry.count)
        return unsettled

    def _ranges(self, part: SegmentPart, ordinals: list[int]) -> list[MessageRange]:
        index = self._loader.index(part)
        index_entries = [(ordinal, index[ordinal]) for ordinal in ordinals]
        return self._loader.make_entries(part, self._loader.read(part, index_entries))


def add_range(part: SegmentPart, low: int, high: int, count: int, special: int = 0) -> PagedOut:
    """Makes a paged-out range of a part's records."""
    paged_out = PagedOut(count, None, special=special)
    part.add_paged_out(paged_out, low, high)
    return paged_out


def _first(part: SegmentPart) -> int:
    return part.first


def _are_disjoint(parts: list[SegmentPart]) -> bool:
    """Whether no two parts overlap. That is the usual case: only compaction makes parts that do."""
    last = -1
    for part in parts:
        if part.first <= last:
            return False
        last = part.last
    return True


def _disjoint(parts: list[SegmentPart]) -> list[bool]:
    """Returns, for parts sorted by their first message, which of them overlap no other."""
    apart = [True] * len(parts)
    furthest = -1
    for at, part in enumerate(parts):
        if furthest >= 0 and part.first <= parts[furthest].last:
            apart[at] = apart[furthest] = False
        if furthest < 0 or part.last > parts[furthest].last:
            furthest = at
    return apart


def _merge_adjacent(ranges: Iterable[_RecordRange]) -> list[_RecordRange]:
    """Returns the ranges, with those joined that are adjacent both in the queue and in a part."""
    joined: list[_RecordRange] = []
    for here in ranges:
        before = joined[-1] if joined else None
        if before is not None and before.part is here.part and before.high == here.low:
            unsettled = before.unsettled + here.unsettled
            joined[-1] = _RecordRange(here.part, before.low, here.high, unsettled)
        else:
            joined.append(here)
    return joined
