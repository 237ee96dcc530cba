"""PolicyUpdates through many queues, a slice at a time, so that nobody waits long for one.

The first slice is gone through at once, the rest in the turns that follow: a policy for a hundred
thousand queues takes seconds, and those who publish and consume go on meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..queue.context import QueueContext
    from .policy import Target

SLICE_CHECKS = 4_096
"""About 5 ms."""
CHECKS_PER_CHANGE = 16
"""What it costs to give a queue other rules, measured in looks at one that keeps its own."""

UpdateTarget = Callable[["Target"], bool]
"""Looks at a queue or exchange; True if that changed it."""


class _Round(NamedTuple):
    targets: Iterator[Target]
    update: UpdateTarget


class PolicyUpdates:
    """One after the other, in the order in which they began."""

    def __init__(self, broker: QueueContext) -> None:
        self._broker = broker
        self._rounds: deque[_Round] = deque()
        self._waiting: list[Callable[[], None]] = []

    def begin(self, targets: Iterable[Target], update: UpdateTarget) -> None:
        """`update` has to cope with targets that are gone when their turn comes."""
        self._rounds.append(_Round(iter(targets), update))
        if len(self._rounds) == 1:
            self._continue()

    def when_done(self, action: Callable[[], None]) -> None:
        """Runs `action` when no round is left: at once if there is none."""
        if self._rounds:
            self._waiting.append(action)
        else:
            action()

    def stop(self) -> None:
        """Leaves all rounds as they are."""
        self._rounds.clear()
        self._notify()

    def _continue(self) -> None:
        left = SLICE_CHECKS
        while self._rounds and left > 0:
            left = self._slice(self._rounds[0], left)
        if self._rounds:
            self._broker.timers.at(self._broker.now_ms + 1, self._continue)
            self._broker.on_work()
        else:
            self._notify()

    def _slice(self, current: _Round, left: int) -> int:
        """What is left of the slice; if anything is, the round is over."""
        for target in current.targets:
            left -= CHECKS_PER_CHANGE if current.update(target) else 1
            if left <= 0:
                return 0
        self._rounds.popleft()
        return left

    def _notify(self) -> None:
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()
