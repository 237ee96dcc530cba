"""Settled sets: the settled messages among a number of consecutive ones.

Messages are named by their position. They are settled from the front as a rule; those settled out
of order are flagged until the front has reached them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final


class SettledSet:
    """The settled ones of `count` positions: those before `front`, and those flagged. `unsettled`
    counts the others."""

    __slots__ = ("count", "flags", "front", "unsettled")

    def __init__(self, count: int) -> None:
        self.count = count
        self.unsettled = count
        self.front = 0
        self.flags: bytearray | None = None

    def mark(self, low: int, high: int) -> None:
        """Notes that positions `low` to `high - 1` are settled, none of which was before."""
        self.unsettled -= high - low
        flags = self.flags
        if low == self.front:
            self.front = high
            if flags is not None:
                while self.front < self.count and flags[self.front]:
                    self.front += 1
            return
        if flags is None:
            flags = self.flags = bytearray(self.count)
        flags[low:high] = b"\x01" * (high - low)

    def intervals(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yields the intervals of unsettled positions from `low` to `high - 1`, half-open."""
        flags, at = self.flags, max(low, self.front)
        if flags is None:
            if at < high:
                yield at, high
            return
        while at < high:
            at = flags.find(0, at, high)
            if at < 0:
                return
            stop = flags.find(1, at, high)
            stop = high if stop < 0 else stop
            yield at, stop
            at = stop

    def set_flags(self, flags: bytearray) -> None:
        """Replaces the set by flags, a byte for each position."""
        front = flags.find(0)
        self.front = len(flags) if front < 0 else front
        self.flags = flags
        self.unsettled = flags.count(0)

    def bits(self, low: int, high: int) -> bytes:
        """Returns which of the positions `low` to `high - 1` are settled, a bit each."""
        flags = bytearray(high - low) if self.flags is None else self.flags[low:high]
        done = min(max(0, self.front - low), high - low)
        flags[:done] = b"\x01" * done
        return packed(flags)

    def unsettled_between(self, low: int, high: int) -> int:
        """Returns how many of the positions `low` to `high - 1` are not settled."""
        low = max(low, self.front)
        if low >= high:
            return 0
        return high - low if self.flags is None else self.flags.count(0, low, high)


_DIGITS: Final = bytes.maketrans(b"\x00\x01", b"01")
_FLAGS: Final = bytes.maketrans(b"01", b"\x00\x01")


def packed(flags: bytearray) -> bytes:
    """Returns bytes of 0 and 1 as bits, the first one lowest."""
    size = (len(flags) + 7) // 8
    return int(flags.translate(_DIGITS)[::-1] or b"0", 2).to_bytes(size, "little")


def unpacked(bits: bytes, count: int) -> bytearray:
    """Returns bits as `count` bytes of 0 and 1: the inverse of `packed`."""
    digits = format(int.from_bytes(bits, "little"), f"0{count}b")[::-1]
    return bytearray(digits.encode().translate(_FLAGS))
