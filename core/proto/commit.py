"""The commit of a transaction: what it puts into queues, settles and makes dead letters of.

All of it is one group in the store. Dead letters are made first, in slices beside other work, for
their messages may have to be read from disk; then everything takes effect in one step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..mover import DeadLetter, MoveGroup
from ..queue.unacked import Piece
from ..slices import drain
from . import settling
from .held import HeldBatch, HeldOne

if TYPE_CHECKING:
    from ..queue.queue import Queue
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
    """One tx.commit: `prepare`, and as soon as it `is_ready`, `apply`.

    `ready` is called when its dead letters are made. One that `is_long` settles so much that it is
    noted in slices, logged in the step that applies it, and counted in slices behind that.
    """

    __slots__ = (
        "_back", "_channel", "_done", "_group", "_is_prepared", "_lasts", "_many", "_noted",
        "_others", "_publishes", "_queues", "_ready", "_settlements", "held_bytes", "is_long",
    )  # fmt: skip

    def __init__(
        self,
        channel: Channel,
        publishes: list[HeldBatch | HeldOne],
        settlements: list[tuple[Settlement, Iterable[Piece]]],
        held_bytes: int,
        ready: Callable[[], None],
        *,
        is_long: bool,
    ) -> None:
        self._channel = channel
        self._publishes = publishes
        self._settlements = settlements
        self.held_bytes = held_bytes
        self.is_long = is_long
        self._ready = ready
        self._group: MoveGroup | None = None
        self._is_prepared = False
        self._lasts = False
        self._many = channel.broker.store.many_settled()
        self._done: list[Piece] = []
        self._noted: deque[Piece] = deque()
        self._back: deque[Piece] = deque()
        self._queues: dict[Queue, None] = {}
        """Where those noted come from."""
        self._others: list[tuple[Settlement, Piece]] = []

    def prepare(self) -> Iterator[None]:
        """Sorts what is settled by how, and has the dead letters made."""
        letters: list[DeadLetter] = []
        for settlement, pieces in self._settlements:
            for piece in pieces:
                self._sort(settlement, piece, letters)
                yield
        self._settlements = []
        if letters:
            self._group = self._channel.broker.gather(letters, self._ready)
        self._is_prepared = True

    def _sort(self, settlement: Settlement, piece: Piece, letters: list[DeadLetter]) -> None:
        queue = piece.queue
        self._lasts |= queue.durable
        if not self.is_long or queue.counts_returns or makes_letters(settlement, queue):
            self._done.append(piece)
            for other in _without_letters(settlement, piece, letters):
                self._others.append((settlement, other))
        elif settlement in (acknowledge, reject):
            queue.note_settled(piece.span, self._many)
            self._noted.append(piece)
            self._queues[queue] = None
        else:
            self._back.append(piece)

    @property
    def is_ready(self) -> bool:
        return self._is_prepared and (self._group is None or self._group.is_ready)

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
            if self._noted:
                for queue in self._queues:
                    if queue.deleted:
                        self._many.forget(queue.id)
                self._many.log()
        # Not before all is settled: credit that comes back brings deliveries.
        self._channel.credit_back(self._done)
        if self._noted or self._back:
            slices = self._channel.broker.slices
            slices.start(settling.count(self._channel, drain(self._noted), self._many))
            slices.start(settling.give_back(self._channel, drain(self._back), failed=False))
        return store.barrier() if lasts or self._lasts else 0, complete


def makes_letters(settlement: Settlement, queue: Queue) -> bool:
    """Whether a settlement may bring dead letters."""
    rules = queue.rules
    if settlement is acknowledge or rules is None or rules.dead_letter_exchange is None:
        return False
    return settlement is reject or rules.delivery_limit is not None


def letter_bytes(settlement: Settlement, piece: Piece) -> int:
    """About what the dead letters of a settlement may take until the commit."""
    block = piece.span.run.block
    if not makes_letters(settlement, piece.queue):
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
