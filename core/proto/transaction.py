"""Transactions of one channel (AMQP 0-9-1 1.9): publishes and acks that take effect together.

Publishes and settlements are checked at once and buffered here. A commit (`commit.py`) puts the
publishes into their queues, in order, then settles, all as one group in the store; commit-ok is
sent when the disk has the group. Later commits wait for one that has to make dead letters first. A
rollback drops the publishes, and the deliveries are unacked again. A channel that closes is rolled
back; its commits are not.

Commits of many channels share disk syncs, because each waits for a commit number only.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

from ..errors import ConnectionFault, precondition_failed
from ..publish.buffer import PublishBuffer
from ..queue.unacked import LONG_RANGES, DeliveryRange, Detached
from ..slices import drain
from .commit import Commit
from .replies import CommitReply, Replies
from .settlement import Settlement, dead_letter_bytes, makes_dead_letters
from .sliced_settlement import requeue_all

if TYPE_CHECKING:
    from ..publish.single import RoutedPublish
    from .context import ChannelContext

logger = logging.getLogger(__name__)

TRANSACTION_MAX_BYTES: Final = 134_217_728
"""128 MiB on one channel, publishes and dead letters: eight of the largest messages. They cannot
be paged out before the commit, and all other connections wait while a commit is applied."""


LONG_COMMIT_RANGES: Final = LONG_RANGES
"""A commit of so many settled ranges is prepared in slices."""


class Transaction:
    """The open transaction of a channel; commit and rollback begin another one.

    `settled` counts the deliveries acked or rejected in it; `replies` are the channel's.
    """

    __slots__ = (
        "_bytes",
        "_channel",
        "_commits",
        "_publishes",
        "_range_count",
        "_settlements",
        "replies",
        "settled",
    )

    def __init__(self, channel: ChannelContext, replies: Replies) -> None:
        self._channel = channel
        self._publishes = PublishBuffer(channel.broker)
        self._settlements: deque[tuple[Settlement, Iterable[DeliveryRange]]] = deque()
        self._range_count = 0
        self._commits: deque[tuple[Commit, CommitReply]] = deque()
        """The commits that wait for dead letters, their own or those of an earlier one."""
        self._bytes = 0
        self.settled = 0
        self.replies = replies

    @property
    def published(self) -> int:
        """The number of publishes that wait for the commit."""
        return self._publishes.count

    def buffer(self, publish: RoutedPublish) -> None:
        """Buffers a publish. Raises `ChannelError` 406 above `TRANSACTION_MAX_BYTES`."""
        self._reserve(self._publishes.add(publish))

    def settle(self, settlement: Settlement, deliveries: list[DeliveryRange]) -> None:
        """Buffers a settlement of deliveries that were removed from the unacked.

        Raises `ChannelError` 406 if its dead letters exceed `TRANSACTION_MAX_BYTES`.
        """
        if deliveries:
            self._settlements.append((settlement, deliveries))
            self._range_count += len(deliveries)
            self.settled += sum(delivery.messages.count for delivery in deliveries)
            dead_letters = (
                dead_letter_bytes(settlement, queue, messages.entry.batch, messages.count)
                for _, queue, messages, _ in deliveries
            )
            self._reserve(sum(dead_letters))

    def settle_unseen(self, settlement: Settlement, many: Detached) -> None:
        """As `settle`, for very many; they count as unacknowledged. Call `weigh` next."""
        self._settlements.append((settlement, many))
        self._range_count += LONG_COMMIT_RANGES

    def weigh(self, settlement: Settlement, many: Detached) -> Iterator[None]:
        """Counts the dead letters of very many deliveries, one delivery a step. Raises as
        `settle`."""
        if any(makes_dead_letters(settlement, queue) for queue in self._channel.deliveries.sources):
            for queue, batch, count in many.outstanding():
                self._reserve(dead_letter_bytes(settlement, queue, batch, count))
                yield
                if not self._channel.open:
                    return

    def _reserve(self, size: int) -> None:
        if self._bytes + size > TRANSACTION_MAX_BYTES:
            raise precondition_failed(
                f"transaction on channel {self._channel.number} would hold "
                f"{self._bytes + size} bytes, more than its limit of {TRANSACTION_MAX_BYTES}; "
                "commit more often"
            )
        self._count(size)

    def commit(self) -> None:
        """Commits; commit-ok, or an error that closes the channel, follows when it is durable."""
        commit = Commit(
            self._channel, self._publishes, self._settlements, self._bytes, self._apply,
            is_long=self._range_count >= LONG_COMMIT_RANGES,
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
            self._charge(-commit.buffered_bytes)
            return
        self._commits.append((commit, self.replies.expect()))

    def _prepare(self, commit: Commit) -> Iterator[None]:
        yield from commit.prepare()
        self._apply()

    def _apply(self) -> None:
        """Applies the commits that are ready, in order."""
        while self._commits and self._commits[0][0].is_ready:
            commit, reply = self._commits.popleft()
            self._charge(-commit.buffered_bytes)
            try:
                with reply:
                    reply.decide(*commit.apply())
            except Exception:
                # This runs outside of the connection's own read: only this connection may fail.
                connection = self._channel.connection
                logger.exception("connection %s: internal error at a commit", connection.name)
                connection.fail(ConnectionFault(541, "internal error, see the broker's log"))
                return

    def rollback(self) -> None:
        """Drops the publishes; settled deliveries are unacked again, under their tags."""
        self._channel.connection.pending.wait_for(self._roll_back())

    def end(self) -> None:
        """Rolls back because the channel has closed."""
        self._channel.broker.slices.start(self._roll_back())
        self.replies.end()

    def _roll_back(self) -> Iterator[None]:
        channel, settlements, size = self._channel, self._settlements, self._bytes
        publishes = self._publishes
        self._begin()
        self._charge(-size)
        if settlements:
            deliveries = chain.from_iterable(deliveries for _, deliveries in drain(settlements))
            yield from channel.deliveries.unacked.put_back(deliveries)
            if not channel.open:
                requeue_all(channel)
        yield from publishes.drop()

    def _begin(self) -> None:
        self._publishes, self._settlements = PublishBuffer(self._channel.broker), deque()
        self.settled = self._bytes = self._range_count = 0

    def _count(self, size: int) -> None:
        self._bytes += size
        self._charge(size)

    def _charge(self, size: int) -> None:
        self._channel.broker.memory.resident_bytes += size
