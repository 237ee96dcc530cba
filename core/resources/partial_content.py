"""Partially received messages and requests, accounted by user.

Their bytes are in memory as long as the sender takes. So one user may have a quarter of the memory
limit of them at a time, they count towards the memory alarm at once, and when memory is short they
are ended before publishers are blocked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import islice
from typing import Final

OWNER_SHARE: Final = 4
"""A user's partial messages may take this part of the memory limit."""
KEPT_SHARE: Final = 16
"""When memory is short, partial content of this part of the limit is not ended: it is too little to
end an alarm."""
PART_BYTES: Final = 1_024
"""The overhead of each beside its bytes."""
ENDED_AT_ONCE: Final = 250
"""Ending one closes a channel, which takes some 20 us."""
MEMORY_IS_SHORT: Final = "memory is short and it was not complete; try again later"


class PartialContent:
    """One message or request that is being received; `end` is called with a reason to end it."""

    __slots__ = ("_end", "_owner", "bytes", "claimed_bytes")

    def __init__(self, owner: _Owner, end: Callable[[str], None]) -> None:
        self._owner: _Owner | None = owner
        self._end = end
        self.bytes = 0
        self.claimed_bytes = 0

    def claim(self, size_bytes: int, go_on: Callable[[], None] | None = None) -> bool:
        """Reserves memory; False if the owner has no room.

        Then `go_on` is called when it has: the memory is reserved by then.
        """
        owner = self._owner
        assert owner is not None, "the content has ended"
        if not owner.waiting and owner.has_room(size_bytes):
            self._take(owner, size_bytes)
            return True
        if go_on is not None:
            owner.waiting[self] = (size_bytes, go_on)
        return False

    @property
    def blocks_others(self) -> bool:
        """Whether other content of its owner waits for room."""
        return self._owner is not None and bool(self._owner.waiting)

    def grow(self, size_bytes: int) -> None:
        """Counts bytes that were received."""
        if self._owner is not None:
            self.bytes += size_bytes
            self._owner.grow(size_bytes)

    def close(self) -> None:
        """Ends the accounting of content that is complete or abandoned; may be called again."""
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
        """Closes it and calls its `end` with the reason."""
        self.close()
        self._end(reason)

    def _take(self, owner: _Owner, size_bytes: int) -> None:
        self.claimed_bytes += size_bytes
        owner.claimed_bytes += size_bytes


class PartialContents:
    """All content that is being received; `bytes` counts what is in memory."""

    def __init__(self) -> None:
        self.bytes = 0
        self.owner_max_bytes = sys.maxsize
        self._owners: dict[str, _Owner] = {}

    def begin(
        self, owner: str, end: Callable[[str], None], owner_max_bytes: int | None = None
    ) -> PartialContent:
        """Begins to account a message or request of an owner, see `PartialContent`. The owner may
        have `owner_max_bytes`, by default the limit of all owners."""
        found = self._owners.get(owner)
        if found is None:
            found = self._owners[owner] = _Owner(self, owner, owner_max_bytes)
        part = PartialContent(found, end)
        found.parts[part] = None
        part.grow(PART_BYTES)
        return part

    def shrink(self, to_bytes: int) -> None:
        """Ends content of the owner with the most bytes, the oldest first, until no more than
        `to_bytes` are left. A call ends a bounded number, of one owner."""
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
    """The content of one user, or of an address without a user."""

    __slots__ = ("_contents", "_max_bytes", "_name", "bytes", "claimed_bytes", "parts", "waiting")

    def __init__(self, contents: PartialContents, name: str, max_bytes: int | None) -> None:
        self._contents = contents
        self._name = name
        self._max_bytes = max_bytes
        self.bytes = 0
        self.claimed_bytes = 0
        self.parts: dict[PartialContent, None] = {}
        self.waiting: dict[PartialContent, tuple[int, Callable[[], None]]] = {}

    def has_room(self, size_bytes: int) -> bool:
        """Returns whether that much more fits. The first always does, or the largest message might
        never be accepted."""
        max_bytes = self._contents.owner_max_bytes if self._max_bytes is None else self._max_bytes
        return not self.claimed_bytes or self.claimed_bytes + size_bytes <= max_bytes

    def grow(self, size_bytes: int) -> None:
        self.bytes += size_bytes
        self._contents.bytes += size_bytes

    def leave(self, part: PartialContent) -> None:
        self.waiting.pop(part, None)
        self.grow(-part.bytes)
        self.claimed_bytes -= part.claimed_bytes
        del self.parts[part]
        if not self.parts:
            self._contents.forget(self._name)
