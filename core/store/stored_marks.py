"""Delivery marks: up to which sequence number messages of a queue were delivered.

After a crash, messages of a queue up to its mark are marked as redelivered.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import small_records


class StoredMarks:
    """The marks by queue id, and by queue id and priority; those of earlier processes are `old`."""

    __slots__ = ("by_priority", "by_queue", "commit", "new", "old", "old_by_priority")

    def __init__(self, by_queue: dict[int, int], by_priority: dict[tuple[int, int], int]) -> None:
        self.by_queue = by_queue
        self.by_priority = by_priority
        self.old: Mapping[int, int] = dict(by_queue)
        self.old_by_priority: Mapping[tuple[int, int], int] = dict(by_priority)
        self.new: dict[int, int] = {}
        """Marks that are not logged yet."""
        self.commit = 0
        """The commit number of the last mark."""

    def set(self, queue_id: int, sequence: int) -> bool:
        """Raises the mark of a queue; False if it is at least that high already."""
        if self.by_queue.get(queue_id, 0) >= sequence:
            return False
        self.by_queue[queue_id] = self.new[queue_id] = sequence
        return True

    def take(self) -> bytes:
        """Returns the body of a record with the new marks."""
        new, self.new = self.new, {}
        return small_records.encode_marks(new)

    def forget(self, queue_id: int) -> None:
        """Drops the mark of a queue that was deleted."""
        self.new.pop(queue_id, None)
        self.by_queue.pop(queue_id, None)

    def set_exactly(self, delivered: Mapping[tuple[int, int | None], int]) -> None:
        """Sets the marks to what was delivered, by queue id and priority, None for all priorities;
        drops those of deleted queues."""
        there = {queue_id for queue_id, _ in delivered}
        old = self.old_by_priority
        for key in [key for key in self.by_priority if key[0] not in there]:
            del self.by_priority[key]
        for (queue_id, priority), sequence in delivered.items():
            if priority is None:
                self.by_queue[queue_id] = max(sequence, self.old.get(queue_id, 0))
            else:
                key = queue_id, priority
                self.by_priority[key] = max(sequence, old.get(key, 0))
