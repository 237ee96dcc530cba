"""x-single-active-consumer: one consumer gets all messages, the others wait until it is removed.

The first consumer is active; when it is removed, the next one is, in the order in which they were
added. The unacked messages of the former one stay with it.
"""

from __future__ import annotations

from collections import deque

from .consumer import Consumer, ConsumerRing


class SingleActiveRing(ConsumerRing):
    """A ring in which only the active consumer gets messages."""

    __slots__ = ("_line",)

    def __init__(self) -> None:
        super().__init__()
        self._line: deque[Consumer] = deque()

    @property
    def active(self) -> Consumer | None:
        return next(iter(self.members), None)

    def can_take_one(self) -> bool:
        active = self.active
        return active is not None and active.open and active.credit() > 0

    def remove(self, consumer: Consumer) -> None:
        del self.members[consumer]
        consumer.open = False
        self._line.clear()
        active = self.active
        if active is not None:
            self.open(active)

    def open(self, consumer: Consumer) -> None:
        consumer.open = True
        if consumer is self.active and consumer not in self._line:
            self._line.append(consumer)

    def ready_consumers(self) -> deque[Consumer] | None:
        return self._line or None
