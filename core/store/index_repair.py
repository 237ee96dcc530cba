"""What is taken for settled in a part whose index was made anew, where ordinals are not sure.

A record counts as settled only if it is that with every ordinal that it may have: serving settled
messages again is better than losing others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from .rebuilt import Aligned
from .record_index import RecordIndex
from .segment_part import SegmentPart


def is_begun(part: SegmentPart) -> bool:
    """Whether something of it is settled."""
    return bool(part.front or part.dead or part.partial)


def revive(part: SegmentPart, aligned: Aligned, marks: dict[int, int]) -> int:
    """Gives how many records count as unsettled though they may be settled; `marks` have their
    messages come back as redelivered."""
    dead, begun, front = sorted(part.dead), sorted(part.partial), part.front
    revived, last = 0, 0
    for ordinal, (low, high) in aligned.unsure.items():
        settled = _between(dead, low, high) + max(0, min(high + 1, front) - low)
        if settled == high + 1 - low:
            continue
        part.revive(ordinal)
        if settled or _between(begun, low, high):
            revived += 1
            last = max(last, aligned.index[ordinal].last)
    if revived:
        marks[part.queue_id] = max(last, marks.get(part.queue_id, 0))
        more = max(0, _sound_unsettled(part, aligned.index) - part.unsettled)
        part.unsettled += more
        part.segment.unsettled += more
    return revived


def _between(ordinals: list[int], low: int, high: int) -> int:
    """How many of these, which ascend, are from `low` to `high`."""
    return bisect_right(ordinals, high) - bisect_left(ordinals, low)


def _sound_unsettled(part: SegmentPart, index: RecordIndex) -> int:
    """How many messages there are in its records that are to be kept."""
    unsettled = 0
    for ordinal in range(part.front, part.records):
        if not part.is_dead(ordinal):
            settled = int.from_bytes(part.partial.get(ordinal, b""), "little").bit_count()
            unsettled += max(0, index[ordinal].count - settled)
    return unsettled
