"""x-max-length and x-max-length-bytes: whether a queue has room for an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..message.batch import MessageRange, QueueEntry
from .rules import Rules

if TYPE_CHECKING:
    from .queue import Queue


def over_limit(queue: Queue, rules: Rules, entry: QueueEntry) -> bool:
    """True if the queue would hold more ready messages or bytes than it may.

    What consumers have taken does not count, so a queue is dispatched before it is asked.
    """
    if rules.max_length is not None and queue.ready_count + entry.count > rules.max_length:
        return True
    if rules.max_length_bytes is None:
        return False
    return (
        queue.ready_bytes + MessageRange(entry, 0, entry.count).body_bytes()
        > rules.max_length_bytes
    )
