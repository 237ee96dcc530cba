"""Checks that queues which reject publishes have capacity for a transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..errors import QueueFull
from ..queue.backlog_queue import BacklogQueue
from ..queue.rules import Rules

if TYPE_CHECKING:
    from ..queue.queue import Queue
    from ..vhost import VirtualHost


class CapacityCheck:
    """Counts the messages of a transaction by queue; `check` raises for a queue without capacity.

    Messages are counted for queues that reject publishes when the messages are buffered. Policies
    may change until the commit, so the queues that get others are remembered too.
    """

    __slots__ = ("_counted", "_uncounted", "_vhost")

    def __init__(self, vhost: VirtualHost) -> None:
        self._vhost = vhost
        self._counted: dict[Queue, list[int]] = {}
        """Messages and bytes of each queue."""
        self._uncounted: set[Queue] = set()

    def count(self, queues: Iterable[Queue], body_bytes: int) -> None:
        """Counts a message to each of the queues that reject publishes."""
        for queue in queues:
            if _rejecting(queue) is None:
                self._uncounted.add(queue)
            else:
                counts = self._counted.setdefault(queue, [0, 0])
                counts[0] += 1
                counts[1] += body_bytes

    def note_uncounted(self, queues: Iterable[Queue]) -> None:
        """Notes queues that get messages which are not counted."""
        self._uncounted.update(queues)

    def check(self) -> None:
        """Raises `QueueFull` for a queue without capacity, and for one that began to reject
        publishes after some messages had been buffered for it."""
        for queue in self._uncounted:
            existing = self._existing(queue)
            if existing is not None and _rejecting(existing) is not None:
                raise QueueFull(
                    406,
                    f"{self._named(existing)} now rejects publishes when full; retry the commit",
                )
        for queue, (messages, body_bytes) in self._counted.items():
            existing = self._existing(queue)
            if existing is not None:
                self._require(existing, messages, body_bytes)

    def _existing(self, queue: Queue) -> Queue | None:
        """Returns the queue, or the one that has its name now."""
        return self._vhost.queues.get(queue.name) if queue.deleted else queue

    def _require(self, queue: Queue, messages: int, body_bytes: int) -> None:
        rules = _rejecting(queue)
        if rules is None or not isinstance(queue, BacklogQueue):
            return
        for name, has, more, limit in (
            ("messages", queue.ready_count, messages, rules.max_length),
            ("bytes", queue.ready_bytes, body_bytes, rules.max_length_bytes),
        ):
            if limit is not None and has + more > limit:
                raise QueueFull(
                    406,
                    f"{self._named(queue)} is full: {has} + {more} {name} exceed its limit of "
                    f"{limit}",
                )

    def _named(self, queue: Queue) -> str:
        return f"queue '{queue.name}' in vhost '{self._vhost.name}'"


def _rejecting(queue: Queue) -> Rules | None:
    """Returns the rules by which a queue rejects publishes; None if it does not."""
    rules = queue.rules
    if rules is None or not rules.limited or rules.overflow == "drop-head":
        return None
    return rules if isinstance(queue, BacklogQueue) else None
