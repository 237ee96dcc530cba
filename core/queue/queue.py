"""A classic queue: what comes in, who gets it, what becomes of it.

The plain queue is this module alone. What `x-` arguments ask for stands beside it (limits in
`limit.py`, expiry in `expiry.py`, dead letters in the broker's `mover`); a queue without them
has `rules` None and tests one attribute per run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ..block import Run, Span
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

PUMP_BYTES = 262_144
"""What one consumer is given in one piece, as far as whole messages allow."""


class Surroundings(Protocol):
    """What a queue needs of its broker."""

    store: Store
    timers: Timers
    now_ms: int

    def wake(self, queue: Queue) -> None:
        """Has the queue pumped in this turn."""

    def dead_letter(self, queue: Queue, span: Span, reason: str) -> None:
        """Takes over messages that left the queue without being consumed, and settles them."""

    def drop_queue(self, queue: Queue) -> None:
        """The queue's time is over: auto-delete, expiry."""


class Queue(Watched):
    """Made by a virtual host; `owner` is the connection of an exclusive queue.

    `id` is never reused. `expiry` exists once something in the queue can expire.
    """

    __slots__ = (
        "_backlog", "_broker", "_getting", "_idle_timer", "active", "arguments", "auto_delete",
        "bound", "deleted", "durable", "exclusive_consumer", "expiry", "id", "last_used_ms", "name",
        "owner", "ready_bytes", "ring", "rules", "unacked_count", "vhost", "waiting",
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

    def enqueue(self, run: Run) -> bool:
        """Takes a run in. False if the queue refuses it (overflow `reject-publish`)."""
        rules = self.rules
        if rules is None and run.block.traits.expiration is None:
            self.backlog.append(run)
            if self.ring is not None and not self.active:
                self._broker.wake(self)
            return True
        return self._admit(run)

    def _admit(self, run: Run) -> bool:
        rules = self.rules
        if rules is not None and rules.rejects and over_limit(self, rules, run):
            if rules.overflow == "reject-publish-dlx":
                self._broker.dead_letter(self, Span(run, 0, run.count), "maxlen")
            return False
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
        return True

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
        ring, backlog = self.ring, self._backlog
        if ring is None or backlog is None:
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
        while head is not None and self.expiry is not None and self.expiry.is_over(head):
            self._expired(backlog.empty(head))
            head = backlog.head()
        if head is None:
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
        return span

    def get(self, action: Callable[[], None]) -> None:
        """Runs `action` when the oldest message is resident: now, or when it has arrived."""
        head = None if self._backlog is None else self._backlog.head()
        if head is None or head.run.block.resident:
            action()
            return
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

    # -- what becomes of it

    def settle(self, span: Span) -> None:
        """Delivered messages are done with: acknowledged, or dropped."""
        self.unacked_count -= span.high - span.low
        if self.durable:
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
        self._broker.dead_letter(self, span, "rejected")

    def purge(self) -> int:
        """Drops all ready messages; gives their number.

        A deleted queue lets go of its appointments as well.
        """
        purged = 0
        for span in list(self.backlog):
            span = self.backlog.empty(span)
            purged += span.high - span.low
            if self.durable:
                self._broker.store.settle(self, span)
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

    def _watch(self, span: Span) -> None:
        ttl_ms = None if self.rules is None else self.rules.message_ttl_ms
        if ttl_ms is not None or span.run.block.traits.expiration is not None:
            if self.expiry is None:
                self.expiry = Expiry(self._broker, self._wake_for_expiry, ttl_ms)
            self.expiry.watch(span)

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
            self._broker.store.fetch(run.block, self._arrived)

    def _arrived(self) -> None:
        self.waiting = False
        getting, self._getting = self._getting, None
        for action in getting or ():
            self.get(action)
        self._broker.wake(self)

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
