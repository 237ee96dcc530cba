"""Entries that the readers of a stream have read from disk ahead of their deliveries.

Readers at the same place share entries, so the bytes count once and headers are added once. An
entry is counted by its readers and goes with the last of them.
"""

from __future__ import annotations

from ..message.queue_entry import QueueEntry


class ReadAhead:
    """Entries in memory by the offset of their first message, with the number of their readers."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, tuple[QueueEntry, int]] = {}

    def get(self, offset: int) -> QueueEntry | None:
        """Returns the entry that begins at an offset, if a reader has it."""
        found = self._entries.get(offset)
        return None if found is None or not found[0].batch.resident else found[0]

    def acquire(self, offset: int, entry: QueueEntry) -> QueueEntry:
        """Counts a reader of what begins at an offset; returns the entry that others have of it,
        or else the one given. To be followed by `release`."""
        found = self.get(offset)
        if found is None or found.count != entry.count:  # Compaction may have split its record.
            found = entry
            self._entries[offset] = entry, 0
        self._entries[offset] = found, self._entries[offset][1] + 1
        return found

    def release(self, offset: int, entry: QueueEntry) -> None:
        """Ends one `acquire`; does nothing if another entry has taken the place since."""
        found = self._entries.get(offset)
        if found is None or found[0] is not entry:
            return
        if found[1] == 1:
            del self._entries[offset]
        else:
            self._entries[offset] = entry, found[1] - 1
