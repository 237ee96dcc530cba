"""Runs long work in slices, so that other work of the broker does not wait for it.

Such work is an iterator whose steps take at most about 50 us each; state must be consistent between
two steps. A slice is as many steps as fit into a millisecond, at least one (`run_slice`), by the
clock of the broker, so that in tests it is a number of steps. A step that has to wait for the disk
yields a `Pause`. Work releases its resources in a `finally` or `with`
of its own, and an error with one item must not stop the others (`for_each`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from .clock import Clock

logger = logging.getLogger(__name__)

Item = TypeVar("Item")

SLICE_S: Final = 0.001
SLICES_A_TURN: Final = 3
"""Slices that `Slices` runs in a turn, so at most 3 ms."""
SHORT_STEPS: Final = 64
"""Work with at most this many steps is done when `start` returns, even on a slow machine."""
RELEASED_AT_ONCE: Final = 8


class Pause:
    """A wait between two steps, yielded by the first one: work continues when the pause `is_over`.

    A caller that can't wait may take the next step at once; that step does the awaited work itself.
    """

    __slots__ = ("_resume", "is_over")

    def __init__(self) -> None:
        self.is_over = False
        self._resume: Callable[[], None] = _nothing

    def then(self, resume: Callable[[], None]) -> None:
        """Calls `resume` when the pause is over, or at once if it is over already."""
        if self.is_over:
            resume()
        else:
            self._resume = resume

    def end(self) -> None:
        """Ends the pause and resumes the work."""
        self.is_over = True
        self._resume()


def _nothing() -> None:
    """Does nothing."""


def run_slice(
    steps: Iterator[object], clock: Clock, slices: float = 1, at_least: int = 1
) -> bool | Pause:
    """Takes steps for the time of that many slices, but at least `at_least` steps; returns True if
    there may be more, or a `Pause` if the next one has to wait."""
    now_s = clock.work_s
    until_s = now_s() + slices * SLICE_S
    for taken, step in enumerate(steps, start=1):
        if isinstance(step, Pause):
            return step
        if taken >= at_least and now_s() >= until_s:
            return True
    return False


def for_each(items: Iterable[Item], action: Callable[[Item], object]) -> Iterator[None]:
    """Calls `action` with one item in each step. An error is logged and ends only that step."""
    for item in items:
        try:
            action(item)
        except Exception:
            logger.exception("internal error in a background step; continuing with the next step")
        yield


def drain(items: deque[Item]) -> Iterator[Item]:
    """Yields the items in order, removing each from the queue."""
    while items:
        yield items.popleft()


def release(collection: Sized, take: Callable[[], object]) -> Iterator[None]:
    """Empties a large unused collection with calls of `take`, some in each step: freeing a million
    items at once takes half a second."""
    while collection:
        for _ in range(min(len(collection), RELEASED_AT_ONCE)):
            take()
        yield


Steps = Iterator[Pause | None]


class Slices:
    """The broker's sliced work, oldest first. All of it gets `SLICES_A_TURN` slices in a turn.

    `wake` is called when work can continue after a pause.
    """

    def __init__(self, clock: Clock, wake: Callable[[], None] = _nothing) -> None:
        self._clock = clock
        self._wake = wake
        self._waiting: deque[Steps] = deque()
        self._paused: dict[Pause, Steps] = {}
        self._used_slices = 0.0
        """Slices used in this turn."""

    @property
    def busy(self) -> bool:
        """Whether `run` has work to do."""
        return bool(self._waiting or self._used_slices)

    def start(self, work: Steps) -> None:
        """Starts work: takes the first step at once, and more if this turn has time for them."""
        at_least = SHORT_STEPS if self._used_slices < SLICES_A_TURN else 1
        if self._continue(work, 1, at_least):
            self._waiting.append(work)

    def start_soon(self, work: Steps) -> None:
        """Starts work in a later slice, so that thousands who start at once stay within turns."""
        self._waiting.append(work)
        self._wake()

    def run(self) -> bool:
        """Runs the slices of a turn; True if there is more to do."""
        self._used_slices = 0.0
        for others in range(len(self._waiting), 0, -1):
            work = self._waiting.popleft()
            if self._continue(work, others):
                self._waiting.append(work)
            if self._used_slices >= SLICES_A_TURN:
                break
        self._used_slices = 0.0
        return bool(self._waiting)

    def finish(self) -> None:
        """Completes all work without waiting for pauses; for a server that stops."""
        while self._waiting or self._paused:
            self._waiting.extend(self._paused.values())
            self._paused.clear()
            self.run()

    def _continue(self, work: Steps, others: int, at_least: int = 1) -> bool:
        """Runs one piece of work for its share of the rest of the turn; False if it has ended or
        pauses."""
        began_s = self._clock.work_s()
        try:
            share = (SLICES_A_TURN - self._used_slices) / others
            more = run_slice(work, self._clock, share, at_least)
            if isinstance(more, Pause):
                self._paused[more] = work
                more.then(partial(self._resume, more))
                return False
            return more
        except Exception:
            logger.exception("internal error in background work; it was abandoned")
            return False
        finally:
            self._used_slices += (self._clock.work_s() - began_s) / SLICE_S

    def _resume(self, pause: Pause) -> None:
        work = self._paused.pop(pause, None)
        if work is not None:
            self._waiting.append(work)
            self._wake()
