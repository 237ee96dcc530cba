"""Figures about the messages of a queue that nothing counts as they come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .backlog_queue import BacklogQueue
from .page_out import average_bytes
from .queue import Queue
from .stream import StreamQueue

if TYPE_CHECKING:
    from ..store.port import Store


def message_bytes(queue: Queue) -> int:
    """Returns about the size of ready and unacknowledged messages, wherever they are: of streams as
    they are on disk, of others by the size of the newest."""
    if isinstance(queue, StreamQueue):
        return queue.log.size_bytes
    assert isinstance(queue, BacklogQueue), "there are no other kinds"
    count = queue.ready_count + queue.unacked_count
    return count * average_bytes(queue.backlog) if count else 0


def persistent_count(queue: Queue, store: Store) -> int:
    """Returns how many ready and unacknowledged messages are persistent."""
    count = queue.ready_count + queue.unacked_count
    # Purged messages are settled later, in slices.
    return min(count, store.persistent_count(queue)) if count else 0
