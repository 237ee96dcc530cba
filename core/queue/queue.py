"""A classic queue: what comes in, who gets it, what becomes of it.

The plain queue is this module alone. What `x-` arguments ask for stands beside it (limits in
`limit.py`, expiry in `expiry.py`, dead letters in the broker's `mover`); a queue without them
has `rules` None and tests one attribute per run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ..block import Cold, Run, Span
from ..model import Table
from ..route.route import Watched
from .arguments import Rules
from .consumer import Consumer, ConsumerRing
from .expiry import Expiry
from .limit import over_limit
from .ready import Backlog

if TYPE_CHECKING:
    from ..route.exchange import Exchange
    from ..store.port import Store
    from ..timers import Timer, Timers

GETS_AHEAD = 10_000
"""How many numbers a mark goes ahead of a get, so that not every one makes a mark."""
READ_AHEAD_MESSAGES = 6_000
PUMP_BYTES = 262_144
"""What one consumer is given in one piece, as far as whole messages allow."""


class Surroundings(Protocol):
    """What a queue needs of its broker."""

    store: Store
    timers: Timers
    now_ms: int

    @property
    def on_work(self) -> Callable[[], None]:
        """Asks for a turn, by what comes from the store and not from a client."""

    def when_kept(self, commit: int, action: Callable[[], None]) -> None:
        """Runs `action` when that commit is true, or never will be."""

    def wake(self, queue: Queue) -> None:
        """Has the queue pumped in the next turn."""

    def dead_letter(self, queue: Queue, span: Span, reason: str) -> None:
        """Takes over messages that left the queue without being consumed, and settles them."""

    def drop_queue(self, queue: Queue) -> None:
        """The queue's time is over: auto-delete, expiry."""


