"""The base of all queue types: identity, rules and consumers, and what each type has to do.

A classic or quorum queue (`classic.py`) keeps messages until they are consumed; a stream
(`stream.py`) keeps them until retention drops them, and consumers read at offsets of their own.

The module is long since it is one class: what the broker may ask of any queue, in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar, Final

from ..definitions.facts import PausedMark
from ..message.batch import Batch
from ..message.model import Table
from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from ..route.route import Destination
from .consumer import Consumer, ConsumerRing
from .deduplication import SeenIds
from .rules import Rules

if TYPE_CHECKING:
    from ..route.exchange import Exchange
    from ..statistics.counters import MessageCounters
    from ..store.port import ManySettled
    from .context import QueueContext

OWNER_GONE: Final = object()
"""The owner of exclusive queues whose connection has closed: they are about to be deleted."""
DISPATCH_BYTES: Final = 262_144
"""Bytes of messages delivered to a consumer as one range, as far as whole messages allow."""


class Queue(Destination):
    """A queue as its virtual host, publishers and channels use it.

    `owner` is the connection of an exclusive queue. `id` is never reused. A queue type implements
    the methods that raise `NotImplementedError` here.

    The interface is wide because a queue is one object: there may be 100,000 queues, and each part
    that refers back to its queue would cost memory, and leave a cycle when the queue is deleted.
    """

    __slots__ = (
        "_broker", "active", "arguments", "auto_delete", "bound", "counters", "declared_rules",
        "exclusive_consumer", "id", "is_paused", "last_used_ms", "owner", "ring", "rules", "seen",
        "unacked_count", "vhost",
    )  # fmt: skip

    persists_all: ClassVar[bool] = False
    """Whether transient messages are kept on disk too."""
    in_order: ClassVar[bool] = False
    """Whether messages are always delivered in the order of arrival, whatever their priority."""
    counts_as_backlog: ClassVar[bool] = True
    """Whether many messages in it mean that its consumers can't keep up."""

    def __init__(
        self,
        name: str,
        vhost: str,
        broker: QueueContext,
        queue_id: int,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        owner: object | None = None,
        arguments: Table | None = None,
        rules: Rules | None = None,
    ) -> None:
        super().__init__(name, durable=durable)
        self.vhost = vhost
        self.id = queue_id
        self.auto_delete = auto_delete
        self.owner = owner
        self.arguments = arguments or {}
        self.declared_rules = rules
        """The rules of the arguments; `rules` are those in force, policies included."""
        self.rules = rules
        self.seen: SeenIds | None = None
        """The message ids seen, if the queue deduplicates."""
        self.ring: ConsumerRing | None = None
        self.exclusive_consumer: Consumer | None = None
        self.bound: dict[Exchange, None] | None = None
        """The exchanges with a binding to this queue."""
        self.unacked_count = 0
        self.counters: MessageCounters | None = None
        self.last_used_ms = broker.now_ms
        self.active = False
        self.is_paused = False
        """Whether nothing is delivered to consumers until `resume`."""
        self._broker = broker
        self._initialise()
        if rules is not None:
            self._activate(rules)

    def _initialise(self) -> None:
        """Sets the attributes of the queue type; called once, before rules come into force."""
        raise NotImplementedError

    def _activate(self, rules: Rules) -> None:
        """Creates what the rules need: timers, counters, the list of message ids."""
        self._broker.note_timeout(rules.consumer_timeout_ms)

    @property
    def kind(self) -> str:
        """The queue type: `classic`, `quorum` or `stream`."""
        return str(self.arguments.get("x-queue-type", "classic"))

    def apply(self, rules: Rules | None) -> None:
        """Puts other rules into force, after a policy was set, changed or cleared.

        Messages stay in the queue unless the new limits or times drop them.
        """
        raise NotImplementedError

    def invalidate_routes(self) -> None:
        """Invalidates the routes that lead here, and those of the exchanges bound to it."""
        self.changed()
        for exchange in self.bound or ():
            exchange.changed()

    def note_use(self) -> None:
        """Notes a use that defers `x-expires`: a consumer, a get, a declaration."""
        self.last_used_ms = self._broker.now_ms

    # -- counts

    @property
    def ready_count(self) -> int:
        """Messages ready for delivery; of a stream, all its messages."""
        raise NotImplementedError

    @property
    def consumer_count(self) -> int:
        return 0 if self.ring is None else len(self.ring.members)

    @property
    def has_consumers(self) -> bool:
        return self.ring is not None and bool(self.ring.members)

    @property
    def has_ready_consumer(self) -> bool:
        """Whether a message that arrived now would be delivered at once."""
        raise NotImplementedError

    @property
    def next_offset(self) -> int:
        """The offset of the next message to arrive in a stream; 0 in other queues."""
        return 0

    @property
    def adds_offsets(self) -> bool:
        """Whether copies of its messages carry a header with their offset."""
        return False

    @property
    def has_priorities(self) -> bool:
        """Whether messages are ordered by priority."""
        return self.rules is not None and bool(self.rules.max_priority)

    @property
    def highest_delivered(self) -> dict[tuple[int, int | None], int]:
        """The highest sequence number delivered, by queue id and priority (None for all)."""
        raise NotImplementedError

    # -- publishing

    def refuses(self, message: Batch) -> bool:
        """Whether the queue is full and rejects this single message (overflow `reject-publish`).

        A refused message must not be enqueued, and may have been dead-lettered.
        """
        raise NotImplementedError

    def enqueue(self, entry: QueueEntry) -> None:
        """Appends the messages of an entry."""
        raise NotImplementedError

    def recover(self, paged_out_ranges: Sequence[PagedOut]) -> None:
        """Takes in the messages left by an earlier process, oldest first; called once, before any
        publish."""
        raise NotImplementedError

    def scan_recovered(self) -> None:
        """Reads in the background the recovered messages that have to be known one by one: they
        have an expiration, or count under the queue's rules."""

    # -- dispatch to consumers and basic.get

    def dispatch(self, budget: int) -> bool:
        """Delivers up to about `budget` messages; True if there is more to deliver."""
        raise NotImplementedError

    def dequeue(self, limit: int) -> MessageRange | None:
        """Removes the oldest messages, unacked from now on: one range of at most `limit`.

        None if the queue is empty or reads them from disk; then it is woken when they are read.
        """
        raise NotImplementedError

    def when_head_ready(self, action: Callable[[], None]) -> None:
        """Runs `action` when the oldest message can be dequeued: now, or when it has been read."""
        raise NotImplementedError

    def check_get(self) -> None:
        """Raises `ConnectionFault` if the queue type does not support basic.get."""

    def check_purge(self) -> None:
        """Raises `ConnectionFault` if the queue type does not support queue.purge."""

    def check_consumer(self, consumer: Consumer) -> None:
        """Raises `ChannelError` or `ConnectionFault` if the type does not support the consumer."""

    def open_consumer(self, consumer: Consumer) -> None:
        """Notes that a consumer has credit again."""
        if self.ring is not None and consumer in self.ring.members:
            self.ring.open(consumer)
            self._broker.wake(self)

    def pause(self) -> None:
        """Delivers nothing to consumers until `resume`, also after a restart if it is durable."""
        if not self.is_paused:
            self.suspend_dispatch()
            if self.durable:
                PausedMark(self._broker.facts, self.id).store()

    def suspend_dispatch(self) -> None:
        """Does what `pause` does in memory; called once."""
        self.is_paused = True

    def resume(self) -> None:
        """Ends a pause."""
        if self.is_paused:
            self.is_paused = False
            PausedMark(self._broker.facts, self.id).drop()
            self._resume_dispatch()

    def _resume_dispatch(self) -> None:
        """Resumes the deliveries that waited."""
        self._broker.wake(self)
        self._broker.on_work()

    def add_consumer(self, consumer: Consumer) -> None:
        """Starts delivering to a consumer."""
        raise NotImplementedError

    def remove_consumer(self, consumer: Consumer, *, comes_back: bool = False) -> None:
        """Removes a consumer; its unacked messages stay valid.

        The last one deletes an auto-delete queue, unless it only pauses and `comes_back`.
        """
        if self.ring is None or consumer not in self.ring.members:
            return
        self.detach_consumer(consumer)
        self.consumer_removed(consumer, comes_back=comes_back)

    def detach_consumer(self, consumer: Consumer) -> None:
        """Stops deliveries to a consumer; `consumer_removed` is still to be called."""
        if self.ring is not None and consumer in self.ring.members:
            self.ring.remove(consumer)
        if self.exclusive_consumer is consumer:
            self.exclusive_consumer = None

    def consumer_removed(self, consumer: Consumer, *, comes_back: bool = False) -> None:
        """Completes `detach_consumer`: auto-delete, or the next single active consumer."""
        self.note_use()
        if self.ring is not None and not self.ring.members and not self.deleted:
            self.ring = None
            if self.auto_delete and not comes_back:
                self._broker.delete_queue(self)
        elif self.ring is not None:
            self._broker.wake(self)  # Another consumer may be the single active one now.

    def detach_consumers(self) -> tuple[Consumer, ...]:
        """Stops deliveries to all consumers; returns them, who are still to be notified."""
        ring, self.ring = self.ring, None
        return () if ring is None else tuple(ring.members)

    def with_headers(self, messages: MessageRange) -> MessageRange:
        """Returns dequeued messages with the headers that the queue adds for consumers."""
        return messages

    # -- unacknowledged messages

    def settle(self, messages: MessageRange) -> None:
        """Removes delivered messages for good: acknowledged, or dropped."""
        raise NotImplementedError

    def note_settled(self, messages: MessageRange, many: ManySettled) -> None:
        """Adds the messages to a group that is settled as one; `count_settled` follows."""
        raise NotImplementedError

    def count_settled(self, messages: MessageRange, many: ManySettled) -> None:
        """Completes `note_settled` when the group is in the log."""
        raise NotImplementedError

    def settle_dead_lettered(self, messages: MessageRange) -> None:
        """Removes messages whose dead letters are published, or have no target."""
        raise NotImplementedError

    def requeue(self, messages: MessageRange, *, failed: bool = True) -> None:
        """Returns delivered messages to their original position, flagged redelivered.

        `failed` is False for messages that were only returned (nack, recover).
        """
        for part in self.begin_requeue(messages, failed=failed):
            self.finish_requeue(part)

    def begin_requeue(self, messages: MessageRange, *, failed: bool = True) -> list[MessageRange]:
        """Does all of `requeue` but the last step; returns the ranges for `finish_requeue`.

        With a delivery limit the returns are counted, and messages over it are dead-lettered.
        """
        raise NotImplementedError

    def finish_requeue(self, messages: MessageRange) -> None:
        """Puts messages back at their position, unless the queue is deleted."""
        raise NotImplementedError

    def requeuing(self) -> AbstractContextManager[None]:
        """Pauses dispatch while messages are requeued in slices, or newer ones would overtake
        them. Those that are not back yet count as unacknowledged."""
        raise NotImplementedError

    @property
    def counts_redeliveries(self) -> bool:
        """Whether it counts how often messages are returned."""
        return False

    def split_by_delivery_limit(
        self, messages: MessageRange, *, failed: bool
    ) -> Iterator[tuple[MessageRange, bool]]:
        """Yields the ranges in which delivered messages would be requeued, and whether each would
        be dead-lettered for exceeding the delivery limit."""
        yield messages, False

    def return_undelivered(self, messages: MessageRange) -> None:
        """Puts back dequeued messages that never reached a client, with their flags unchanged."""
        raise NotImplementedError

    def reject(self, messages: MessageRange) -> None:
        """Dead-letters or drops rejected messages (AMQP 0-9-1 1.8.3.14)."""
        raise NotImplementedError

    def expire_delivered(self, messages: MessageRange, content: Batch) -> None:
        """Dead-letters a delivered message that has expired, with `content` as the dead letter."""
        raise NotImplementedError

    # -- purge and memory

    def purge(self, done: Callable[[], None] = lambda: None) -> int:
        """Drops all ready messages; returns their number.

        They are gone at once, and settled in slices. `done` is called when this purge and those
        before it are on disk; after a crash before that the newest messages may be there again.
        """
        raise NotImplementedError

    @property
    def front_arrived_ms(self) -> int | None:
        """The arrival time (monotonic) of the first ready message; None if there is none, or if it
        is not in memory."""
        return None

    @property
    def paged_out_count(self) -> int:
        """Ready messages of which nothing is in memory."""
        raise NotImplementedError

    @property
    def estimated_bytes(self) -> int:
        """The approximate memory that ready messages take."""
        raise NotImplementedError

    def page_out(
        self, head_bytes: int, *, transient: bool, enough: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """Moves ready messages out of memory, except about `head_bytes` read next, until `enough`
        says there is room; messages that are on no disk yet only if `transient`.

        In steps, between which the queue may change; ends if other rules come into force.
        """
        raise NotImplementedError
