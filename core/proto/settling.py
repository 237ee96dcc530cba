"""Many deliveries of a channel that are settled together, a delivery at a time (`Slices`).

Between two slices all tags are known to be settled. A message that was not looked at yet counts as
unacknowledged; one that comes back is in no queue until all have been looked at, and its queue
hands out nothing until all are back, so that none is overtaken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from ..slices import for_each
from .commit import Settlement

if TYPE_CHECKING:
    from ..block import Span
    from ..queue.queue import Queue
    from ..queue.unacked import Piece
    from .channel import Channel


def settle(channel: Channel, pieces: Iterable[Piece], settlement: Settlement) -> Iterator[None]:
    """Acknowledges or rejects."""

    def settle_one(piece: Piece) -> None:
        try:
            settlement(piece)
        finally:
            channel.credit_back([piece])

    return for_each(pieces, settle_one)


def give_back(channel: Channel, pieces: Iterable[Piece], *, failed: bool) -> Iterator[None]:
    """Requeues; from the first step on the queues hand out nothing until all is back.

    Looks at the oldest first, for where there is a limit they are the first dead letters; the
    newest are put back first, which takes no search for their place.
    """
    back: list[tuple[Queue, Span]] = []

    def take_back(piece: Piece) -> None:
        queue = piece.queue
        try:
            back.extend((queue, part) for part in queue.come_back(piece.span, failed=failed))
        finally:
            channel.credit_back([piece])

    with ExitStack() as returns:
        for queue in channel.sources:
            returns.enter_context(queue.returning())
        yield from for_each(pieces, take_back)
        yield from for_each(iter(partial(_pop, back), None), _put_back)


def _pop(back: list[tuple[Queue, Span]]) -> tuple[Queue, Span] | None:
    return back.pop() if back else None


def _put_back(held: tuple[Queue, Span]) -> None:
    queue, span = held
    queue.put_back(span)
