"""Settled sets: which messages of a queue entry are settled.

Messages are named by their position in the entry. They are settled from the front as a rule; those
settled out of order are flagged until the front has reached them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..message.batch import MessageRange, QueueEntry

if TYPE_CHECKING:
    from .segment_part import SegmentPart


class SettledSet:
    """The settled positions of an entry: those before `front`, and those flagged.

    `part` and `ordinal` say which record holds the entry; `unsettled` counts the other positions.
    """

    __slots__ = ("flags", "front", "ordinal", "part", "unsettled")

    def __init__(self, part: SegmentPart, ordinal: int, count: int) -> None:
        self.part = part
        self.ordinal = ordinal
        self.unsettled = count
        self.front = 0
        self.flags: bytearray | None = None

    def settle(self, entry: QueueEntry, low: int, high: int) -> None:
        """Settles positions `low` to `high - 1`, none of which was settled before."""
        count = high - low
        self.mark(low, high, entry.count)
        part = self.part
        if not self.unsettled:
            part.mark_dead(self.ordinal)
        part.count_settled(count, self.ordinal)

    def mark(self, low: int, high: int, total: int = 0) -> None:
        """As `settle`, but the part does not count it."""
        self.unsettled -= high - low
        flags = self.flags
        if low == self.front:
            self.front = high
            if flags is not None:
                while self.front < len(flags) and flags[self.front]:
                    self.front += 1
            return
        if flags is None:
            flags = self.flags = bytearray(total or self.unsettled + (high - low) + self.front)
        flags[low:high] = b"\x01" * (high - low)

    def ranges(
        self, entry: QueueEntry, *, redelivered: bool, low: int = 0, high: int | None = None
    ) -> Iterator[MessageRange]:
        """The unsettled messages of the entry, or of its positions `low` to `high - 1`."""
        flags, at = self.flags, max(low, self.front)
        end = entry.count if high is None else min(high, entry.count)
        if flags is None:
            if at < end:
                yield MessageRange(entry, at, end, redelivered)
            return
        while at < end:
            at = flags.find(0, at, end)
            if at < 0:
                return
            stop = flags.find(1, at, end)
            stop = end if stop < 0 else stop
            yield MessageRange(entry, at, stop, redelivered)
            at = stop

    def set_flags(self, flags: bytearray) -> None:
        """Replaces the set by flags, a byte for each position."""
        front = flags.find(0)
        self.front = len(flags) if front < 0 else front
        self.flags = flags
        self.unsettled = flags.count(0)

    def settled_bits(self, low: int, high: int) -> bytes:
        """The settled ones of the positions `low` to `high - 1`, as bits."""
        flags = bytearray(high - low) if self.flags is None else self.flags[low:high]
        done = min(max(0, self.front - low), high - low)
        flags[:done] = b"\x01" * done
        return packed(flags)

    def unsettled_between(self, low: int, high: int) -> int:
        """How many of the positions `low` to `high - 1` are not settled."""
        low = max(low, self.front)
        if low >= high:
            return 0
        return high - low if self.flags is None else self.flags.count(0, low, high)


class Fragment:
    """A record that holds positions `low` to `high - 1` of an entry, `unsettled` of them not
    settled."""

    __slots__ = ("high", "low", "ordinal", "part", "unsettled")

    def __init__(
        self, low: int, high: int, unsettled: int, part: SegmentPart, ordinal: int
    ) -> None:
        self.low = low
        self.high = high
        self.unsettled = unsettled
        self.part = part
        self.ordinal = ordinal

    def count_settled(self, count: int) -> None:
        """Subtracts positions that were settled."""
        self.unsettled -= count
        if not self.unsettled:
            self.part.mark_dead(self.ordinal)
        self.part.count_settled(count, self.ordinal)


_DIGITS = bytes.maketrans(b"\x00\x01", b"01")
_FLAGS = bytes.maketrans(b"01", b"\x00\x01")


def packed(flags: bytearray) -> bytes:
    """Bytes of 0 and 1 as bits, the first one lowest."""
    size = (len(flags) + 7) // 8
    return int(flags.translate(_DIGITS)[::-1] or b"0", 2).to_bytes(size, "little")


def unpacked(bits: bytes, count: int) -> bytearray:
    """Bits as bytes of 0 and 1, `count` of them: the inverse of `packed`."""
    digits = format(int.from_bytes(bits, "little"), f"0{count}b")[::-1]
    return bytearray(digits.encode().translate(_FLAGS))


def positions(entry: QueueEntry, first: int, last: int) -> tuple[int, int]:
    """The positions of the entry's messages numbered `first` to `last`, as a half-open interval."""
    low, high = first - entry.batch.sequence, last - entry.batch.sequence
    selection: Sequence[int] | None = entry.selection
    if selection is None:
        return max(0, low), min(entry.count, high + 1)
    return bisect_left(selection, low), bisect_right(selection, high)