class Queue(Watched):
    """Made by a virtual host; `owner` is the connection of an exclusive queue.

    `id` is never reused. `expiry` exists once something in the queue can expire.
    """

    __slots__ = (
        "_backlog", "_broker", "_getting", "_idle_timer", "_is_held", "_reading", "_told_up_to",
        "active", "arguments", "auto_delete", "bound", "deleted", "delivered_sequence", "durable",
        "exclusive_consumer", "expiry", "id", "last_used_ms", "name", "owner", "ready_bytes",
        "ring", "rules", "unacked_count", "vhost", "waiting",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        vhost: str,
        broker: Surroundings,
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
        self.rules = rules
        self.ring: ConsumerRing | None = None
        self.exclusive_consumer: Consumer | None = None
        self.bound: dict[Exchange, None] | None = None
        self.expiry: Expiry | None = None
        self.unacked_count = 0
        self.ready_bytes = 0
        self.last_used_ms = broker.now_ms
        self.active = False
        self.waiting = False
        self.deleted = False
        self._backlog: Backlog | None = None
        self._getting: list[Callable[[], None]] | None = None
        self._idle_timer: Timer | None = None
        self._told_up_to = 0
        self._is_held = False
        self._reading: Cold | None = None
        self.delivered_sequence = 0
        self._broker = broker
        if rules is not None and rules.expires_ms is not None:
            self._watch_idleness()

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
            self._backlog = Backlog()
        return self._backlog

    @property
    def is_read(self) -> bool:
        """Whether it has consumers."""
        return self.ring is not None and bool(self.ring.members)

    def refuses(self, run: Run) -> bool:
        """Whether there is no room for it (overflow `reject-publish`); then it must not be
        enqueued, and may have become a dead letter."""
        rules = self.rules
        if rules is None or not rules.rejects or not over_limit(self, rules, run):
            return False
        if rules.overflow == "reject-publish-dlx":
            self._broker.dead_letter(self, Span(run, 0, run.count), "maxlen")
        return True

    def enqueue(self, run: Run) -> None:
        """Takes a run in."""
        if self.rules is None and run.block.traits.expiration is None:
            self.backlog.append(run)
            if self.ring is not None and not self.active:
                self._broker.wake(self)
        else:
            self._admit(run)

    def recover(self, held: Sequence[Cold | Span]) -> None:
        """Takes in what an earlier process left, oldest first, before anything new comes in.

        What has a time of its own, or counts under the queue's rules, is looked at one by one.
        """
        for part in held:
            if isinstance(part, Cold) and not self._looks_at_each:
                self.backlog.freeze(part)
                continue
            spans = self._broker.store.spans_now(part) if isinstance(part, Cold) else (part,)
            for span in spans:
                self.backlog.freeze(span)
                if self.rules is not None and self.rules.max_length_bytes is not None:
                    self.ready_bytes += span.body_bytes()
                self._watch(span, recovered=True)
        if held:
            self._broker.wake(self)

    def _admit(self, run: Run) -> None:
        rules = self.rules
        backlog = self.backlog
        span = backlog.append(run)
        if rules is not None and rules.max_length_bytes is not None:
            self.ready_bytes += span.body_bytes()
        self._watch(span)
        if span.run.deadline_ms == self._broker.now_ms:
            # A TTL of 0: those who are ready now get it all, in whatever turn that falls.
            self._hand_out(backlog.count)
        self._broker.wake(self)
        if not self._has_open_consumer():
            self._trim()

    # -- who gets it

    def pump(self, budget: int) -> bool:
        """Hands out up to about `budget` messages; True if there is more to hand out."""
        more = self._hand_out(budget)
        if self.expiry is not None:
            self.expire()
        if not more:
            self._trim()
        return more

    def _hand_out(self, budget: int) -> bool:
        more = self._deal(budget)
        backlog = self._backlog
        if backlog is not None and backlog.cold_stretches and self.ring is not None:
            self._read_ahead(backlog)
        return more

    def _deal(self, budget: int) -> bool:
        ring, backlog = self.ring, self._backlog
        if ring is None or backlog is None or self._is_held:
            return False
        turns = quantum = 0
        while backlog.count:
            line = ring.line()
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
            given = self._give(consumer, min(quantum, credit))
            if given == 0:
                # Messages are on their way from the store, and then it is still its turn.
                line.rotate(1)
                return False
            budget -= given
        return False

    def _give(self, consumer: Consumer, limit: int) -> int:
        given = 0
        while given < limit:
            span = self.take(limit - given)
            if span is None:
                break
            given += span.high - span.low
            consumer.session.deliver(consumer, span)
            if not consumer.session.writable:
                break
        return given

    def take(self, limit: int) -> Span | None:
        """The oldest messages, unacked from now on: one span of at most `limit` messages.

        None if there are none, or if they are on their way from the store: then the queue is
        woken when they arrive.
        """
        backlog = self._backlog
        if backlog is None:
            return None
        head = backlog.head()
        while isinstance(head, Span) and self.expiry is not None and self.expiry.is_over(head):
            self._expired(backlog.empty(head))
            head = backlog.head()
        if not isinstance(head, Span):
            if head is not None:
                self._thaw(head)
            return None
        block = head.run.block
        if not block.resident:
            self._fetch(head.run)
            return None
        size = block.size_bytes
        if size > PUMP_BYTES:
            limit = min(limit, max(1, PUMP_BYTES * block.count // size))
        span = backlog.take(head, limit)
        self.unacked_count += span.high - span.low
        self._left(span)
        if self.durable:
            last = span.run.sequence(span.high - 1)
            if last > self.delivered_sequence:
                self.delivered_sequence = last
                if last > self._told_up_to and not self.is_read:
                    self._told_up_to = last + GETS_AHEAD
                    self._broker.store.delivered(self, self._told_up_to)
        return span

    def _begin_to_be_read(self) -> None:
        """What is here may go out from now on, and would come back redelivered after a crash.

        That is kept before the first delivery. What comes in while there are consumers is kept
        with that mark, so deliveries themselves write nothing.
        """
        store = self._broker.store
        self._told_up_to = store.reserve(0) - 1
        self._is_held = True
        self._broker.when_kept(store.delivered(self, self._told_up_to), self._let_go)

    def _let_go(self) -> None:
        self._is_held = False
        self._broker.wake(self)
        self._broker.on_work()

    def get(self, action: Callable[[], None]) -> None:
        """Runs `action` when the oldest message is resident: now, or when it has arrived."""
        head = None if self._backlog is None else self._backlog.head()
        if head is None or (isinstance(head, Span) and head.run.block.resident):
            action()
            return
        if isinstance(head, Cold):
            self._thaw(head)
        else:
            self._fetch(head.run)
        if self._getting is None:
            self._getting = []
        self._getting.append(action)

    def open_consumer(self, consumer: Consumer) -> None:
        if self.ring is not None and consumer in self.ring.members:
            self.ring.open(consumer)
            self._broker.wake(self)

    def add_consumer(self, consumer: Consumer) -> None:
        if self.ring is None:
            self.ring = ConsumerRing()
        if self.durable and self.ready_count and not self.is_read:
            self._begin_to_be_read()
        self.ring.add(consumer)
        if consumer.exclusive:
            self.exclusive_consumer = consumer
        self._broker.wake(self)

    def remove_consumer(self, consumer: Consumer) -> None:
        """Its unacked messages stay valid; the last one takes an auto-delete queue with it."""
        if self.ring is None or consumer not in self.ring.members:
            return
        self.ring.remove(consumer)
        self.left_by(consumer)

    def left_by(self, consumer: Consumer) -> None:
        """What follows when a consumer has been taken out of the ring."""
        if self.exclusive_consumer is consumer:
            self.exclusive_consumer = None
        self.used()
        if self.ring is not None and not self.ring.members and not self.deleted:
            self.ring = None
            if self.auto_delete:
                self._broker.drop_queue(self)

    # -- out of memory

    @property
    def _looks_at_each(self) -> bool:
        return self.rules is not None and self.rules.looks_at_each

    @property
    def cold_count(self) -> int:
        """Ready messages of which nothing is in memory."""
        held = self._backlog or ()
        return sum(part.count for part in held if isinstance(part, Cold))

    @property
    def about_bytes(self) -> int:
        """What the ready messages in memory take, judged by one of them."""
        return (self.ready_count - self.cold_count) * self._message_bytes()

    def _message_bytes(self) -> int:
        head = None if self._backlog is None else self._backlog.newest()
        return 64 if head is None else max(1, head.run.block.size_bytes // head.run.block.count)

    def page_out(
        self, head_bytes: int, *, transient: bool, enough: Callable[[], bool] = lambda: False
    ) -> None:
        """Lets go of ready messages, but not of about `head_bytes` at the front, until there is
        `enough` room; of those that are on no disk yet only if `transient`."""
        if self._backlog is None:
            return
        store = self._broker.store
        plain = self.durable and not self._looks_at_each and self.expiry is None

        def freeze(span: Span, before: Cold | None) -> Cold | None:
            if enough():
                return None
            cold = store.chill(span, before) if plain else None
            block = span.run.block
            if cold is None and block.resident and (transient or block.place is not None):
                store.evict(block)
            return cold

        self._backlog.chill(head_bytes // self._message_bytes(), freeze, plain=plain)

    # -- what becomes of it

    def settle(self, span: Span) -> None:
        """Delivered messages are done with: acknowledged, or dropped."""
        self.unacked_count -= span.high - span.low
        if self.durable and not self.deleted:
            self._broker.store.settle(self, span)

    def requeue(self, span: Span) -> None:
        """Delivered messages come back to their original place, flagged redelivered."""
        self.unacked_count -= span.high - span.low
        if self.deleted:
            return
        self._put_back(Span(span.run, span.low, span.high, True))

    def untake(self, span: Span) -> None:
        """Messages that were taken but never reached anyone: back, flags as they were."""
        self.unacked_count -= span.high - span.low
        if not self.deleted:
            self._put_back(span)

    def reject(self, span: Span) -> None:
        """Delivered messages are refused for good (AMQP 0-9-1 1.8.3.14)."""
        self.unacked_count -= span.high - span.low
        if not self.deleted:
            self._broker.dead_letter(self, span, "rejected")

    def purge(self) -> int:
        """Drops all ready messages; gives their number.

        A deleted queue lets go of its appointments as well.
        """
        purged = 0
        store = self._broker.store
        for held in list(self.backlog):
            purged += held.count
            if isinstance(held, Cold):
                if not self.deleted:
                    store.discard(self, held)
                continue
            span = self.backlog.empty(held)
            if self.durable and not self.deleted:
                store.settle(self, span)
        self._backlog = None
        self.ready_bytes = 0
        if self.expiry is not None:
            self.expiry.forget()
        if self.deleted and self._idle_timer is not None:
            self._idle_timer.cancel()
        return purged

    def expire(self) -> None:
        """Lets go of everything whose time is over."""
        if self.expiry is not None:
            for span in self.expiry.due(self.backlog, self._broker.now_ms):
                self._expired(span)

    def used(self) -> None:
        """Notes a use that puts off `x-expires`: a consumer, a get, a declaration."""
        self.last_used_ms = self._broker.now_ms

    # -- inner

    @property
    def has_ready_consumer(self) -> bool:
        """Whether a message that came in now would be delivered at once."""
        if self.ring is None or self.ready_count:
            return False
        return any(consumer.open and consumer.credit() > 0 for consumer in self.ring.members)

    def _has_open_consumer(self) -> bool:
        return self.ring is not None and self.ring.line() is not None

    def _watch(self, span: Span, *, recovered: bool = False) -> None:
        ttl_ms = None if self.rules is None else self.rules.message_ttl_ms
        if ttl_ms is not None or span.run.block.traits.expiration is not None:
            if self.expiry is None:
                self.expiry = Expiry(self._broker, self._wake_for_expiry, ttl_ms)
            self.expiry.watch(span, recovered=recovered)

    def _wake_for_expiry(self) -> None:
        self._broker.wake(self)

    def _put_back(self, span: Span) -> None:
        held = self.backlog.put_back(span)
        if self.rules is not None and self.rules.max_length_bytes is not None:
            self.ready_bytes += span.body_bytes()
        if self.expiry is not None:
            self.expiry.watch_again(held)
        self._broker.wake(self)

    def _left(self, span: Span) -> None:
        if self.rules is not None and self.rules.max_length_bytes is not None:
            self.ready_bytes -= span.body_bytes()

    def _expired(self, span: Span) -> None:
        self._left(span)
        self._broker.dead_letter(self, span, "expired")

    def _trim(self) -> None:
        """Drops from the head what is over the limits (x-overflow `drop-head`)."""
        rules = self.rules
        if rules is None or not rules.limited or rules.overflow != "drop-head":
            return
        backlog = self.backlog
        while head := backlog.head():
            if isinstance(head, Cold):
                self._thaw(head)
                return
            excess = 0 if rules.max_length is None else backlog.count - rules.max_length
            if excess <= 0:
                if rules.max_length_bytes is None or self.ready_bytes <= rules.max_length_bytes:
                    return
                excess = 1
            span = backlog.take(head, excess)
            self._left(span)
            self._broker.dead_letter(self, span, "maxlen")

    def _fetch(self, run: Run) -> None:
        if not self.waiting:
            self.waiting = True
            self._broker.store.fetch(run.block, partial(self._fetched, run))

    def _fetched(self, run: Run) -> None:
        """What could not be read is left out; the store has said so, and still has it."""
        backlog = self._backlog
        while not run.block.resident and backlog is not None:
            head = backlog.head()
            if not isinstance(head, Span) or head.run is not run:
                break
            self._left(backlog.empty(head))
        self._arrived()

    def _thaw(self, cold: Cold) -> None:
        """The queue can't go on before the front of this stretch is read."""
        self.waiting = True
        self._read(cold)

    def _read(self, cold: Cold) -> None:
        if self._reading is None:
            self._reading = cold
            self._broker.store.thaw(cold, partial(self._thawed, cold))

    def _thawed(self, cold: Cold, spans: Sequence[Span]) -> None:
        self._reading = None
        if (spans or cold.lost) and self._backlog is not None:
            self._backlog.thawed(cold, spans)
        if self.waiting:
            self._arrived()

    def _read_ahead(self, backlog: Backlog) -> None:
        """Has the next stretch read while the messages before it go out."""
        cold = backlog.cold_within(READ_AHEAD_MESSAGES) if self._reading is None else None
        if cold is not None:
            self._read(cold)

    def _arrived(self) -> None:
        self.waiting = False
        getting, self._getting = self._getting, None
        for action in getting or ():
            self.get(action)
        self._broker.wake(self)
        self._broker.on_work()

    def _watch_idleness(self) -> None:
        assert self.rules is not None
        assert self.rules.expires_ms is not None
        due_ms = self.last_used_ms + self.rules.expires_ms
        action: Callable[[], None] = self._idle_check
        self._idle_timer = self._broker.timers.at(due_ms, action)

    def _idle_check(self) -> None:
        assert self.rules is not None
        assert self.rules.expires_ms is not None
        now_ms = self._broker.now_ms
        if self.ring is not None:
            self.last_used_ms = now_ms
        if now_ms - self.last_used_ms >= self.rules.expires_ms:
            self._broker.drop_queue(self)
        else:
            self._watch_idleness()
