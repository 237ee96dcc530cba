"""Transactions of one channel (AMQP 0-9-1 1.9): publishes and acks that count together.

What is published and settled is checked at once and kept here. A commit puts the publishes into
their queues, in order, then settles, all as one group in the store; its OK goes out when the
disk has the group. A rollback forgets the publishes, and the deliveries are outstanding again. A
channel that closes is rolled back.

Commits of many channels share syncs, for each waits for a number that others wait for too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import precondition_failed
from ..queue.unacked import Piece
from .held import HeldBatch, HeldOne, held_bytes, is_plain
from .replies import Replies

if TYPE_CHECKING:
    from .channel import Channel
    from .publish import HeldPublish

TRANSACTION_MAX_BYTES = 134_217_728
"""128 MiB on one channel: eight of the largest messages. Nothing of it can leave memory before
the commit, and the commit is one piece of work that everybody else waits for."""

Settlement = Callable[[Piece], None]


def acknowledge(piece: Piece) -> None:
    piece.queue.settle(piece.span)


def give_back(piece: Piece) -> None:
    piece.queue.requeue(piece.span, failed=False)


def fail(piece: Piece) -> None:
    piece.queue.requeue(piece.span, failed=True)


def reject(piece: Piece) -> None:
    piece.queue.reject(piece.span)


class Transaction:
    """The open transaction of a channel; another begins with each commit and rollback.

    `settled` deliveries are acked or rejected in it. `replies` are those of its commits.
    """

    __slots__ = ("_bytes", "_channel", "_publishes", "_settlements", "replies", "settled")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._publishes: list[HeldBatch | HeldOne] = []
        self._settlements: list[tuple[Settlement, list[Piece]]] = []
        self._bytes = 0
        self.settled = 0
        self.replies = channel.replies = channel.replies or Replies(channel)

    def hold(self, publish: HeldPublish) -> None:
        """Raises `ChannelError` 406 for more than a transaction may hold."""
        plain = is_plain(publish)
        size = held_bytes(publish, plain)
        if self._bytes + size > TRANSACTION_MAX_BYTES:
            raise precondition_failed(
                f"transaction on channel {self._channel.number} would hold "
                f"{self._bytes + size} bytes, more than its limit of {TRANSACTION_MAX_BYTES}; "
                "commit more often"
            )
        self._count(size)
        if not plain:
            self._publishes.append(HeldOne(publish))
            return
        batch = self._publishes[-1] if self._publishes else None
        if not isinstance(batch, HeldBatch) or not batch.takes(publish):
            batch = HeldBatch(publish)
            self._publishes.append(batch)
        batch.add(publish)

    def settle(self, settlement: Settlement, pieces: list[Piece]) -> None:
        """Keeps deliveries that were taken out of the unacked, and what is to become of them."""
        if pieces:
            self._settlements.append((settlement, pieces))
            self.settled += sum(piece.span.count for piece in pieces)

    def commit(self) -> None:
        """Makes everything true; commit-ok, or the channel's end, follows when it is decided."""
        publishes, settlements = self._publishes, self._settlements
        self._begin()
        store = self._channel.broker.store
        with store.together():
            complete, lasts = _hand_over(publishes)
            lasts |= _settle(settlements)
        # Not before all is settled: credit that comes back brings deliveries.
        for _, pieces in settlements:
            self._channel.credit_back(pieces)
        self.replies.commit(store.barrier() if lasts else 0, complete)

    def rollback(self) -> None:
        """Forgets the publishes; what was settled is outstanding again, under its tags."""
        settlements = self._settlements
        self._begin()
        if settlements:
            self._channel.unacked.put_back([piece for _, pieces in settlements for piece in pieces])

    def end(self) -> None:
        """The channel has closed."""
        self.rollback()
        self.replies.end()

    def _begin(self) -> None:
        self._publishes, self._settlements = [], []
        self.settled = 0
        self._count(-self._bytes)

    def _count(self, size: int) -> None:
        self._bytes += size
        self._channel.broker.memory.resident_bytes += size


def _hand_over(publishes: list[HeldBatch | HeldOne]) -> tuple[bool, bool]:
    """Gives whether every queue took what it was given, and whether the disk is to have any."""
    complete, lasts = True, False
    for publish in publishes:
        accepted, commit = publish.hand_over()
        complete &= accepted
        lasts |= commit != 0
    return complete, lasts


def _settle(settlements: list[tuple[Settlement, list[Piece]]]) -> bool:
    """Gives whether a durable queue is among those settled in."""
    for settlement, pieces in settlements:
        for piece in pieces:
            settlement(piece)
    return any(piece.queue.durable for _, pieces in settlements for piece in pieces)
