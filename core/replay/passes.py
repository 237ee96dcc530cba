"""The scans by which a replay finds the stored messages that a binding asks for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..route.persistence import ReplayRequest

FOREVER: Final = 2**63
WINDOW: Final = 1_000
"""Messages scanned first when the last matching ones are requested; then twice as many, further
back, so that a long history is not read for its last ten."""


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
        """Whether it is the scan of messages published since the binding was requested."""
        return self.stop == FOREVER


def passes(request: ReplayRequest, first: int, end: int, oldest_ms: int | None) -> Iterator[Pass]:
    """Yields the scans for a binding made when offsets `first` to `end - 1` were stored."""
    past = partial(Pass, stop=end, oldest_ms=oldest_ms)
    if request.since is not None:
        yield past(request.since if first <= request.since <= end else first)
    elif request.head is not None and request.head >= 0:
        yield past(first, left=request.head)
    elif request.tail is not None and request.tail < 0:
        yield past(first, skip=-request.tail)
    else:
        yield from _from_the_end(request, first, end, past)
    yield Pass(end, FOREVER)


def _from_the_end(
    request: ReplayRequest, first: int, end: int, past: Callable[..., Pass]
) -> Iterator[Pass]:
    """Yields the scans, from the end backwards, that find the last messages that match."""
    left = -request.head if request.head is not None else request.tail or 0
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
    if request.head is None:
        yield past(oldest)
    elif not left:
        yield replace(past(first), stop=oldest)
