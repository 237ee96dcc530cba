"""Many deliveries of a channel that are settled together, a delivery at a time (`Slices`).

Between two slices all tags are known to be settled. A message that was not looked at yet counts as
unacknowledged; one that comes back is in no queue until all have been looked at, and its queue
hands out nothing until all are back, so that none is overtaken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .commit import Settlement

if TYPE_CHECKING:
    from ..block import Span
    from ..queue.queue import Queue
    from ..queue.unacked import Piece
    from .channel import Channel


def settle(channel: Channel, pieces: Iterable[Piece], settlement: Settlement) -> Iterator[None]:
    """Acknowledges or rejects."""
    for piece in pieces:
        settlement(piece)
        channel.credit_back([piece])
        yield


def give_back(channel: Channel, pieces: Iterable[Piece], *, failed: bool) -> Iterator[None]:
    """Requeues; from now on the queues hand out nothing until all is back."""
    held = tuple(channel.sources)
    for queue in held:
        queue.begin_return()
    return _give_back(channel, pieces, held, failed=failed)


def _give_back(
    channel: Channel, pieces: Iterable[Piece], held: tuple[Queue, ...], *, failed: bool
) -> Iterator[None]:
    """Looks at the oldest first, for where there is a limit they are the first dead letters; the
    newest are put back first, which takes no search for their place."""
    try:
        back: list[tuple[Queue, Span]] = []
        for piece in pieces:
            parts = piece.queue.come_back(piece.span, failed=failed)
            back += [(piece.queue, part) for part in parts]
            channel.credit_back([piece])
            yield
        while back:
            queue, span = back.pop()
            queue.put_back(span)
            yield
    finally:
        for queue in held:
            queue.end_return()
