"""A queue: what comes in, who gets it, what becomes of it.

The plain queue is this module alone. What arguments and policies ask for stands beside it and is
put together here: order (`ready`, `priority`), turns (`consumer`, `single_active`), counts of
returns (`returns`), limits (`limit`), expiry (`expiry`), dead letters (the broker's `republisher`).
A queue without any has `rules` None and tests one attribute per run. Quorum queues are this class
with rules of their own; streams are another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Final

from ..definitions.facts import queue_owner
from ..message.batch import Batch, MessageRange, PagedOut, QueueEntry
from ..message.model import Table
from ..route.route import Watched
from ..slices import Steps
from .backlog import Backlog
from .consumer import Consumer, ConsumerRing
from .deduplication import SeenIds
from .expiry import Expiry
from .idleness import Idleness
from .limit import over_limit
from .page_in import PageIn
from .priority import PriorityBacklog
from .purges import Purges
from .redelivery import DelayedRetries, RedeliveryCounter
from .rules import PLAIN, Rules
from .single_active import SingleActiveRing

if TYPE_CHECKING:
    from ..route.exchange import Exchange
    from ..store.port import ManySettled
    from .context import QueueContext

OWNER_GONE: Final = object()
"""The owner of exclusive queues whose connection has ended: they are about to go."""
LOGGED_AHEAD = 10_000
"""How many numbers a mark goes ahead of a get, so that not every one makes a mark."""
DISPATCH_BYTES = 262_144
"""What one consumer is given in one piece, as far as whole messages allow."""


class Queue(Watched):
    """Made by a virtual host; `owner` is the connection of an exclusive queue.

    `id` is never reused. `expiry` exists once something in the queue can expire.
    """

    __slots__ = (
        "_backlog",
        "_broker",
        "_delayed_retries",
        "_delivered_of",
        "_dispatch_pauses",
        "_idleness",
        "_logged_up_to",
        "_page_in",
        "_purges",
        "_redeliveries",
        "_requeues",
        "active",
        "arguments",
        "auto_delete",
        "bound",
        "declared_rules",
        "deleted",
        "delivered_sequence",
        "durable",
        "exclusive_consumer",
        "expiry",
        "id",
        "last_used_ms",
        "name",
        "owner",
        "ready_bytes",
        "ring",
        "rules",
        "seen",
        "unacked_count",
        "vhost",
    )  # fmt: skip

    persists_all: ClassVar[bool] = False
    """Whether transient messages are kept on disk too."""
    in_order: ClassVar[bool] = False
    """Whether its messages are given in the order of coming, whatever else they carry."""
    counts_as_backlog: ClassVar[bool] = True
    """Whether many messages in it say that its consumers can't keep up."""

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
        super().__init__()
        self.name = name
        self.vhost = vhost
        self.id = queue_id
        self.durable = durable
        self.auto_delete = auto_delete
        self.owner = owner
        self.arguments = arguments or {}
        self.declared_rules = rules
        """What the arguments ask for; `rules` is what is in force, policies included."""
        self.rules = rules
        self.seen: SeenIds | None = None
        """The ids of messages, if it drops those that come again."""
        self.ring: ConsumerRing | None = None
        self.exclusive_consumer: Consumer | None = None
        self.bound: dict[Exchange, None] | None = None
        self.expiry: Expiry | None = None
        self.unacked_count = 0
        self.ready_bytes = 0
        self.last_used_ms = broker.now_ms
        self.active = False
        self.deleted = False
        self._backlog: Backlog | None = None
        self._page_in: PageIn | None = None
        self._idleness: Idleness | None = None
        self._purges: Purges | None = None
        self._logged_up_to = 0
        self._dispatch_pauses = 0
        """For how many reasons nothing is handed out just now."""
        self._requeues = 0
        self.delivered_sequence = 0
        self._delivered_of: dict[int, int] | None = {} if self.has_priorities else None
        """The highest number that went out of each priority: lower ones may be waiting."""
        self._broker = broker
        self._delayed_retries: DelayedRetries | None = None
        self._redeliveries: RedeliveryCounter | None = None
        if rules is not None:
            self._activate(rules)

    def _activate(self, rules: Rules) -> None:
        if rules.expires_ms is not None and self._idleness is None:
            self._idleness = Idleness(self, self._broker, rules.expires_ms)
        self._broker.note_timeout(rules.consumer_timeout_ms)
        if rules.deduplication is not None and self.seen is None:
            owner = queue_owner(self.id) if self.durable else None
            self.seen = SeenIds(rules.deduplication, self._broker, owner)
        if rules.delivery_limit is not None:
            if self._redeliveries is None:
                self._redeliveries = RedeliveryCounter(
                    self._broker, self.id, durable=self.durable, quorum=self.kind == "quorum"
                )
        elif self._redeliveries is not None:
            self._redeliveries.end()
            self._redeliveries = None

    @property
    def kind(self) -> str:
        """`classic`, `quorum` or `stream`."""
        return str(self.arguments.get("x-queue-type", "classic"))

    # -- rules

    def apply(self, rules: Rules | None) -> None:
        """Puts other rules into force: a policy came, changed or went. What is in the queue stays
        in it, but for what the new limits and times don't allow."""
        before, self.rules = self.rules or PLAIN, rules
        now = rules or PLAIN
        if now.checks_publishes != before.checks_publishes:
            self.invalidate_routes()
        if now.expires_ms != before.expires_ms:
            if self._idleness is not None:
                self._idleness.end()
                self._idleness = None
            self.note_use()
        self._activate(now)
        if now.message_ttl_ms != before.message_ttl_ms:
            self._reset_deadlines(now.message_ttl_ms)
        if now.max_length_bytes is not None and before.max_length_bytes is None:
            self._recount_bytes()
        self._scan_paged_out()
        self._broker.wake(self)
        self._broker.on_work()

    def invalidate_routes(self) -> None:
        """Ends what publishers have noted of it. Those of an exchange watch that alone."""
        self.changed()
        for exchange in self.bound or ():
            exchange.changed()

    def _reset_deadlines(self, ttl_ms: int | None) -> None:
        """Messages that are here get the deadline they would have had under this TTL."""
        if self.expiry is None:
            if ttl_ms is None:
                return
            self.expiry = Expiry(self._broker, self._wake_for_expiry, ttl_ms)
        self.expiry.reset_deadlines(self.backlog, ttl_ms)

    def _recount_bytes(self) -> None:
        self.ready_bytes = sum(
            held.body_bytes() for held in self.backlog if isinstance(held, MessageRange)
        )

    def _scan_paged_out(self, last: PagedOut | None = None) -> None:
        """Reads a paged-out range if each message must be known, because of the rules or because
        some have a time of their own; what consumers wait for is read first. `last` is the range
        whose front was just read."""
        backlog = self._backlog
        if backlog is None or not backlog.paged_out_ranges:
            return
        paged_out = last
        if paged_out is None or not paged_out.count:
            paged_out = backlog.first_paged_out(special=not self._checks_each_message)
        if paged_out is not None:
            self.page_in_requests.scan(paged_out)

    # -- what is in it

    @property
    def ready_count(self) -> int:
        return 0 if self._backlog is None else self._backlog.count

    @property
    def consumer_count(self) -> int:
        return 0 if self.ring is None else len(self.ring.members)

    @property
    def backlog(self) -> Backlog:
        if self._backlog is None:
            highest = None if self.rules is None else self.rules.max_priority
            self._backlog = PriorityBacklog(highest) if highest else Backlog()
        return self._backlog

    @property
    def page_in_requests(self) -> PageIn:
        if self._page_in is None:
            self._page_in = PageIn(self, self._broker)
        return self._page_in

    @property
    def is_paging_in(self) -> bool:
        """Whether its next message is on its way from the store."""
        return self._page_in is not None and self._page_in.is_awaited

    @property
    def has_consumers(self) -> bool:
        """Whether it has consumers."""
        return self.ring is not None and bool(self.ring.members)

    @property
    def next_offset(self) -> int:
        """The number of the next message that comes in, if it numbers them."""
        return 0

    @property
    def adds_offsets(self) -> bool:
        """Whether messages are to carry their place in it."""
        return False

    @property
    def has_priorities(self) -> bool:
        """Whether it orders its messages by priority."""
        return self.rules is not None and bool(self.rules.max_priority)

    @property
    def highest_delivered(self) -> dict[tuple[int, int | None], int]:
        """The highest number that went out, by the queue's id and a priority, None for all."""
        if self._delivered_of is None:
            return {(self.id, None): self.delivered_sequence}
        found: dict[tuple[int, int | None], int] = {(self.id, None): 0}
        for priority, number in self._delivered_of.items():
            found[self.id, priority] = number
        return found

    def refuses(self, entry: QueueEntry) -> bool:
        """Whether there is no room for it (overflow `reject-publish`); then it must not be
        enqueued, and may have become a dead letter."""
        rules = self.rules
        if rules is None or not rules.checks_publishes or rules.overflow == "drop-head":
            return False
        if not over_limit(self, rules, entry):
            self._hurry_page_in()
            return False
        if rules.overflow == "reject-publish-dlx":
            self._broker.dead_letter(self, MessageRange(entry, 0, entry.count), "maxlen")
        return True

    def _hurry_page_in(self) -> None:
        """What has not been read since a start has no bytes yet, so a queue takes too much as long
        as that lasts: never more than its limit beside what it had."""
        paged_out = (
            self._backlog.first_paged_out()
            if self._counts_bytes and self._backlog is not None
            else None
        )
        if paged_out is not None:
            self.page_in_requests.hurry(paged_out)

    def enqueue(self, entry: QueueEntry) -> None:
        """Takes an entry in."""
        if self.rules is None and entry.batch.attributes.expiration is None:
            self.backlog.append(entry)
            if self.ring is not None and not self.active:
                self._broker.wake(self)
        else:
            self._enqueue_checked(entry)

    def recover(self, held: Sequence[PagedOut]) -> None:
        """Takes in what an earlier process left, oldest first, before anything new comes in."""
        for paged_out in held:
            self.backlog.append_range(paged_out)
        if held:
            self._broker.wake(self)

    def scan_recovered(self) -> None:
        """Has read, while the server goes on, what `recover` took in and has to be looked at one by
        one: it has a time of its own, or counts under the queue's rules. What consumers wait for
        is read first."""
        self._scan_paged_out()

    def _enqueue_checked(self, entry: QueueEntry) -> None:
        rules = self.rules
        backlog = self.backlog
        messages = backlog.append(entry)
        if rules is not None and rules.max_length_bytes is not None:
            self.ready_bytes += messages.body_bytes()
        self._set_deadline(messages)
        if messages.entry.deadline_ms == self._broker.now_ms:
            # A TTL of 0: those who are ready now get it all, in whatever turn that falls.
            self._dispatch(backlog.count)
        self._broker.wake(self)
        if not self._has_open_consumer():
            self._drop_excess()

    # -- who gets it

    def dispatch(self, budget: int) -> bool:
        """Hands out up to about `budget` messages; True if there is more to hand out."""
        if self.expiry is not None and self.expiry.is_pressing:
            budget = max(budget, self.ready_count)
        more = self._dispatch(budget)
        if self.expiry is not None:
            self.expire()
        if not more:
            self._drop_excess()
        return more

    def _dispatch(self, budget: int) -> bool:
        more = self._dispatch_in_turn(budget)
        backlog = self._backlog
        if backlog is not None and backlog.paged_out_ranges and self.ring is not None:
            self.page_in_requests.read_ahead(backlog)
        return more

    def _dispatch_in_turn(self, budget: int) -> bool:
        ring, backlog = self.ring, self._backlog
        if ring is None or backlog is None or self._dispatch_pauses:
            return False
        turns = quantum = 0
        while backlog.count:
            line = ring.ready_consumers()
            if line is None:
                return False
            if budget <= 0:
                return True
            consumer = line[0]
            credit = consumer.credit()
            if credit <= 0:
                line.popleft()
                consumer.open = False
                continue
            if turns == 0:
                turns = len(line)
                # A round fits the budget, or those at its end would get less.
                quantum = max(1, min(budget, backlog.count) // turns)
            turns -= 1
            line.rotate(-1)
            given = self._dispatch_to(consumer, min(quantum, credit))
            if given == 0:
                # Messages are on their way from the store, and then it is still its turn.
                line.rotate(1)
                return False
            budget -= given
        return False

    def _dispatch_to(self, consumer: Consumer, limit: int) -> int:
        given = 0
        while given < limit:
            messages = self.dequeue(limit - given)
            if messages is None:
                break
            given += messages.high - messages.low
            if self._redeliveries is None:
                consumer.session.deliver(consumer, messages)
            else:
                consumer.session.deliver(
                    consumer, messages, self._redeliveries.with_headers(messages)
                )
            if not consumer.session.writable:
                break
        return given

    def dequeue(self, limit: int) -> MessageRange | None:
        """The oldest messages, unacked from now on: one range of at most `limit` messages.

        None if there are none, or if they are on their way from the store: then the queue is
        woken when they arrive.
        """
        backlog = self._backlog
        if backlog is None:
            return None
        head = backlog.head()
        while (
            isinstance(head, MessageRange)
            and self.expiry is not None
            and self.expiry.is_expired(head)
        ):
            self._dead_letter_expired(backlog.empty(head))
            head = backlog.head()
        if not isinstance(head, MessageRange):
            if head is not None:
                self.page_in_requests.await_head(head)
            return None
        batch = head.entry.batch
        if not batch.resident:
            self.page_in_requests.await_head(head)
            return None
        size = batch.size_bytes
        if size > DISPATCH_BYTES:
            limit = min(limit, max(1, DISPATCH_BYTES * batch.count // size))
        messages = backlog.take(head, limit)
        self.unacked_count += messages.high - messages.low
        self._subtract_bytes(messages)
        if self.durable:
            last = messages.entry.sequence(messages.high - 1)
            if last > self.delivered_sequence:
                self.delivered_sequence = last
                if last > self._logged_up_to and not self.has_consumers:
                    self._logged_up_to = last + LOGGED_AHEAD
                    self._broker.store.delivered(self, self._logged_up_to)
            if self._delivered_of is not None:
                before = self._delivered_of.get(batch.attributes.priority, 0)
                self._delivered_of[batch.attributes.priority] = max(before, last)
        return messages

    def _log_deliverable(self) -> None:
        """What is here may go out from now on, and would come back redelivered after a crash.

        That is kept before the first delivery. What comes in while there are consumers is kept
        with that mark, so deliveries themselves write nothing.
        """
        store = self._broker.store
        self._logged_up_to = store.reserve(0) - 1
        self._dispatch_pauses += 1
        self._broker.when_kept(store.delivered(self, self._logged_up_to), self._resume_dispatch)

    def _resume_dispatch(self) -> None:
        self._dispatch_pauses -= 1
        self._broker.wake(self)
        self._broker.on_work()

    def get(self, action: Callable[[], None]) -> None:
        """Runs `action` when the oldest message is resident: now, or when it has arrived."""
        if self._requeues:
            self.page_in_requests.get_after_requeue(action)
            return
        commit = self._log_get()
        if commit:
            self._broker.when_kept(commit, lambda: self._get(action))
        else:
            self._get(action)

    def _log_get(self) -> int:
        """The commit that keeps that the oldest message may go out, 0 if it is kept: it must come
        back as redelivered after a crash."""
        head = None if self._backlog is None else self._backlog.head()
        if not self.durable or self.has_consumers or not isinstance(head, MessageRange):
            return 0
        if head.sequence > self._logged_up_to:
            self._logged_up_to = head.sequence + LOGGED_AHEAD
        return self._broker.store.delivered(self, self._logged_up_to)

    def _get(self, action: Callable[[], None]) -> None:
        head = None if self._backlog is None else self._backlog.head()
        if head is None or (isinstance(head, MessageRange) and head.entry.batch.resident):
            action()
            return
        self.page_in_requests.get(head, action)

    def check_get(self) -> None:
        """Raises what basic.get is answered with if it can't be."""

    def check_purge(self) -> None:
        """As `check_get`, for queue.purge."""

    def check_consumer(self, consumer: Consumer) -> None:
        """Raises `ChannelError` or `ConnectionFault` for one that this type of queue can't have."""

    def open_consumer(self, consumer: Consumer) -> None:
        if self.ring is not None and consumer in self.ring.members:
            self.ring.open(consumer)
            self._broker.wake(self)

    def add_consumer(self, consumer: Consumer) -> None:
        if self.ring is None:
            single = self.rules is not None and self.rules.single_active
            self.ring = SingleActiveRing() if single else ConsumerRing()
        if self.durable and self.ready_count and not self.has_consumers:
            self._log_deliverable()
        self.ring.add(consumer)
        if consumer.exclusive:
            self.exclusive_consumer = consumer
        self._broker.wake(self)

    def remove_consumer(self, consumer: Consumer, *, comes_back: bool = False) -> None:
        """Its unacked messages stay valid. The last one takes an auto-delete queue with it, unless
        it only pauses and `comes_back`."""
        if self.ring is None or consumer not in self.ring.members:
            return
        self.detach_consumer(consumer)
        self.consumer_removed(consumer, comes_back=comes_back)

    def detach_consumer(self, consumer: Consumer) -> None:
        """It gets nothing more; `left_by` is still to be called."""
        if self.ring is not None and consumer in self.ring.members:
            self.ring.remove(consumer)
        if self.exclusive_consumer is consumer:
            self.exclusive_consumer = None

    def consumer_removed(self, consumer: Consumer, *, comes_back: bool = False) -> None:
        """What follows when a consumer has been taken off."""
        self.note_use()
        if self.ring is not None and not self.ring.members and not self.deleted:
            self.ring = None
            if self.auto_delete and not comes_back:
                self._broker.drop_queue(self)
        elif self.ring is not None:
            self._broker.wake(self)  # Somebody else may be the single active one.

    def detach_consumers(self) -> tuple[Consumer, ...]:
        """Its consumers get nothing more; gives them, who are still to be told."""
        ring, self.ring = self.ring, None
        return () if ring is None else tuple(ring.members)

    def with_headers(self, messages: MessageRange) -> MessageRange:
        """What a consumer is to see of messages that were taken."""
        return messages if self._redeliveries is None else self._redeliveries.with_headers(messages)

    # -- out of memory

    @property
    def _checks_each_message(self) -> bool:
        return self.rules is not None and self.rules.checks_each_message

    @property
    def _counts_bytes(self) -> bool:
        return self.rules is not None and self.rules.max_length_bytes is not None

    @property
    def paged_out_count(self) -> int:
        """Ready messages of which nothing is in memory."""
        backlog = self._backlog
        if backlog is None or not backlog.paged_out_ranges:
            return 0
        return sum(part.count for part in backlog if isinstance(part, PagedOut))

    @property
    def estimated_bytes(self) -> int:
        """What the ready messages in memory take, judged by one of them."""
        return (self.ready_count - self.paged_out_count) * self._average_bytes()

    def _average_bytes(self) -> int:
        head = None if self._backlog is None else self._backlog.newest()
        return 64 if head is None else max(1, head.entry.batch.size_bytes // head.entry.batch.count)

    def page_out(
        self, head_bytes: int, *, transient: bool, enough: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """Lets go of ready messages, but not of about `head_bytes` at the front, until there is
        `enough` room; of those that are on no disk yet only if `transient`. In steps, between which
        the queue may change; if other rules come up it ends."""
        backlog, plain = self._backlog, self._can_page_out
        if backlog is None:
            return
        store = self._broker.store
        ranks = self.has_priorities

        def freeze(messages: MessageRange, before: PagedOut | None) -> PagedOut | None:
            if enough():
                return None
            is_ranked = ranks and messages.entry.batch.attributes.priority > 0
            paged_out = store.page_out(messages, before) if plain and not is_ranked else None
            batch = messages.entry.batch
            if paged_out is None and batch.resident and (transient or batch.location is not None):
                store.evict(batch)
            return paged_out

        for _ in backlog.page_out(head_bytes // self._average_bytes(), freeze, plain=plain):
            yield
            if enough() or self._backlog is not backlog or self._can_page_out is not plain:
                return

    @property
    def _can_page_out(self) -> bool:
        """Whether its messages may be ranges of which nothing is in memory."""
        return self.durable and not self._checks_each_message and self.expiry is None

    # -- what becomes of it

    def settle(self, messages: MessageRange) -> None:
        """Delivered messages are done with: acknowledged, or dropped."""
        self.unacked_count -= messages.high - messages.low
        if self.durable and not self.deleted:
            self._broker.store.settle(self, messages)
        if self._redeliveries is not None and not self.deleted:
            self._redeliveries.forget(messages)

    @property
    def counts_redeliveries(self) -> bool:
        """Whether it keeps how often messages came back."""
        return self._redeliveries is not None

    def note_settled(self, messages: MessageRange, many: ManySettled) -> None:
        """`settle` in three steps, with `count_settled`."""
        if self.durable:
            many.note(self.id, messages)

    def count_settled(self, messages: MessageRange, many: ManySettled) -> None:
        self.unacked_count -= messages.high - messages.low
        if self.durable and not self.deleted:
            many.count(messages)
        if self._redeliveries is not None and not self.deleted:
            self._redeliveries.forget(messages)

    def settle_dead_lettered(self, messages: MessageRange) -> None:
        """Dead letters have been moved, or go nowhere."""
        if self.deleted:
            return
        if self.durable:
            self._broker.store.settle(self, messages)
        if self._redeliveries is not None:
            self._redeliveries.forget(messages)

    def requeue(self, messages: MessageRange, *, failed: bool = True) -> None:
        """Delivered messages come back to their original place, flagged redelivered.

        `failed` is False for those that were only given back (nack, recover).
        """
        for part in self.begin_requeue(messages, failed=failed):
            self._insert_requeued(part)

    def begin_requeue(self, messages: MessageRange, *, failed: bool = True) -> list[MessageRange]:
        """As `requeue`, but for the last step: gives what `put_back` has to be called with.

        With a delivery limit messages are counted, and those that came back too often become dead
        letters.
        """
        self.unacked_count -= messages.high - messages.low
        if self.deleted:
            return []
        if self._redeliveries is None:
            return [MessageRange(messages.entry, messages.low, messages.high, True)]
        back: list[MessageRange] = []
        limit = None if self.rules is None else self.rules.delivery_limit
        for part, times in self._redeliveries.count_returns(messages, failed=failed):
            if limit is not None and times.counted > limit >= 0:
                self._broker.dead_letter(self, part, "delivery_limit")
            elif not self._delays_retry(part, times.total, failed=failed):
                back.append(part)
        return back

    def finish_requeue(self, messages: MessageRange) -> None:
        """Messages that came back are at their place again, unless the queue has ended."""
        if not self.deleted:
            self._insert_requeued(messages)

    @contextmanager
    def requeuing(self) -> Iterator[None]:
        """Messages come back in slices: inside, nothing is handed out, or what is younger would
        overtake them. Those that are not back yet count as unacknowledged."""
        self._requeues += 1
        self._dispatch_pauses += 1
        try:
            yield
        finally:
            self._requeues -= 1
            self._resume_dispatch()
            if self._page_in is not None and not self._requeues:
                self._page_in.requeues_finished()

    def split_by_delivery_limit(
        self, messages: MessageRange, *, failed: bool
    ) -> Iterator[tuple[MessageRange, bool]]:
        """In which parts delivered messages would come back, and whether as dead letters because
        they came back too often."""
        limit = None if self.rules is None else self.rules.delivery_limit
        if self._redeliveries is None or limit is None or limit < 0:
            yield messages, False
        else:
            yield from self._redeliveries.split_by_limit(messages, limit, failed=failed)

    def _delays_retry(self, messages: MessageRange, times: int, *, failed: bool) -> bool:
        """Whether, with delayed retries, it comes back to its place only after a while."""
        delay = None if self.rules is None else self.rules.retry_delay
        if delay is None or not delay.covers(failed=failed):
            return False
        if self._delayed_retries is None:
            self._delayed_retries = DelayedRetries(self._broker.timers, self.finish_requeue)
        self._delayed_retries.add(messages, delay, times, self._broker.now_ms)
        return True

    def return_undelivered(self, messages: MessageRange) -> None:
        """Messages that were taken but never reached anyone: back, flags as they were."""
        self.unacked_count -= messages.high - messages.low
        if not self.deleted:
            self._insert_requeued(messages)

    def reject(self, messages: MessageRange) -> None:
        """Delivered messages are refused for good (AMQP 0-9-1 1.8.3.14)."""
        self.unacked_count -= messages.high - messages.low
        if not self.deleted:
            self._broker.dead_letter(self, messages, "rejected")

    def expire_delivered(self, messages: MessageRange, shown: Batch) -> None:
        """A delivered message's time is over; its dead letter is made of `shown`."""
        self.unacked_count -= messages.high - messages.low
        if not self.deleted:
            self._broker.dead_letter_as(self, messages, "expired", shown)

    def purge(self, done: Callable[[], None] = lambda: None) -> int:
        """Drops all ready messages; gives their number. They are gone for everybody at once, and
        settled in slices; `done` is called when that is kept, and what purges before it dropped.
        After a crash before it the newest of them may be there again.

        A deleted queue lets go of its appointments as well, and of what keeps them: that knows the
        queue, and a cycle would wait for the collector, 300 bytes in all.
        """
        backlog, self._backlog = self._backlog, None
        self.ready_bytes = 0
        if self.expiry is not None:
            self.expiry.forget()
        if self.deleted:
            self._stop_timers()
        if backlog is None and self._purges is None:
            done()
            return 0
        if self._purges is None:
            self._purges = Purges(self._broker)
        purge = self._purges.begin(done)
        if backlog is None:
            self._purges.end(purge, 0)
            return 0
        purged = backlog.count
        reading = self._discard_reading(backlog)
        ended = partial(self._purges.end, purge)
        self._broker.slices.start(self._settle_all(backlog, reading, ended))
        return purged

    def _discard_reading(self, backlog: Backlog) -> Steps:
        """What a read brings of a range that was purged must not come in again."""
        if self.deleted or self._page_in is None or not backlog.paged_out_ranges:
            return iter(())
        store = self._broker.store
        return chain.from_iterable(
            [store.discard(self, paged_out) for paged_out in self._page_in.reading]
        )

    def _settle_all(self, backlog: Backlog, reading: Steps, ended: Callable[[int], None]) -> Steps:
        """Settles what is in a backlog that is the queue's no more; if the queue has ended, only
        frees it. `ended` is given the commit that keeps it."""
        yield from reading
        while (head := backlog.head()) is not None and not self.deleted:
            if isinstance(head, PagedOut):
                yield from self._broker.store.discard(self, head)
                continue
            messages = backlog.empty(head)
            if self._redeliveries is not None:
                self._redeliveries.forget(messages)
            if self.durable:
                self._broker.store.settle(self, messages)
            yield None
        ended(self._broker.store.barrier() if self.durable else 0)
        yield from backlog.release()

    def _stop_timers(self) -> None:
        if self._idleness is not None:
            self._idleness.end()
        if self._delayed_retries is not None:
            self._delayed_retries.end()
        self.expiry = self._idleness = self._delayed_retries = None

    def expire(self) -> None:
        """Lets go of everything whose time is over."""
        if self.expiry is not None:
            for messages in self.expiry.due(self.backlog, self._broker.now_ms):
                self._dead_letter_expired(messages)

    def note_use(self) -> None:
        """Notes a use that puts off `x-expires`: a consumer, a get, a declaration."""
        self.last_used_ms = self._broker.now_ms

    # -- inner

    @property
    def has_ready_consumer(self) -> bool:
        """Whether a message that came in now would be delivered at once."""
        if self.ring is None or self.ready_count:
            return False
        return self.ring.can_take_one()

    def _has_open_consumer(self) -> bool:
        return self.ring is not None and self.ring.ready_consumers() is not None

    def _set_deadline(self, messages: MessageRange, *, recovered: bool = False) -> None:
        ttl_ms = None if self.rules is None else self.rules.message_ttl_ms
        if ttl_ms is not None or messages.entry.batch.attributes.expiration is not None:
            if self.expiry is None:
                self.expiry = Expiry(self._broker, self._wake_for_expiry, ttl_ms)
            self.expiry.set_deadline(messages, recovered=recovered)

    def _wake_for_expiry(self) -> None:
        self._broker.wake(self)

    def _insert_requeued(self, messages: MessageRange) -> None:
        held = self.backlog.requeue(messages)
        if self.rules is not None and self.rules.max_length_bytes is not None:
            self.ready_bytes += messages.body_bytes()
        if self.expiry is not None:
            self.expiry.requeued(held)
        self._broker.wake(self)

    def _subtract_bytes(self, messages: MessageRange) -> None:
        if self.rules is not None and self.rules.max_length_bytes is not None:
            self.ready_bytes -= messages.body_bytes()

    def _dead_letter_expired(self, messages: MessageRange) -> None:
        self._subtract_bytes(messages)
        self._broker.dead_letter(self, messages, "expired")

    def _drop_excess(self) -> None:
        """Drops from the head what is over the limits (x-overflow `drop-head`)."""
        rules = self.rules
        if rules is None or not rules.limited or rules.overflow != "drop-head":
            return
        if self._requeues:
            return  # The oldest may not be back yet.
        # What is over goes first: it displaces nobody, however the client's bytes were cut.
        self.expire()
        while (excess := self._excess(rules)) and (head := self.backlog.head()):
            if isinstance(head, PagedOut):
                self.page_in_requests.await_head(head)
                return
            messages = self.backlog.take(head, excess)
            self._subtract_bytes(messages)
            self._broker.dead_letter(self, messages, "maxlen")

    def _excess(self, rules: Rules) -> int:
        """How many messages are over the limits: 1, and then it is to be asked again, if they are
        over the one in bytes. What has not been looked at since a start has no bytes yet."""
        if rules.max_length is not None and self.ready_count > rules.max_length:
            return self.ready_count - rules.max_length
        return int(rules.max_length_bytes is not None and self.ready_bytes > rules.max_length_bytes)

    # -- what arrives from the store

    def drop_unreadable(self, entry: QueueEntry) -> None:
        """Its bytes could not be read."""
        backlog = self._backlog
        while backlog is not None:
            head = backlog.head()
            if not isinstance(head, MessageRange) or head.entry is not entry:
                return
            self._subtract_bytes(backlog.empty(head))

    def paged_in(self, paged_out: PagedOut, ranges: Sequence[MessageRange]) -> None:
        """The front of a range is in memory again."""
        if (ranges or paged_out.lost) and self._backlog is not None:
            self._backlog.paged_in(paged_out, ranges)
        if self._checks_each_message or paged_out.special:
            self._recount(paged_out, ranges)

    def _recount(self, paged_out: PagedOut, ranges: Sequence[MessageRange]) -> None:
        """Messages that were cold when rules came up that must know each one, or at a start. They
        leave memory again if nobody reads them just now, but for those that are over."""
        is_next = self._backlog is not None and not isinstance(self._backlog.head(), PagedOut)
        keeps = is_next and (self.has_consumers or self.is_paging_in)
        for messages in ranges:
            self.ready_bytes += messages.body_bytes() if self._counts_bytes else 0
            self._set_deadline(messages, recovered=True)
            deadline_ms = messages.entry.deadline_ms
            is_over = deadline_ms is not None and deadline_ms <= self._broker.now_ms
            if not (keeps or is_over):
                self._broker.store.evict(messages.entry.batch)
        self._scan_paged_out(paged_out if ranges else None)
        self._broker.wake(self)
