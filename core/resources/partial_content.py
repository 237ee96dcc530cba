"""Messages and requests that have come in part, counted by who sends them.

Their bytes are in memory before anybody can use them, and the sender decides for how long. So one
user may have a quarter of the memory limit of them under way, they count towards the memory alarm
at once, and when memory is short they are ended before anybody else has to wait.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import islice

OWNER_SHARE = 4
"""A user may have a quarter of the memory limit in unfinished messages."""
KEPT_SHARE = 16
"""When memory is short, a sixteenth of the limit stays: so little would not end an alarm."""
PART_BYTES = 1_024
"""What each takes beside its bytes."""
ENDED_AT_ONCE = 250
"""Ending one closes a channel, which takes some 20 us."""
MEMORY_IS_SHORT = "memory is short and it was not complete; try again later"


class PartialContent:
    """One message or request under way; `end` is called with a reason when it must go."""

    __slots__ = ("_end", "_owner", "bytes", "claimed_bytes")

    def __init__(self, owner: _Owner, end: Callable[[str], None]) -> None:
        self._owner: _Owner | None = owner
        self._end = end
        self.bytes = 0
        self.claimed_bytes = 0

    def claim(self, size_bytes: int, go_on: Callable[[], None] | None = None) -> bool:
        """Whether the owner has room for so much more.

        If not, `go_on` is called when it has: the room is claimed by then.
        """
        owner = self._owner
        assert owner is not None, "claimed for a part that has ended"
        if not owner.waiting and owner.has_room(size_bytes):
            self._take(owner, size_bytes)
            return True
        if go_on is not None:
            owner.waiting[self] = (size_bytes, go_on)
        return False

    @property
    def keeps_others_waiting(self) -> bool:
        """Whether others of its owner wait until this one, or another, is over."""
        return self._owner is not None and bool(self._owner.waiting)

    def grow(self, size_bytes: int) -> None:
        """So much more of it is in memory."""
        if self._owner is not None:
            self.bytes += size_bytes
            self._owner.grow(size_bytes)

    def close(self) -> None:
        """It is complete, or given up; doing it again changes nothing."""
        owner, self._owner = self._owner, None
        if owner is None:
            return
        owner.leave(self)
        while owner.waiting:
            part = next(iter(owner.waiting))
            size_bytes, go_on = owner.waiting[part]
            if not owner.has_room(size_bytes):
                return
            del owner.waiting[part]
            part._take(owner, size_bytes)
            go_on()

    def give_up(self, reason: str) -> None:
        """Closes it and tells its holder."""
        self.close()
        self._end(reason)

    def _take(self, owner: _Owner, size_bytes: int) -> None:
        self.claimed_bytes += size_bytes
        owner.claimed_bytes += size_bytes


class PartialContents:
    """All that is under way; `bytes` is what has come of it."""

    def __init__(self) -> None:
        self.bytes = 0
        self.owner_max_bytes = sys.maxsize
        self._owners: dict[str, _Owner] = {}

    def begin(
        self, owner: str, end: Callable[[str], None], owner_max_bytes: int | None = None
    ) -> PartialContent:
        """Something of the owner begins to come; see `PartialContent`. The owner's room is
        `owner_max_bytes`, or else that of everybody."""
        found = self._owners.get(owner)
        if found is None:
            found = self._owners[owner] = _Owner(self, owner, owner_max_bytes)
        part = PartialContent(found, end)
        found.parts[part] = None
        part.grow(PART_BYTES)
        return part

    def shrink(self, to_bytes: int) -> None:
        """Ends parts of whoever has most, the oldest first, until no more than `to_bytes` are
        left. A call takes one owner and a bounded number of its parts."""
        if self.bytes <= to_bytes or not self._owners:
            return
        owner = max(self._owners.values(), key=lambda one: one.bytes)
        for part in list(islice(owner.parts, ENDED_AT_ONCE)):
            part.give_up(MEMORY_IS_SHORT)
            if self.bytes <= to_bytes:
                return

    def forget(self, owner: str) -> None:
        del self._owners[owner]


class _Owner:
    """What one user has under way, or an address that names no user."""

    __slots__ = ("_all", "_max_bytes", "_name", "bytes", "claimed_bytes", "parts", "waiting")

    def __init__(self, everything: PartialContents, name: str, max_bytes: int | None) -> None:
        self._all = everything
        self._name = name
        self._max_bytes = max_bytes
        self.bytes = 0
        self.claimed_bytes = 0
        self.parts: dict[PartialContent, None] = {}
        self.waiting: dict[PartialContent, tuple[int, Callable[[], None]]] = {}

    def has_room(self, size_bytes: int) -> bool:
        """One that is alone always has: else the largest message might never pass."""
        max_bytes = self._all.owner_max_bytes if self._max_bytes is None else self._max_bytes
        return not self.claimed_bytes or self.claimed_bytes + size_bytes <= max_bytes

    def grow(self, size_bytes: int) -> None:
        self.bytes += size_bytes
        self._all.bytes += size_bytes

    def leave(self, part: PartialContent) -> None:
        self.waiting.pop(part, None)
        self.grow(-part.bytes)
        self.claimed_bytes -= part.claimed_bytes
        del self.parts[part]
        if not self.parts:
            self._all.forget(self._name)
