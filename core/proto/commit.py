"""The commit of a transaction: what it puts into queues, settles and makes dead letters of.

All of it is one group in the store. Dead letters are made first, in slices beside other work, for
their messages may have to be read from disk; then everything takes effect in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..mover import DeadLetter
from ..queue.unacked import Piece
from .held import HeldBatch, HeldOne

if TYPE_CHECKING:
    from .channel import Channel

Settlement = Callable[[Piece], None]


def acknowledge(piece: Piece) -> None:
    piece.queue.settle(piece.span)


def give_back(piece: Piece) -> None:
    piece.queue.requeue(piece.span, failed=False)


def fail(piece: Piece) -> None:
    piece.queue.requeue(piece.span, failed=True)


def reject(piece: Piece) -> None:
    piece.queue.reject(piece.span)


class Commit:
    """One tx.commit; `ready` is called when it can be applied, if it can't be now."""

    __slots__ = ("_channel", "_group", "_others", "_publishes", "_settlements", "held_bytes")

    def __init__(
        self,
        channel: Channel,
        publishes: list[HeldBatch | HeldOne],
        settlements: list[tuple[Settlement, list[Piece]]],
        held_bytes: int,
        ready: Callable[[], None],
    ) -> None:
        self._channel = channel
        self._publishes = publishes
        self._settlements = settlements
        self.held_bytes = held_bytes
        letters: list[DeadLetter] = []
        self._others = [
            (settlement, other)
            for settlement, pieces in settlements
            for piece in pieces
            for other in _without_letters(settlement, piece, letters)
        ]
        self._group = channel.broker.gather(letters, ready) if letters else None

    @property
    def is_ready(self) -> bool:
        return self._group is None or self._group.is_ready

    def apply(self) -> tuple[int, bool]:
        """Makes everything true; gives the commit number to wait for, and whether every queue
        took what it was given."""
        store = self._channel.broker.store
        with store.together():
            complete, lasts = _hand_over(self._publishes)
            if self._group is not None:
                lasts |= self._group.hand_over() != 0
            for settlement, piece in self._others:
                settlement(piece)
        # Not before all is settled: credit that comes back brings deliveries.
        for _, pieces in self._settlements:
            self._channel.credit_back(pieces)
            lasts |= any(piece.queue.durable for piece in pieces)
        return store.barrier() if lasts else 0, complete


def letter_bytes(settlement: Settlement, piece: Piece) -> int:
    """About what the dead letters of a settlement may take until the commit."""
    rules, block = piece.queue.rules, piece.span.run.block
    if settlement is acknowledge or rules is None or rules.dead_letter_exchange is None:
        return 0
    if settlement is not reject and rules.delivery_limit is None:
        return 0
    return block.size_bytes * piece.span.count // block.count


def _without_letters(
    settlement: Settlement, piece: Piece, letters: list[DeadLetter]
) -> Iterator[Piece]:
    """Adds the dead letters that a settlement brings; gives what is left of it."""
    queue, span = piece.queue, piece.span
    if not letter_bytes(settlement, piece):
        yield piece
    elif settlement is reject:
        letters.append(DeadLetter(queue, span, "rejected"))
    else:
        for part, dies in queue.dying(span, failed=settlement is fail):
            if dies:
                letters.append(DeadLetter(queue, part, "delivery_limit"))
            else:
                yield piece._replace(span=part)


def _hand_over(publishes: Sequence[HeldBatch | HeldOne]) -> tuple[bool, bool]:
    """Gives whether every queue took what it was given, and whether the disk is to have any."""
    complete, lasts = True, False
    for publish in publishes:
        accepted, commit = publish.hand_over()
        complete &= accepted
        lasts |= commit != 0
    return complete, lasts
