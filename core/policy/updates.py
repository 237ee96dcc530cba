"""Updates many queues and exchanges after a policy change, in slices.

The first slice is done at once, the rest in later turns: a policy for a hundred thousand queues
takes seconds, and publishers and consumers are served meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ..queue.context import QueueContext
    from .policy import Target

SLICE_CHECKS: Final = 4_096
"""Checks in one slice, about 5 ms."""
SLICE_S: Final = 0.005
"""A slice takes no longer, though patterns may need as many steps as they have."""
SHORT_CHECKS: Final = 16
"""So many targets are updated in a slice, even on a slow machine."""
CHECKS_PER_CHANGE: Final = 16
"""The cost of changing a queue's rules, in checks of a queue whose rules stay."""

UpdateTarget = Callable[["Target"], bool]
"""Updates a queue or exchange; returns whether that changed it."""


class _Update(NamedTuple):
    targets: Iterator[Target]
    update: UpdateTarget


class PolicyUpdates:
    """The updates in progress, one after the other in the order in which they began."""

    def __init__(self, broker: QueueContext) -> None:
        self._broker = broker
        self._updates: deque[_Update] = deque()
        self._waiting: list[Callable[[], None]] = []

    def begin(self, targets: Iterable[Target], update: UpdateTarget) -> None:
        """Starts an update of all targets; some may be deleted when `update` gets them."""
        self._updates.append(_Update(iter(targets), update))
        if len(self._updates) == 1:
            self._continue()

    def when_done(self, action: Callable[[], None]) -> None:
        """Runs `action` when all updates are done: at once if there are none."""
        if self._updates:
            self._waiting.append(action)
        else:
            action()

    def stop(self) -> None:
        """Stops all updates."""
        self._updates.clear()
        self._notify()

    def _continue(self) -> None:
        left, until_s = SLICE_CHECKS, perf_counter() + SLICE_S
        while self._updates and left > 0:
            left = self._slice(self._updates[0], left, until_s)
        if self._updates:
            self._broker.timers.at(self._broker.now_ms + 1, self._continue)
            self._broker.on_work()
        else:
            self._notify()

    def _slice(self, current: _Update, left: int, until_s: float) -> int:
        """Continues one update; returns the checks left in the slice, 0 if it is not done."""
        for number, target in enumerate(current.targets, 1):
            left -= CHECKS_PER_CHANGE if current.update(target) else 1
            if left <= 0 or (number >= SHORT_CHECKS and perf_counter() >= until_s):
                return 0
        self._updates.popleft()
        return left

    def _notify(self) -> None:
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()
