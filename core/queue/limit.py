"""The length limits of a queue, x-max-length and x-max-length-bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .rules import Rules

if TYPE_CHECKING:
    from .backlog_queue import BacklogQueue


def over_limit(queue: BacklogQueue, rules: Rules, body_bytes: int) -> bool:
    """Returns whether one more message would exceed the limit of ready messages or bytes.

    Unacked messages do not count, so a queue is dispatched before.
    """
    if rules.max_length is not None and queue.ready_count >= rules.max_length:
        return True
    if rules.max_length_bytes is None:
        return False
    return queue.ready_bytes + body_bytes > rules.max_length_bytes


def excess_count(queue: BacklogQueue, rules: Rules) -> int:
    """Returns how many messages to drop from the head of a queue that exceeds its limits.

    It is 1 while the limit in bytes is exceeded, and the caller calls again. Messages that have not
    been read since the start have no bytes yet.
    """
    if rules.max_length is not None and queue.ready_count > rules.max_length:
        return queue.ready_count - rules.max_length
    return int(rules.max_length_bytes is not None and queue.ready_bytes > rules.max_length_bytes)
