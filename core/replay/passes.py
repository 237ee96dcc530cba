"""What a new binding of a persistent exchange gets of the past, as ways through the offsets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..route.persistence import ReplayRequest

FOREVER = 2**63
WINDOW = 1_000
"""Messages that are looked at first when the last ones that match are wanted; then twice as many,
further back: nobody reads a long past for its last ten."""


@dataclass(slots=True)
class Pass:
    """One scan of offsets `start` to `stop - 1`.

    The first `skip` messages that match are skipped, the next `left` are published; with `offsets`
    their offsets are only noted there. Messages that arrived before `oldest_ms` (monotonic) are
    skipped too.
    """

    start: int
    stop: int
    left: int = FOREVER
    skip: int = 0
    offsets: deque[int] | None = None
    oldest_ms: int | None = None

    @property
    def is_last(self) -> bool:
        """Whether it is the one through what has come since the binding was asked for."""
        return self.stop == FOREVER


def passes(wanted: ReplayRequest, first: int, end: int, oldest_ms: int | None) -> Iterator[Pass]:
    """What is to be done for a binding made when offsets `first` to `end - 1` were kept."""
    past = partial(Pass, stop=end, oldest_ms=oldest_ms)
    if wanted.since is not None:
        yield past(wanted.since if first <= wanted.since <= end else first)
    elif wanted.head is not None and wanted.head >= 0:
        yield past(first, left=wanted.head)
    elif wanted.tail is not None and wanted.tail < 0:
        yield past(first, skip=-wanted.tail)
    else:
        yield from _from_the_end(wanted, first, end, past)
    yield Pass(end, FOREVER)


def _from_the_end(
    wanted: ReplayRequest, first: int, end: int, past: Callable[..., Pass]
) -> Iterator[Pass]:
    """Which are the last so many that match is known only after looking at them."""
    left = -wanted.head if wanted.head is not None else wanted.tail or 0
    oldest = stop = end
    width = max(left, WINDOW)
    while left and stop > first:
        start = max(first, stop - width)
        offsets: deque[int] = deque(maxlen=min(left, stop - start))
        yield replace(past(start, offsets=offsets), stop=stop)
        if offsets:
            oldest = offsets[0]
        left -= len(offsets)
        stop, width = start, 2 * width
    if wanted.head is None:
        yield past(oldest)
    elif not left:
        yield replace(past(first), stop=oldest)
