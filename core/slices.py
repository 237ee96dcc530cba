"""Long work in slices, so that nobody else waits for it.

Whoever starts such work says what is true between its slices and what bounds one step. `Slices`
takes a bounded number of steps in each turn of the broker, `run_slice` as many as fit into a
millisecond.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sized
from itertools import islice
from time import perf_counter

logger = logging.getLogger(__name__)

SLICE_S = 0.001
STEPS_A_TURN = 250
"""Steps of about 10 us, such as putting a message back: 3 ms."""
RELEASED_AT_ONCE = 8


def run_slice(steps: Iterator[object]) -> bool:
    """Takes steps for a millisecond, one at least; True if there may be more of them."""
    until_s = perf_counter() + SLICE_S
    return any(perf_counter() > until_s for _ in steps)


def release(held: Sized, take: Callable[[], object]) -> Iterator[None]:
    """Empties a large collection that nobody needs any more with `take`, some items at a step:
    freeing a million at once takes half a second."""
    while held:
        for _ in range(min(len(held), RELEASED_AT_ONCE)):
            take()
        yield


class Slices:
    """Work that is not finished, oldest first; each is an iterator that makes a step at a time."""

    def __init__(self) -> None:
        self._waiting: deque[Iterator[None]] = deque()
        self._left = STEPS_A_TURN

    @property
    def busy(self) -> bool:
        """Whether `run` is due."""
        return bool(self._waiting) or self._left != STEPS_A_TURN

    def start(self, work: Iterator[None]) -> None:
        """Does as much of it as there is room for in this turn, the rest in later ones."""
        if not self._finishes(work, self._left):
            self._waiting.append(work)

    def run(self) -> bool:
        """The slice of a turn; True if there is more to do."""
        self._left = STEPS_A_TURN
        for others in range(len(self._waiting), 0, -1):
            if not self._left:
                break
            work = self._waiting.popleft()
            if not self._finishes(work, max(1, self._left // others)):
                self._waiting.append(work)
        self._left = STEPS_A_TURN
        return bool(self._waiting)

    def _finishes(self, work: Iterator[None], limit: int) -> bool:
        done = 0
        try:
            for _ in islice(work, limit):
                done += 1
        except Exception:
            logger.exception("internal error in work that goes on in slices; it has ended")
            return True
        finally:
            self._left = max(0, self._left - done)
        return done < limit
