"""Republishes messages that leave a queue: dead letters, and delayed messages that are due.

Each becomes a new message (`dead_letters.py`, `delayed.py`); the copy and the settlement of the
original are logged together. Each is processed by itself, so a turn republishes a bounded number
and the rest stays in a FIFO. Those of a transaction (`group.py`) have a FIFO of their own, because
a client waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ..message.batch import Batch
from ..message.queue_entry import MessageRange
from ..publish.buffer import PublishBuffer
from ..queue.delay import RELEASED
from .dead_letters import DeadLetterCopies
from .delayed import DelayedRelease
from .fifo import RepublishFifo, Republishing
from .group import RepublishGroup
from .republished_message import RepublishedMessage

if TYPE_CHECKING:
    from ..context import BrokerContext
    from ..queue.queue import Queue
    from ..store.port import ManySettled
    from ..vhost import VirtualHost

REPUBLISHED_PER_TURN: Final = 100
"""About 2 ms, by which they delay the replies to what was read in the same turn."""


class _Replacement:
    """Republishes the message of another batch in place of the one that left the queue."""

    __slots__ = ("_replacement", "_republishing")

    def __init__(self, republishing: Republishing, replacement: Batch) -> None:
        self._republishing = republishing
        self._replacement = replacement

    def copy(self, batch: Batch, index: int) -> RepublishedMessage | None:
        return self._republishing.copy(self._replacement, 0)


class Republisher:
    """The messages to be republished: one FIFO for single ones, one for groups."""

    def __init__(self, broker: BrokerContext, vhosts: Mapping[str, VirtualHost]) -> None:
        self._broker = broker
        self._vhosts = vhosts
        self._immediate = _ImmediateDestination(broker)
        self._single = RepublishFifo(broker)
        self._grouped = RepublishFifo(broker)

    @property
    def busy(self) -> bool:
        """Whether a message can be republished now; False if all wait for the disk."""
        return self._single.busy or self._grouped.busy

    def add(
        self, queue: Queue, messages: MessageRange, reason: str, replacement: Batch | None = None
    ) -> None:
        """Adds messages that have left their queue; `replacement` is republished for a single."""
        republishing: Republishing
        if reason == RELEASED:
            republishing = DelayedRelease(self._vhosts, queue)
        elif queue.rules is not None and queue.rules.dead_letter_exchange is not None:
            republishing = DeadLetterCopies(
                self._broker.clock, self._vhosts, queue, queue.rules, reason
            )
            self._broker.statistics.dead_lettered(reason, messages.count)
            if replacement is not None:
                republishing = _Replacement(republishing, replacement)
        else:
            queue.settle_dead_lettered(messages)
            return
        self._single.add(queue, messages, republishing, self._immediate)

    def gather(self, ready: Callable[[], None], many: ManySettled | None = None) -> RepublishGroup:
        """Returns an empty group of dead letters; `ready` is called in a later turn, when it is
        complete and all are made. Their originals are marked as settled in `many`, if given."""
        return RepublishGroup(self._broker, self._vhosts, self._grouped, ready, many)

    def run(self) -> None:
        """Republishes at most `REPUBLISHED_PER_TURN` messages; copies and settlements are one
        group in the store."""
        share = REPUBLISHED_PER_TURN // (1 + (self._single.busy and self._grouped.busy))
        self._grouped.run(share)
        with self._broker.store.together():
            self._single.run(share)
            self._immediate.copies.publish_all()


class _ImmediateDestination:
    """Settles the originals at once; the copies are published in the same turn."""

    def __init__(self, broker: BrokerContext) -> None:
        self.copies = PublishBuffer(broker)

    def copied(self, queue: Queue, messages: MessageRange) -> None:
        queue.settle_dead_lettered(messages)

    def unreadable(self, queue: Queue, messages: MessageRange) -> None:
        """Does nothing: the messages have left their queue."""
