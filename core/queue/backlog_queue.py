"""The ready messages of a classic or quorum queue: arrival, limits, deadlines, paging and purge.

`classic.py` adds who the messages are delivered to and what becomes of deliveries. A queue without
rules tests one attribute per entry that arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..definitions.facts import queue_owner
from ..message.batch import Batch
from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from .backlog import Backlog
from .deduplication import SeenIds
from .expiry import Expiry
from .idleness import Idleness
from .limit import excess_count, over_limit
from .page_in import PendingReads
from .page_out import average_bytes, page_out, paged_out_count
from .priority import PriorityBacklog
from .purges import PendingPurges
from .queue import Queue
from .rules import PLAIN, Rules

if TYPE_CHECKING:
    from ..slices import Steps


class BacklogQueue(Queue):
    """A queue whose ready messages are in a `Backlog`.

    `expiry` exists once a message in the queue can expire. `ready_bytes` is counted only under a
    limit in bytes.
    """

    __slots__ = (
        "_backlog", "_idleness", "_page_in", "_purges", "_requeues", "expiry", "ready_bytes",
    )  # fmt: skip

    def _initialise(self) -> None:
        self.expiry: Expiry | None = None
        self.ready_bytes = 0
        self._backlog: Backlog | None = None
        self._page_in: PendingReads | None = None
        self._idleness: Idleness | None = None
        self._purges: PendingPurges | None = None
        self._requeues = 0
        """Requeues in progress (`requeuing`)."""

    def _activate(self, rules: Rules) -> None:
        super()._activate(rules)
        if rules.expires_ms is not None and self._idleness is None:
            self._idleness = Idleness(self, self._broker, rules.expires_ms)
        if rules.deduplication is not None and self.seen is None:
            owner = queue_owner(self.id) if self.durable else None
            self.seen = SeenIds(rules.deduplication, self._broker, owner)

    # -- rules

    def apply(self, rules: Rules | None) -> None:
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
        self.scan_recovered()
        self._broker.wake(self)
        self._broker.on_work()

    def _reset_deadlines(self, ttl_ms: int | None) -> None:
        """Gives messages in the queue the deadline that they would have had under this TTL."""
        if self.expiry is None:
            if ttl_ms is None:
                return
            self.expiry = Expiry(self._broker, self._wake, ttl_ms)
        self.expiry.reset_deadlines(self.backlog, ttl_ms)

    def _recount_bytes(self) -> None:
        self.ready_bytes = sum(
            part.body_bytes() for part in self.backlog if isinstance(part, MessageRange)
        )

    def _wake(self) -> None:
        self._broker.wake(self)

    @property
    def _checks_each_message(self) -> bool:
        return self.rules is not None and self.rules.checks_each_message

    @property
    def _counts_bytes(self) -> bool:
        return self.rules is not None and self.rules.max_length_bytes is not None

    # -- contents

    @property
    def ready_count(self) -> int:
        return 0 if self._backlog is None else self._backlog.count

    @property
    def front_arrived_ms(self) -> int | None:
        front = None if self._backlog is None else next(iter(self._backlog), None)
        return front.entry.batch.arrived_ms if isinstance(front, MessageRange) else None

    @property
    def backlog(self) -> Backlog:
        """The ready messages; created when it is first needed."""
        if self._backlog is None:
            highest = None if self.rules is None else self.rules.max_priority
            self._backlog = PriorityBacklog(highest) if highest else Backlog()
        return self._backlog

    def refuses(self, message: Batch) -> bool:
        rules = self.rules
        if rules is None or not rules.checks_publishes or rules.overflow == "drop-head":
            return False
        if not over_limit(self, rules, message.body_bytes(0)):
            self._hurry_page_in()
            return False
        if rules.overflow == "reject-publish-dlx":
            refused = MessageRange(QueueEntry(message, None), 0, 1)
            self._broker.dead_letter(self, refused, "maxlen")
        return True

    def _hurry_page_in(self) -> None:
        """Reads paged-out messages soon whose bytes count under the limit: until then a queue may
        take as much as its limit beside what it had at the start."""
        backlog = self._backlog
        if backlog is None or not self._counts_bytes:
            return
        paged_out = backlog.first_paged_out()
        if paged_out is not None:
            self.page_in_requests.hurry(paged_out)

    def enqueue(self, entry: QueueEntry) -> None:
        if self.rules is None and entry.batch.attributes.expiration is None:
            self.backlog.append(entry)
            if self.ring is not None and not self.active:
                self._broker.wake(self)
        else:
            self._enqueue_checked(entry)

    def _enqueue_checked(self, entry: QueueEntry) -> None:
        rules = self.rules
        backlog = self.backlog
        messages = backlog.append(entry)
        if rules is not None and rules.max_length_bytes is not None:
            self.ready_bytes += messages.body_bytes()
        self._set_deadline(messages)
        if messages.entry.deadline_ms == self._broker.now_ms:
            # With a TTL of 0 consumers that are ready now get it all, in whatever turn that is.
            self._dispatch(backlog.count)
        self._broker.wake(self)
        if self.ring is None or self.ring.ready_consumers() is None:
            self._drop_excess()

    def _dispatch(self, budget: int) -> bool:
        """Delivers up to `budget` messages; True if there is more to deliver."""
        raise NotImplementedError

    def recover(self, paged_out_ranges: Sequence[PagedOut]) -> None:
        for paged_out in paged_out_ranges:
            self.backlog.append_range(paged_out)
        if paged_out_ranges:
            self._broker.wake(self)

    # -- expiry and length limits

    def expire(self) -> None:
        """Dead-letters or drops all ready messages whose deadline has passed."""
        if self.expiry is not None:
            for messages in self.expiry.due(self.backlog, self._broker.now_ms):
                self._dead_letter_expired(messages)

    def _set_deadline(self, messages: MessageRange, *, recovered: bool = False) -> None:
        ttl_ms = None if self.rules is None else self.rules.message_ttl_ms
        if ttl_ms is not None or messages.entry.batch.attributes.expiration is not None:
            if self.expiry is None:
                self.expiry = Expiry(self._broker, self._wake, ttl_ms)
            self.expiry.set_deadline(messages, recovered=recovered)

    def _dead_letter_expired(self, messages: MessageRange) -> None:
        self._subtract_bytes(messages)
        self._broker.dead_letter(self, messages, "expired")

    def _subtract_bytes(self, messages: MessageRange) -> None:
        if self.rules is not None and self.rules.max_length_bytes is not None:
            self.ready_bytes -= messages.body_bytes()

    def _drop_excess(self) -> None:
        """Drops messages over the limits from the head (x-overflow `drop-head`)."""
        rules = self.rules
        if rules is None or not rules.limited or rules.overflow != "drop-head":
            return
        if self._requeues:
            return  # The oldest may not be back yet.
        # Expired messages go first: they displace nobody, however the client's bytes were cut.
        self.expire()
        while (excess := excess_count(self, rules)) and (head := self.backlog.head()):
            if isinstance(head, PagedOut):
                self.page_in_requests.await_head(head)
                return
            messages = self.backlog.take(head, excess)
            self._subtract_bytes(messages)
            self._broker.dead_letter(self, messages, "maxlen")

    # -- paging out and in

    @property
    def paged_out_count(self) -> int:
        return 0 if self._backlog is None else paged_out_count(self._backlog)

    @property
    def estimated_bytes(self) -> int:
        backlog = self._backlog
        if backlog is None:
            return 0
        return (backlog.count - paged_out_count(backlog)) * average_bytes(backlog)

    def page_out(
        self, head_bytes: int, *, transient: bool, enough: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        if self._backlog is None:
            return iter(())
        store = self._broker.store
        return page_out(self, store, head_bytes, transient=transient, enough=enough)

    @property
    def can_page_out(self) -> bool:
        """Whether its messages may be in paged-out ranges: none has to be known by itself."""
        return self.durable and not self._checks_each_message and self.expiry is None

    @property
    def page_in_requests(self) -> PendingReads:
        """The reads requested from the store; created when the queue first waits for one."""
        if self._page_in is None:
            self._page_in = PendingReads(self, self._broker)
        return self._page_in

    @property
    def is_paging_in(self) -> bool:
        """Whether its next message is being read from disk."""
        return self._page_in is not None and self._page_in.is_awaited

    def scan_recovered(self, last: PagedOut | None = None) -> None:
        """Reads a paged-out range in the background if each of its messages must be known, because
        of the rules or because some have an expiration. `last` is the range just read from."""
        backlog = self._backlog
        if backlog is None or not backlog.paged_out_ranges:
            return
        paged_out = last
        if paged_out is None or not paged_out.count:
            paged_out = backlog.first_paged_out(special=not self._checks_each_message)
        if paged_out is not None:
            self.page_in_requests.scan(paged_out)

    def drop_unreadable(self, entry: QueueEntry) -> None:
        """Drops an entry from the head whose bytes could not be read."""
        backlog = self._backlog
        while backlog is not None:
            head = backlog.head()
            if not isinstance(head, MessageRange) or head.entry is not entry:
                return
            self._subtract_bytes(backlog.empty(head))

    def paged_in(self, paged_out: PagedOut, ranges: Sequence[MessageRange]) -> None:
        """Puts the first messages of a paged-out range into the backlog, just read from disk."""
        if (ranges or paged_out.lost) and self._backlog is not None:
            self._backlog.paged_in(paged_out, ranges)
        if self._checks_each_message or paged_out.special:
            self._check_paged_in(paged_out, ranges)

    def _check_paged_in(self, paged_out: PagedOut, ranges: Sequence[MessageRange]) -> None:
        """Counts bytes and sets deadlines of messages that were paged out when the rules came into
        force, or at the start. They leave memory again unless they are delivered next or expired.
        """
        is_next = self._backlog is not None and not isinstance(self._backlog.head(), PagedOut)
        keeps = is_next and (self.has_consumers or self.is_paging_in)
        for messages in ranges:
            self.ready_bytes += messages.body_bytes() if self._counts_bytes else 0
            self._set_deadline(messages, recovered=True)
            deadline_ms = messages.entry.deadline_ms
            is_expired = deadline_ms is not None and deadline_ms <= self._broker.now_ms
            if not (keeps or is_expired):
                self._broker.store.batches.evict(messages.entry.batch)
        self.scan_recovered(paged_out if ranges else None)
        self._broker.wake(self)

    # -- purge

    def purge(self, done: Callable[[], None] = lambda: None) -> int:
        # A deleted queue ends its timers and forgets their owners: these refer to the queue, and
        # the cycle would stay until the garbage collector runs, 300 bytes in all.
        backlog, self._backlog = self._backlog, None
        self.ready_bytes = 0
        if self.expiry is not None:
            self.expiry.forget()
        if self.deleted:
            self._end_timers()
        if backlog is None and self._purges is None:
            done()
            return 0
        if self._purges is None:
            self._purges = PendingPurges(self._broker)
        purge = self._purges.begin(done)
        if backlog is None:
            self._purges.end(purge, 0)
            return 0
        purged = backlog.count
        reading = self._discard_reading(backlog)
        self._broker.slices.start(self._purges.settle(self, backlog, reading, purge))
        return purged

    def _discard_reading(self, backlog: Backlog) -> list[Steps]:
        """Discards the ranges that are being read, so that purged messages are not paged in;
        returns the steps of each that are left to do."""
        if self.deleted or self._page_in is None or not backlog.paged_out_ranges:
            return []
        store = self._broker.store
        return [store.discard(self, paged_out) for paged_out in self._page_in.reading]

    def _end_timers(self) -> None:
        if self._idleness is not None:
            self._idleness.end()
        self.expiry = self._idleness = None
