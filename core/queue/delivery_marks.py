"""Delivery marks: the messages of a durable queue that may be delivered before a crash.

They come back flagged as redelivered. A mark is logged before consumers begin to read, or a get
takes a message beyond the last mark; what arrives while there are consumers is logged with it. So
deliveries write nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..message.queue_entry import MessageRange

if TYPE_CHECKING:
    from ..store.port import Store
    from .queue import Queue

LOGGED_AHEAD: Final = 10_000
"""Sequence numbers that a logged mark is ahead of a get, so that few gets log one."""


class DeliveryMarks:
    """The highest sequence numbers of one queue that were delivered, and that are logged."""

    __slots__ = ("_by_priority", "_highest", "_logged_up_to")

    def __init__(self, *, has_priorities: bool) -> None:
        self._highest = 0
        self._by_priority: dict[int, int] | None = {} if has_priorities else None
        """The highest number delivered of each priority: lower ones may still be ready."""
        self._logged_up_to = 0

    def highest(self, queue_id: int) -> dict[tuple[int, int | None], int]:
        """Returns the highest number delivered, by queue id and priority (None for all)."""
        if self._by_priority is None:
            return {(queue_id, None): self._highest}
        found: dict[tuple[int, int | None], int] = {(queue_id, None): 0}
        for priority, sequence in self._by_priority.items():
            found[queue_id, priority] = sequence
        return found

    def note(self, queue: Queue, messages: MessageRange, store: Store) -> None:
        """Notes messages that are delivered now."""
        last = messages.entry.sequence(messages.high - 1)
        if last > self._highest:
            self._highest = last
            if last > self._logged_up_to and not queue.has_consumers:
                self._logged_up_to = last + LOGGED_AHEAD
                store.delivered(queue, self._logged_up_to)
        if self._by_priority is not None:
            priority = messages.entry.batch.attributes.priority
            before = self._by_priority.get(priority, 0)
            self._by_priority[priority] = max(before, last)

    def log_all(self, queue: Queue, store: Store) -> int:
        """Logs that all messages may be delivered from now on; returns the commit to wait for."""
        self._logged_up_to = store.reserve(0) - 1
        return store.delivered(queue, self._logged_up_to)

    def log_next(self, queue: Queue, sequence: int, store: Store) -> int:
        """Logs that the message with this number may be delivered; returns the commit to wait for,
        0 if it is logged already."""
        if sequence > self._logged_up_to:
            self._logged_up_to = sequence + LOGGED_AHEAD
        return store.delivered(queue, self._logged_up_to)
