"""The length limits of a queue, x-max-length and x-max-length-bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..message.batch import MessageRange, QueueEntry
from .rules import Rules

if TYPE_CHECKING:
    from .backlog_queue import BacklogQueue


def over_limit(queue: BacklogQueue, rules: Rules, entry: QueueEntry) -> bool:
    """Returns whether the queue would exceed its limit of ready messages or bytes with an entry.

    Unacked messages do not count, so a queue is dispatched before it is asked.
    """
    if rules.max_length is not None and queue.ready_count + entry.count > rules.max_length:
        return True
    if rules.max_length_bytes is None:
        return False
    return (
        queue.ready_bytes + MessageRange(entry, 0, entry.count).body_bytes()
        > rules.max_length_bytes
    )


def excess_count(queue: BacklogQueue, rules: Rules) -> int:
    """Returns how many messages to drop from the head of a queue that exceeds its limits.

    It is 1 while the limit in bytes is exceeded, and the caller asks again. Messages not read since
    the start have no bytes yet.
    """
    if rules.max_length is not None and queue.ready_count > rules.max_length:
        return queue.ready_count - rules.max_length
    return int(rules.max_length_bytes is not None and queue.ready_bytes > rules.max_length_bytes)
