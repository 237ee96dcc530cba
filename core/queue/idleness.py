"""x-expires: deletes a queue that has not been used for so long.

A use is a consumer, a get, a declaration. The timer may fire early and is then set again, so a use
costs one assignment. After a restart the whole period begins again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..timers import Timer
    from .context import QueueContext
    from .queue import Queue


class Idleness:
    """Deletes the queue once it has been unused for `expires_ms`, never earlier."""

    __slots__ = ("_broker", "_expires_ms", "_queue", "_timer")

    def __init__(self, queue: Queue, broker: QueueContext, expires_ms: int) -> None:
        self._queue = queue
        self._broker = broker
        self._expires_ms = expires_ms
        self._timer: Timer = self._set_timer()

    def end(self) -> None:
        """Stops the timer: the rule was cleared, or the queue deleted."""
        self._timer.cancel()

    def _set_timer(self) -> Timer:
        due_ms = self._queue.last_used_ms + self._expires_ms
        return self._broker.timers.at(due_ms, self._check)

    def _check(self) -> None:
        queue, now_ms = self._queue, self._broker.now_ms
        if queue.ring is not None:
            queue.last_used_ms = now_ms
        if now_ms - queue.last_used_ms >= self._expires_ms:
            self._broker.delete_queue(queue)
        else:
            self._timer = self._set_timer()
