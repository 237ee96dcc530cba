"""Publisher confirms of one channel, strictly in publish order.

Each publish gets exactly one ack or nack. Pending confirms are a queue of (last tag, commit
number or nack); the ready prefix of it is answered with one `multiple` ack.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ..wire.frames import ack_frame, nack_frame

_NACK: Final = -1


class Confirms:
    """The pending confirms; `published` counts publishes, and so is the last publish's tag.

    `acked` counts the publishes that were acked, not those that were nacked.
    """

    __slots__ = ("_confirmed", "acked", "pending", "published")

    def __init__(self) -> None:
        self.published = 0
        self.acked = 0
        self._confirmed = 0
        self.pending: deque[tuple[int, int]] = deque()
        """Last tag and commit number of each group of publishes that is not answered."""

    @property
    def unanswered(self) -> int:
        """Publishes without ack or nack yet."""
        return self.published - self._confirmed

    def add(self, count: int, commit: int) -> None:
        """Adds `count` publishes, to be acked when `commit` is durable (0: at once)."""
        self.published += count
        pending = self.pending
        if pending and pending[-1][1] == commit:
            pending.pop()
        pending.append((self.published, commit))

    def add_refused(self) -> None:
        """Adds a publish that is nacked."""
        self.published += 1
        self.pending.append((self.published, _NACK))

    def collect(self, channel: int, committed: int, refused: int = 0) -> bytes:
        """Returns the ack and nack frames that are due; commits above `committed` and up to
        `refused` have failed."""
        pending = self.pending
        if not pending:
            return b""
        frames = []
        last = 0
        while pending and pending[0][1] <= max(committed, refused):
            tag, commit = pending.popleft()
            if commit == _NACK or commit > committed:
                if last:
                    frames.append(self._ack(channel, last))
                    last = 0
                frames.append(nack_frame(channel, tag, tag > self._confirmed + 1))
                self._confirmed = tag
            else:
                last = tag
        if last:
            frames.append(self._ack(channel, last))
        return b"".join(frames)

    def _ack(self, channel: int, last: int) -> bytes:
        multiple = last > self._confirmed + 1
        self.acked += last - self._confirmed
        self._confirmed = last
        return ack_frame(channel, last, multiple)
