"""Transactions of one channel (AMQP 0-9-1 1.9): publishes and acks that count together.

What is published and settled is checked at once and kept here. A commit (`commit.py`) puts the
publishes into their queues, in order, then settles, all as one group in the store; its OK goes out
when the disk has the group. If it has to make dead letters first, commits behind it wait for it. A
rollback forgets the publishes, and the deliveries are outstanding again. A channel that closes is
rolled back, what it has committed is not.

Commits of many channels share syncs, for each waits for a number that others wait for too.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from ..errors import ConnectionFault, precondition_failed
from ..queue.unacked import LONG_RANGES, DeliveryRange, Detached
from ..slices import drain
from .commit import Commit, Settlement, letter_bytes, makes_letters
from .held import HeldBatch, HeldOne, held_bytes, is_plain
from .replies import CommitReply, Replies

if TYPE_CHECKING:
    from ..publish.single import HeldPublish
    from .channel import Channel

logger = logging.getLogger(__name__)

TRANSACTION_MAX_BYTES = 134_217_728
"""128 MiB on one channel, publishes and dead letters: eight of the largest messages. Nothing of it
can leave memory before the commit, and the commit is one piece of work that everybody else waits
for."""


LONG_PIECES = LONG_RANGES
"""A commit that settles so many is prepared in slices."""


class Transaction:
    """The open transaction of a channel; another begins with each commit and rollback.

    `settled` deliveries are acked or rejected in it. `replies` are those of its commits.
    """

    __slots__ = (
        "_bytes", "_channel", "_commits", "_pieces", "_publishes", "_settlements", "replies",
        "settled",
    )  # fmt: skip

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._publishes: list[HeldBatch | HeldOne] = []
        self._settlements: deque[tuple[Settlement, Iterable[DeliveryRange]]] = deque()
        self._pieces = 0
        self._commits: deque[tuple[Commit, CommitReply]] = deque()
        """Those that wait for dead letters, their own or those of an earlier one."""
        self._bytes = 0
        self.settled = 0
        self.replies = channel.replies = channel.replies or Replies(channel)

    def hold(self, publish: HeldPublish) -> None:
        """Raises `ChannelError` 406 for more than a transaction may hold."""
        plain = is_plain(publish)
        self._take(held_bytes(publish, plain))
        if not plain:
            self._publishes.append(HeldOne(publish))
            return
        batch = self._publishes[-1] if self._publishes else None
        if not isinstance(batch, HeldBatch) or not batch.takes(publish):
            batch = HeldBatch(publish)
            self._publishes.append(batch)
        batch.add(publish)

    def settle(self, settlement: Settlement, pieces: list[DeliveryRange]) -> None:
        """Keeps deliveries that were taken out of the unacked, and what is to become of them.

        Raises `ChannelError` 406 for more dead letters than a transaction may hold.
        """
        if pieces:
            self._settlements.append((settlement, pieces))
            self._pieces += len(pieces)
            self.settled += sum(piece.messages.count for piece in pieces)
            dead_letters = (
                letter_bytes(settlement, queue, messages.entry.batch, messages.count)
                for _, queue, messages, _ in pieces
            )
            self._take(sum(dead_letters))

    def settle_unseen(self, settlement: Settlement, many: Detached) -> None:
        """As `settle`, for very many; they count as unacknowledged, and `weigh` is to follow."""
        self._settlements.append((settlement, many))
        self._pieces += LONG_PIECES

    def weigh(self, settlement: Settlement, many: Detached) -> Iterator[None]:
        """Counts the dead letters of very many deliveries, a delivery at a step. Raises as
        `settle`."""
        if any(makes_letters(settlement, queue) for queue in self._channel.sources):
            for queue, batch, count in many.outstanding():
                self._take(letter_bytes(settlement, queue, batch, count))
                yield
                if not self._channel.open:
                    return

    def _take(self, size: int) -> None:
        if self._bytes + size > TRANSACTION_MAX_BYTES:
            raise precondition_failed(
                f"transaction on channel {self._channel.number} would hold "
                f"{self._bytes + size} bytes, more than its limit of {TRANSACTION_MAX_BYTES}; "
                "commit more often"
            )
        self._count(size)

    def commit(self) -> None:
        """Makes everything true; commit-ok, or the channel's end, follows when it is decided."""
        commit = Commit(
            self._channel, self._publishes, self._settlements, self._bytes, self._apply,
            is_long=self._pieces >= LONG_PIECES,
        )  # fmt: skip
        self._begin()
        if commit.is_long:
            self._commits.append((commit, self.replies.expect()))
            self._channel.broker.slices.start(self._prepare(commit))
            return
        for _ in commit.prepare():
            pass
        if commit.is_ready and not self._commits:
            self.replies.commit(*commit.apply())
            self._charge(-commit.held_bytes)
            return
        self._commits.append((commit, self.replies.expect()))

    def _prepare(self, commit: Commit) -> Iterator[None]:
        yield from commit.prepare()
        self._apply()

    def _apply(self) -> None:
        """A commit has become ready."""
        while self._commits and self._commits[0][0].is_ready:
            commit, reply = self._commits.popleft()
            self._charge(-commit.held_bytes)
            try:
                with reply:
                    reply.decide(*commit.apply())
            except Exception:
                # No read of this connection is under way, and the turn is everybody's.
                connection = self._channel.connection
                logger.exception("connection %s: internal error at a commit", connection.name)
                connection.fail(ConnectionFault(541, "internal error, see the broker's log"))
                return

    def rollback(self) -> None:
        """Forgets the publishes; what was settled is outstanding again, under its tags."""
        self._channel.connection.wait_for(self._roll_back())

    def end(self) -> None:
        """The channel has closed."""
        self._channel.broker.slices.start(self._roll_back())
        self.replies.end()

    def _roll_back(self) -> Iterator[None]:
        channel, settlements, size = self._channel, self._settlements, self._bytes
        publishes = self._publishes
        self._begin()
        self._charge(-size)
        if settlements:
            pieces = chain.from_iterable(pieces for _, pieces in drain(settlements))
            yield from channel.unacked.put_back(pieces)
            if not channel.open:
                channel.give_back_all()
        while publishes:
            publishes.pop()  # a batch of thousands
            yield

    def _begin(self) -> None:
        self._publishes, self._settlements = [], deque()
        self.settled = self._bytes = self._pieces = 0

    def _count(self, size: int) -> None:
        self._bytes += size
        self._charge(size)

    def _charge(self, size: int) -> None:
        self._channel.broker.memory.resident_bytes += size
