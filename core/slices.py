"""Long work in slices, so that nobody else waits for it.

Such work is an iterator that takes a step of at most some 50 us at a time; whoever starts it says
what is true between two steps. A slice is as many steps as fit into a millisecond, one at least
(`run_slice`). A step that has to wait for a disk yields a `Pause`. What the work holds it releases
in a `finally` or `with` of its own, and what goes wrong with one of many things must not keep the
others from being done (`for_each`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from functools import partial
from time import perf_counter
from typing import TypeVar

logger = logging.getLogger(__name__)

Item = TypeVar("Item")

SLICE_S = 0.001
SLICES_A_TURN = 3
"""What `Slices` takes of a turn: clients wait for what it does."""
SHORT_STEPS = 64
"""Work that is so short is done when `start` returns, however slow the machine is just now."""
RELEASED_AT_ONCE = 8


class Pause:
    """What a step yields if the next one has to wait: the work goes on when it `is_over`.

    Whoever can't wait may take the next step at once; what is awaited is then done in that step.
    """

    __slots__ = ("_resume", "is_over")

    def __init__(self) -> None:
        self.is_over = False
        self._resume: Callable[[], None] = _nothing

    def then(self, resume: Callable[[], None]) -> None:
        """Calls `resume` when it is over, at once if it is."""
        if self.is_over:
            resume()
        else:
            self._resume = resume

    def end(self) -> None:
        """Has the work go on."""
        self.is_over = True
        self._resume()


def _nothing() -> None:
    """Nobody waits."""


def run_slice(steps: Iterator[object], slices: float = 1, at_least: int = 1) -> bool | Pause:
    """Takes steps as long as so many slices last, and so many of them at least; True if there may
    be more of them, a `Pause` if they have to wait."""
    until_s = perf_counter() + slices * SLICE_S
    for taken, step in enumerate(steps, start=1):
        if isinstance(step, Pause):
            return step
        if taken >= at_least and perf_counter() >= until_s:
            return True
    return False


def for_each(items: Iterable[Item], action: Callable[[Item], object]) -> Iterator[None]:
    """Calls `action` with each item, one a step. An error is logged and ends that step alone."""
    for item in items:
        try:
            action(item)
        except Exception:
            logger.exception("internal error in a step of sliced work; the next steps follow")
        yield


def drain(items: deque[Item]) -> Iterator[Item]:
    """All of them, the first one first, each let go of as it is given."""
    while items:
        yield items.popleft()


def release(held: Sized, take: Callable[[], object]) -> Iterator[None]:
    """Empties a large collection that nobody needs any more with `take`, some items at a step:
    freeing a million at once takes half a second."""
    while held:
        for _ in range(min(len(held), RELEASED_AT_ONCE)):
            take()
        yield


Steps = Iterator[Pause | None]


class Slices:
    """The broker's sliced work, oldest first. A turn has `SLICES_A_TURN` for all of it.

    `wake` is called when work goes on after a pause.
    """

    def __init__(self, wake: Callable[[], None] = _nothing) -> None:
        self._wake = wake
        self._waiting: deque[Steps] = deque()
        self._paused: dict[Pause, Steps] = {}
        self._spent = 0.0
        """How many slices of this turn are used."""

    @property
    def busy(self) -> bool:
        """Whether `entry` is due."""
        return bool(self._waiting or self._spent)

    def start(self, work: Steps) -> None:
        """Takes the first step at once, and more of them as far as this turn has room."""
        at_least = SHORT_STEPS if self._spent < SLICES_A_TURN else 1
        if self._goes_on(work, 1, at_least):
            self._waiting.append(work)

    def run(self) -> bool:
        """Takes the slices of a turn; True if there is more to do."""
        self._spent = 0.0
        for others in range(len(self._waiting), 0, -1):
            work = self._waiting.popleft()
            if self._goes_on(work, others):
                self._waiting.append(work)
            if self._spent >= SLICES_A_TURN:
                break
        self._spent = 0.0
        return bool(self._waiting)

    def finish(self) -> None:
        """Does all of it now and waits for nothing: for a stop."""
        while self._waiting or self._paused:
            self._waiting.extend(self._paused.values())
            self._paused.clear()
            self.run()

    def _goes_on(self, work: Steps, others: int, at_least: int = 1) -> bool:
        """Gives it its share of what is left of the turn; False if it has ended, or pauses."""
        began_s = perf_counter()
        try:
            more = run_slice(work, (SLICES_A_TURN - self._spent) / others, at_least)
            if isinstance(more, Pause):
                self._paused[more] = work
                more.then(partial(self._resume, more))
                return False
            return more
        except Exception:
            logger.exception("internal error in sliced work, which has ended")
            return False
        finally:
            self._spent += (perf_counter() - began_s) / SLICE_S

    def _resume(self, pause: Pause) -> None:
        work = self._paused.pop(pause, None)
        if work is not None:
            self._waiting.append(work)
            self._wake()
