"""The plain model of a broker: what must come back for what a client does.

Written from the protocol and the table of RabbitMQ's rules, not from Warren's code. Which of
several consumers gets a message is nobody's promise: there the model asks `seen`, what was
really delivered, and holds that against the rules.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from . import errors, special
from .dialect import WARREN, Dialect
from .errors import Refused
from .messages import (
    ANY_TIME,
    Held,
    Message,
    Outstanding,
    as_received,
    dead_letter,
    mark,
    runs_in_circles,
)
from .operations import (
    WRITTEN_MS,
    Advance,
    Call,
    Drop,
    Operation,
    Policy,
    Publish,
    Publishes,
    Restart,
    Seat,
)
from .queues import Channel, Consumer, Queue, Transaction
from .routes import Binding, Exchange, Target, Topology, frozen
from .special import Memory

Seen = dict[tuple[Seat, str], deque[tuple[object, ...]]]
"""By seat and consumer tag (empty for get): marks of what came, see `mark`."""
Text = str | re.Pattern[str]


@dataclass
class Answer:
    """A method that has to come; of its fields those that are given."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    message: Message | None = None
    outstanding: Outstanding | None = None


@dataclass
class Expected:
    """What one seat is to be sent because of one operation."""

    answers: list[Answer] = field(default_factory=list)
    cancels: list[str] = field(default_factory=list)
    confirms: dict[int, bool] = field(default_factory=dict)
    deliveries: dict[str, list[Outstanding]] = field(default_factory=dict)
    closed: bool = False


class Unsure(Exception):
    """Two outcomes are right, and what follows would depend on which it was."""


class Model:
    """`apply` does an operation and gives what each seat is to be sent."""

    def __init__(self, dialect: Dialect = WARREN, *, knows_time: bool = True) -> None:
        self.dialect = dialect
        self.knows_time = knows_time
        self.now_ms = 1_700_000_000_000
        self.topology = Topology()
        self.queues: dict[str, Queue] = {}
        self.channels: dict[Seat, Channel] = {}
        self.policies: dict[str, Policy] = {}
        self.expected: dict[Seat, Expected] = {}
        self.seen: Seen = {}
        self.generated: deque[str] = deque()
        self.script: deque[int] = deque()
        self.picked: list[int] = []
        """How many options there were, each time that one was picked."""
        self.mapping: dict[tuple[object, ...], str] = {}
        self.memories: dict[str, Memory] = {}
        self.waiting: list[tuple[int, Message]] = []
        self.letters: deque[tuple[Queue, Message, str]] = deque()
        self._order = 0
        self._burst = 0
        self._posting = False
        self._later: list[Queue] = []
        """Queues with priorities, that have got what they give out when the read is used up."""
        self._is_alone = False
        self._failing: Seat | None = None
        """A channel that may be closed now: perhaps it gets nothing more."""
        self._is_committing = False
        self._order_is_open = False

    def apply(
        self, operation: Operation, seen: Seen | None = None, generated: Iterable[str] = ()
    ) -> dict[Seat, Expected]:
        self.expected, self.seen = {}, seen or {}
        self._burst += 1
        many = isinstance(operation, Publishes) and len(operation.messages) > 1
        self._order_is_open = many
        self._is_alone = not (self.knows_time or many)
        self.generated = deque(generated)
        match operation:
            case Call(seat):
                self._guarded(seat, operation.method, lambda: self._call(operation))
            case Publishes(seat, messages):
                for message in messages:
                    if not self._guarded(
                        seat, "Basic.Publish", partial(self._publish, seat, message)
                    ):
                        break
            case Drop(connection):
                self._drop(connection)
            case Advance(by_ms):
                self._pass_time(by_ms)
            case Restart(clean):
                self._restart(clean)
            case Policy():
                self._set_policy(operation)
        self._settle_later()
        self._post()
        return self.expected

    def _settle_later(self) -> None:
        while self._later:
            self._settle(self._later.pop(0))

    def _settle_first(self, names: list[str]) -> None:
        """Those of these names, before it is known which of their consumers is ready."""
        now = [queue for queue in self._later if queue.name in names]
        self._later = [queue for queue in self._later if queue.name not in names]
        for queue in now:
            self._settle(queue)

    # -- answers

    def to(self, seat: Seat) -> Expected:
        return self.expected.setdefault(seat, Expected())

    def answer(self, seat: Seat, name: str, **fields: Any) -> None:
        self.to(seat).answers.append(Answer(name, fields))

    def _guarded(self, seat: Seat, method: str, act: Callable[[], None]) -> bool:
        """Does it; an error closes the channel or the connection, and nobody else notices."""
        try:
            act()
        except Refused as refused:
            name = "Connection.Close" if refused.connection else "Channel.Close"
            at = (seat[0], 0) if refused.connection else seat
            self.to(seat).closed = True
            self.answer(at, name, reply_code=refused.code, reply_text=refused.text, culprit=method)
            if refused.connection:
                self._drop(seat[0])
            else:
                self._close(self.channels.pop(seat))
            return False
        return True

    def _call(self, call: Call) -> None:
        name = call.method.replace(".", "_").lower()
        handler = getattr(self, f"_{name}")
        handler(call.seat, **call.fields)

    # -- names

    def channel(self, seat: Seat) -> Channel:
        return self.channels[seat]

    def queue(self, seat: Seat, name: str) -> Queue:
        """The queue that a client may use; the empty name is the last one declared."""
        if not name:
            name = self.channel(seat).last_queue
            if not name:
                raise errors.no_last_queue()
        found = self.queues.get(name)
        if found is None:
            raise errors.no_queue(name)
        self._check_owner(seat, found)
        return found

    def _check_owner(self, seat: Seat, queue: Queue) -> None:
        if queue.owner not in (None, seat[0]):
            raise errors.locked(queue.name)

    def exchange(self, name: str) -> Exchange:
        if not name:
            raise errors.default_exchange()
        found = self.topology.exchanges.get(name)
        if found is None:
            raise errors.no_exchange(name)
        return found

    # -- channels

    def _channel_open(self, seat: Seat) -> None:
        self.channels[seat] = Channel(seat)
        self.answer(seat, "Channel.OpenOk")

    def _channel_close(self, seat: Seat, **_: Any) -> None:
        self._close(self.channels.pop(seat))
        self.answer(seat, "Channel.CloseOk")

    def _close(self, *channels: Channel) -> None:
        """All that was delivered goes back, all their consumers go."""
        consumers = [consumer for channel in channels for consumer in channel.consumers.values()]
        for consumer in consumers:
            consumer.queue.consumers.remove(consumer)
        self._requeue([entry for channel in channels for entry in channel.given()])
        for consumer in consumers:
            self._left(consumer.queue)
        self._pump_all()

    def _left(self, queue: Queue) -> None:
        """A consumer went: an auto-delete queue goes with the last."""
        queue.used_ms = self.now_ms
        if queue.auto_delete and not queue.consumers and self.queues.get(queue.name) is queue:
            self._delete(queue)

    def _drop(self, connection: int) -> None:
        own = [seat for seat in self.channels if seat[0] == connection]
        for queue in list(self.queues.values()):
            if queue.owner == connection:
                for consumer in queue.consumers:
                    self.channels[consumer.seat].consumers.pop(consumer.tag, None)
                queue.consumers.clear()
                self._delete(queue)
        self._close(*[self.channels.pop(seat) for seat in own])

    # -- exchanges

    def _exchange_declare(
        self,
        seat: Seat,
        exchange: str,
        exchange_type: str = "direct",
        passive: bool = False,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        if passive:
            self.exchange(exchange)
        else:
            asked = Exchange(
                exchange, exchange_type, durable, auto_delete, internal, arguments or {}
            )
            self._declare_exchange(asked)
        self.answer(seat, "Exchange.DeclareOk")

    def _declare_exchange(self, asked: Exchange) -> None:
        if not asked.name:
            raise errors.default_exchange()
        found = self.topology.exchanges.get(asked.name)
        if found is None:
            if asked.name.startswith("amq."):
                raise errors.reserved("exchange", asked.name)
            asked.policy = self._policy_of("exchanges", asked.name)
            self.topology.exchanges[asked.name] = asked
            return
        pairs = [
            ("type", asked.type_name, found.type_name),
            ("durable", asked.durable, found.durable),
            ("auto_delete", asked.auto_delete, found.auto_delete),
            ("internal", asked.internal, found.internal),
        ]
        errors.check_same("exchange", asked.name, pairs)
        known = ["alternate-exchange"]
        errors.check_arguments(
            "exchange", asked.name, asked.arguments, found.arguments, known, self.dialect
        )

    def _exchange_delete(self, seat: Seat, exchange: str, if_unused: bool = False) -> None:
        if not exchange:
            raise errors.default_exchange()
        if exchange.startswith("amq."):
            raise errors.system_exchange(exchange)
        if exchange in self.topology.exchanges:
            if if_unused and self.topology.is_used(exchange):
                raise errors.in_use("exchange", exchange)
            self.topology.delete(exchange)
            self._forget_exchanges()
        self.answer(seat, "Exchange.DeleteOk")

    def _forget_exchanges(self) -> None:
        """With an exchange goes what it keeps."""
        there = self.topology.exchanges
        self.memories = {name: kept for name, kept in self.memories.items() if name in there}
        self.waiting = [entry for entry in self.waiting if entry[1].exchange in there]

    def _exchange_bind(
        self,
        seat: Seat,
        destination: str,
        source: str,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self._bind(("exchange", destination), source, routing_key, arguments or {})
        self.answer(seat, "Exchange.BindOk")

    def _exchange_unbind(
        self,
        seat: Seat,
        destination: str,
        source: str,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self._unbind(("exchange", destination), source, routing_key, arguments or {})
        self.answer(seat, "Exchange.UnbindOk")

    def _queue_bind(
        self,
        seat: Seat,
        queue: str,
        exchange: str,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        if not queue:
            queue = self.queue(seat, queue).name
            routing_key = routing_key or queue
        self._check_ends(("queue", queue), exchange)
        found = self.queue(seat, queue)
        self._bind(("queue", found.name), exchange, routing_key, arguments or {})
        self.answer(seat, "Queue.BindOk")

    def _queue_unbind(
        self,
        seat: Seat,
        queue: str,
        exchange: str,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        if not queue or queue in self.queues:
            queue = self.queue(seat, queue).name
        self._unbind(("queue", queue), exchange, routing_key, arguments or {})
        self.answer(seat, "Queue.UnbindOk")

    def _bind(self, target: Target, source: str, key: str, arguments: Mapping[str, Any]) -> None:
        self._check_ends(target, source)
        binding = Binding(source, target, key, frozen(arguments))
        if self.topology.exchanges[source].type_name == "headers":
            how = arguments.get("x-match", "all")
            if how not in ("all", "any", "all-with-x", "any-with-x"):
                raise errors.bad_match()
        if self.topology.exchanges[source].type_name == "x-consistent-hash":
            errors.check_weight(key)
        if binding not in self.topology.bindings:
            self.topology.bindings.append(binding)
            self._replay(binding)

    def _replay(self, binding: Binding) -> None:
        memory = self.memories.get(binding.source)
        if memory is not None:
            exchange = self.topology.exchanges[binding.source]
            for message in memory.replay(exchange, binding, self.topology):
                self._enqueue([self.queues[binding.target[1]]], message)

    def _check_ends(self, target: Target, source: str) -> None:
        """Of two that are missing any may be named."""
        kind, name = target
        if not source or target == ("exchange", ""):
            raise errors.default_exchange()
        there = name in (self.queues if kind == "queue" else self.topology.exchanges)
        if source in self.topology.exchanges and there:
            return
        missing = [(kind, name)] * (not there)
        missing += [("exchange", source)] * (source not in self.topology.exchanges)
        raise errors.missing(missing)

    def _unbind(self, target: Target, source: str, key: str, arguments: Mapping[str, Any]) -> None:
        """What is not there is unbound already."""
        if not source or target == ("exchange", ""):
            raise errors.default_exchange()
        binding = Binding(source, target, key, frozen(arguments))
        if binding in self.topology.bindings:
            self.topology.unbind([binding])

    # -- queues

    def _queue_declare(
        self,
        seat: Seat,
        queue: str = "",
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        name = queue
        if passive:
            if not name and not self.dialect.empty_name_is_looked_up:
                raise errors.no_queue(name)
            found = self.queue(seat, name)
        else:
            if not name:
                name = self.generated.popleft() if self.generated else "amq.gen-?"
            owner = seat[0] if exclusive else None
            asked = Queue(name, durable, exclusive, auto_delete, dict(arguments or {}), owner)
            found = self._declare_queue(seat, asked, named=bool(queue))
        found.used_ms = self.now_ms
        self.channel(seat).last_queue = found.name
        counts = {"message_count": len(found.ready), "consumer_count": len(found.consumers)}
        self.answer(seat, "Queue.DeclareOk", queue=found.name, **counts)

    def _declare_queue(self, seat: Seat, asked: Queue, named: bool) -> Queue:
        if named and asked.name.startswith("amq."):
            raise errors.reserved("queue", asked.name)
        found = self.queues.get(asked.name)
        if found is None:
            errors.check_queue_arguments(asked.name, asked.arguments)
            self.queues[asked.name] = asked
            asked.policy = self._policy_of("queues", asked.name)
            return asked
        self._check_owner(seat, found)
        if asked.exclusive != found.exclusive:
            raise errors.locked(asked.name)
        pairs = [
            ("durable", asked.durable, found.durable),
            ("auto_delete", asked.auto_delete, found.auto_delete),
        ]
        errors.check_same("queue", asked.name, pairs)
        errors.check_arguments(
            "queue",
            asked.name,
            asked.arguments,
            found.arguments,
            errors.QUEUE_ARGUMENTS,
            self.dialect,
        )
        return found

    def _queue_delete(
        self, seat: Seat, queue: str, if_unused: bool = False, if_empty: bool = False
    ) -> None:
        count = 0
        if not queue or queue in self.queues:
            found = self.queue(seat, queue)
            if if_unused and found.consumers:
                raise errors.in_use("queue", found.name)
            if if_empty and found.ready:
                raise errors.not_empty(found.name)
            count = len(found.ready)
            self._delete(found)
        self.answer(seat, "Queue.DeleteOk", message_count=count)

    def _delete(self, queue: Queue) -> None:
        del self.queues[queue.name]
        for consumer in queue.consumers:
            self.channels[consumer.seat].consumers.pop(consumer.tag, None)
            self.to(consumer.seat).cancels.append(consumer.tag)
        queue.consumers.clear()
        queue.ready.clear()
        topology = self.topology
        target: Target = ("queue", queue.name)
        topology.unbind([binding for binding in topology.bindings if binding.target == target])

    def _queue_purge(self, seat: Seat, queue: str) -> None:
        found = self.queue(seat, queue)
        count = len(found.ready)
        found.ready.clear()
        self.answer(seat, "Queue.PurgeOk", message_count=count)

    # -- publishing

    def _publish(self, seat: Seat, publish: Publish) -> None:
        channel = self.channel(seat)
        if publish.exchange and publish.exchange not in self.topology.exchanges:
            raise errors.no_exchange(publish.exchange)
        if publish.exchange and self.topology.exchanges[publish.exchange].internal:
            raise errors.internal(publish.exchange)
        errors.check_properties(publish.properties)
        try:
            message = as_received(publish.exchange, publish.key, publish.properties, publish.body)
        except ValueError as error:
            raise errors.bad_keys(str(error)) from None
        if channel.transaction is None and publish.exchange:
            message = self._at_exchange(self.topology.exchanges[publish.exchange], message)
        queues = ready = self._queues_for(message)
        if publish.immediate:
            self._settle_first(queues)
            ready = self._queues_for(message, self._is_ready)
        number = 0
        if channel.confirms:
            channel.published += 1
            number = channel.published
        if channel.transaction is not None:
            channel.transaction.publishes.append((message, queues, publish))
            return
        if self._waits(message):
            accepted = True
        else:
            accepted = self._deliver(seat, message, queues, publish, ready)
        if number:
            self.to(seat).confirms[number] = accepted

    def _queues_for(
        self, message: Message, counts: Callable[[str], bool] = lambda queue: True
    ) -> list[str]:
        exchange = self.topology.exchanges.get(message.exchange)
        if exchange is not None and exchange.type_name in special.CHOOSING:
            names = self._chosen(exchange, message)
        else:
            names = self.topology.route(message.exchange, message.keys, message.headers, counts)
        return [name for name in names if name in self.queues]

    # -- exchanges that choose, wait or remember

    def _chosen(self, exchange: Exchange, message: Message) -> list[str]:
        """One of the queues that are bound: any, or the one that it was before."""
        options = sorted(special.weights(self.topology, exchange.name))
        if not options:
            return []
        key = special.hash_key(self.topology, exchange, message)
        if key is None:
            return [self._pick(options)]
        if key not in self.mapping:
            self.mapping[key] = self._pick(options)
        return [self.mapping[key]]

    def _pick(self, options: list[str]) -> str:
        """As `script` says; whoever runs the model tries one after the other."""
        at = self.script.popleft() if self.script else 0
        self.picked.append(len(options))
        return options[at]

    def _at_exchange(self, exchange: Exchange, message: Message) -> Message:
        if exchange.type_name == special.HISTORY or special.PERSIST in exchange.arguments:
            return self.memories.setdefault(exchange.name, Memory()).take_in(exchange, message)
        return message

    def _waits(self, message: Message) -> bool:
        exchange = self.topology.exchanges.get(message.exchange)
        delay_ms = special.delay_ms(exchange, message) if exchange else 0
        if delay_ms:
            self.waiting.append((self.now_ms + delay_ms, message))
        return delay_ms > 0

    def _release(self) -> None:
        """Messages whose delay is over are routed, in the order of their times."""
        due = sorted(
            (entry for entry in self.waiting if entry[0] <= self.now_ms), key=lambda entry: entry[0]
        )
        self.waiting = [entry for entry in self.waiting if entry not in due]
        for _, message in due:
            late = special.waited(message)
            self._enqueue([self.queues[name] for name in self._queues_for(late)], late)

    def _is_ready(self, name: str) -> bool:
        """Whether a consumer of this queue can take a message at once."""
        return name in self.queues and bool(self._ready_takers(self.queues[name]))

    def _deliver(
        self,
        seat: Seat,
        message: Message,
        queues: list[str],
        publish: Publish,
        ready: list[str],
    ) -> bool:
        """Gives False when a queue would not have it."""
        if publish.mandatory and not queues:
            self._return(seat, message, 312, "NO_ROUTE")
        elif publish.immediate and not ready:
            self._return(seat, message, 313, "NO_CONSUMERS")
        there = [self.queues[name] for name in ready if name in self.queues]
        return self._enqueue(there, message)

    def _return(self, seat: Seat, message: Message, code: int, text: str) -> None:
        fields = {
            "reply_code": code, "reply_text": text,
            "exchange": message.exchange, "routing_key": message.keys[0],
        }  # fmt: skip
        self.to(seat).answers.append(Answer("Basic.Return", fields, message))

    def _enqueue(self, queues: list[Queue], message: Message) -> bool:
        """All have it before the first does anything about it."""
        rejecting = [
            queue
            for queue in queues
            if queue.overflow != "drop-head" and queue.is_over(1, len(message.body))
        ]
        if rejecting:
            self._must_be_sure()
        accepting = [queue for queue in queues if queue not in rejecting]
        fresh = [self._held(queue, message) for queue in accepting]
        for queue, held in zip(accepting, fresh, strict=True):
            queue.put(held)
        for queue in rejecting:
            if queue.overflow == "reject-publish-dlx":
                self._dead(queue, message, "maxlen")
        later = [queue for queue in accepting if queue.levels and self.dialect.batches_by_priority]
        self._later += later
        self._settle_all([queue for queue in accepting if queue not in later])
        for held in fresh:
            held.fresh = False
        return not rejecting

    def _must_be_sure(self) -> None:
        """Dead letters of several queues, or behind a batch, come in any order."""
        if self._posting and self._order_is_open:
            raise Unsure

    def _held(self, queue: Queue, message: Message) -> Held:
        self._order += 1
        held = Held(message, self._order, min(message.priority, queue.levels))
        held.burst = self._burst if self._posting or self._is_alone else 0
        held.order_is_open = self._posting and self._order_is_open
        held.arrived_ms = self.now_ms
        self._set_deadline(queue, held)
        return held

    def _set_deadline(self, queue: Queue, held: Held) -> None:
        """The shorter of the message's time and the queue's, from when it came."""
        ttls = (queue.rule("message-ttl"), held.message.ttl_ms)
        ttl = min((ttl for ttl in ttls if ttl is not None), default=None)
        held.deadline_ms = None if ttl is None else held.arrived_ms + ttl
        held.zero_ttl = ttl == 0

    # -- what a queue does by itself

    def _settle(self, queue: Queue) -> None:
        """Messages go to consumers, expire, and are dropped from the head, in this order."""
        self._pump(queue)
        if not self.dialect.limits_count_the_expired:
            self._expire(queue)
        self._trim(queue)
        self._expire(queue)

    def _trim(self, queue: Queue) -> None:
        if queue.overflow == "drop-head":
            self._drop_heads(queue)

    def _drop_heads(self, queue: Queue) -> None:
        while queue.ready and queue.is_over():
            self._must_be_sure()
            head, *others = queue.ready
            if head.order_is_open and any(other.burst == head.burst for other in others):
                raise Unsure
            self._dead(queue, queue.ready.pop(0).message, "maxlen")

    def _expire(self, queue: Queue) -> None:
        while gone := self._next_expired(queue):
            queue.ready.remove(gone)
            self._dead(queue, gone.message, "expired")

    def _next_expired(self, queue: Queue) -> Held | None:
        candidates = queue.ready if self.dialect.expires_anywhere else queue.ready[:1]
        over = [held for held in candidates if self._is_over(held)]
        return min(over, key=lambda held: (held.deadline_ms, held.place), default=None)

    def _is_over(self, held: Held) -> bool:
        return held.deadline_ms is not None and held.deadline_ms <= self.now_ms

    def _dead(self, queue: Queue, message: Message, reason: str) -> None:
        """It goes to the dead letter exchange when the rest of the operation is done."""
        self.letters.append((queue, message, reason))

    def _post(self) -> None:
        self._posting = True
        while self.letters:
            sources = {queue.name for queue, _, _ in self.letters}
            self._order_is_open |= len(sources) > 1
            for _ in range(len(self.letters)):
                self._post_letter(*self._next_letter())
            self._settle_later()
        self._posting = False

    def _post_letter(self, queue: Queue, message: Message, reason: str) -> None:
        """Publishes it to the dead letter exchange, if there is one (amqp.md section 5)."""
        exchange = queue.rule("dead-letter-exchange")
        if exchange is None or (exchange and exchange not in self.topology.exchanges):
            return
        letter = self._letter(queue, message, reason)
        names = self._queues_for(letter)
        if reason != "rejected":
            names = [name for name in names if not runs_in_circles(letter, name)]
        self._enqueue([self.queues[name] for name in names], letter)

    def _letter(self, queue: Queue, message: Message, reason: str) -> Message:
        time_s = self.now_ms // 1000 if self.knows_time else ANY_TIME
        return dead_letter(
            message, reason, queue.name, queue.rule("dead-letter-exchange") or "",
            queue.rule("dead-letter-routing-key"), time_s, self.dialect.last_death_headers,
        )  # fmt: skip

    def _next_letter(self) -> tuple[Queue, Message, str]:
        """The first, or of those of one moment the one that really came first."""
        came = {seen[0] for seen in self.seen.values() if seen}
        for entry in self.letters:
            letter = self._letter(*entry)
            if mark(letter.body, letter.headers) in came:
                self.letters.remove(entry)
                return entry
        return self.letters.popleft()

    def _ready_takers(self, queue: Queue) -> list[Consumer]:
        """Consumers with room, of the highest priority there is."""
        takers = [
            consumer for consumer in queue.takers(self.dialect.single_active_by_priority)
            if self.channels[consumer.seat].has_room(consumer)
            and (consumer.seat != self._failing or self.seen.get((consumer.seat, consumer.tag)))
        ]  # fmt: skip
        best = max((consumer.priority for consumer in takers), default=0)
        return [consumer for consumer in takers if consumer.priority == best]

    def _pump(self, queue: Queue, *, as_seen: bool = False) -> None:
        """Gives out what it can, or as long as that is what was really given out."""
        while queue.ready:
            takers = self._ready_takers(queue)
            if not takers and self.dialect.expires_anywhere:
                return  # What is over then goes by its deadlines, see `_expire`.
            held = self._first(queue, [(consumer.seat, consumer.tag) for consumer in takers])
            if self._is_over(held) and not self._is_spared(held):
                queue.ready.remove(held)
                self._dead(queue, held.message, "expired")
                continue
            if not takers:
                return
            consumer = self._choose(takers, held)
            if as_seen and not self._was_seen(consumer, held):
                return
            queue.ready.remove(held)
            self._send(consumer, held)

    def _first(self, queue: Queue, takers: list[tuple[Seat, str]]) -> Held:
        """The oldest; of dead letters of one moment the one that really came first."""
        first = queue.ready[0]
        if not first.burst:
            return first
        came = {self.seen[taker][0] for taker in takers if self.seen.get(taker)}
        equal = [
            held for held in queue.ready
            if (held.burst, held.level) == (first.burst, first.level)
        ]  # fmt: skip
        return next(
            (held for held in equal if mark(held.message.body, held.message.headers) in came), first
        )

    def _pump_all(self) -> None:
        self._settle_all(list(self.queues.values()))

    def _settle_all(self, queues: list[Queue]) -> None:
        """Whose message fills a channel's limit is open where several queues wait for room; who
        acks nothing fills none, so what it got is taken off first."""
        if self._is_committing:
            return
        for queue in sorted(queues, key=lambda queue: not any(
            consumer.no_ack for consumer in self._ready_takers(queue)
        )):  # fmt: skip
            self._pump(queue, as_seen=True)
        for queue in queues:
            self._settle(queue)

    def _is_spared(self, held: Held) -> bool:
        """TTL 0: only for a consumer that can take it at once."""
        return held.zero_ttl and (held.fresh or self.dialect.requeued_zero_ttl_is_delivered)

    def _choose(self, takers: list[Consumer], held: Held) -> Consumer:
        """The one that really got it, if that was right. Of two that got the same, as a replay
        makes copies, it is open which was the first."""
        found = [taker for taker in takers if self._was_seen(taker, held)]
        if len(found) > 1:
            raise Unsure
        return found[0] if found else takers[0]

    def _was_seen(self, consumer: Consumer, held: Held) -> bool:
        seen = self.seen.get((consumer.seat, consumer.tag))
        return (
            seen is not None
            and len(seen) > 0
            and seen[0] == mark(held.message.body, held.message.headers)
        )

    def _send(self, consumer: Consumer, held: Held) -> None:
        if self._was_seen(consumer, held):
            self.seen[consumer.seat, consumer.tag].popleft()
        entry = Outstanding(held, consumer.queue, consumer)
        consumer.queue.was_read = True
        self.to(consumer.seat).deliveries.setdefault(consumer.tag, []).append(entry)
        if not consumer.no_ack:
            self.channels[consumer.seat].outstanding.append(entry)

    # -- consuming

    def _basic_qos(self, seat: Seat, prefetch_count: int = 0, global_: bool = False) -> None:
        channel = self.channel(seat)
        if global_:
            if self.dialect.channel_limit_counts_gets and not (channel.limit and prefetch_count):
                gets = sum(entry.consumer is None for entry in channel.outstanding)
                channel.limit_taken = gets if prefetch_count else 0
            channel.limit = prefetch_count
        else:
            channel.next_limit = prefetch_count
            if self.dialect.consumer_limit_ends_channel_limit:
                channel.limit = channel.limit_taken = 0
        self.answer(seat, "Basic.QosOk")
        self._pump_all()

    def _basic_consume(
        self,
        seat: Seat,
        queue: str,
        consumer_tag: str,
        no_ack: bool = False,
        exclusive: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        channel, arguments = self.channel(seat), arguments or {}
        if consumer_tag in channel.consumers:
            raise errors.reused_tag(consumer_tag)
        found = self.queue(seat, queue)
        if found.is_quorum and channel.limit:
            raise errors.no_global_limit(found.name)
        others = found.consumers
        single = found.arguments.get("x-single-active-consumer")
        if (exclusive and (others or single)) or any(consumer.exclusive for consumer in others):
            raise errors.exclusively_used(found.name)
        consumer = Consumer(
            seat, consumer_tag, found, no_ack, exclusive, channel.next_limit,
            arguments.get("x-priority", 0), arguments,
        )  # fmt: skip
        found.consumers.append(consumer)
        channel.consumers[consumer_tag] = consumer
        self.answer(seat, "Basic.ConsumeOk", consumer_tag=consumer_tag)
        self._settle(found)

    def _basic_cancel(self, seat: Seat, consumer_tag: str) -> None:
        consumer = self.channel(seat).consumers.pop(consumer_tag, None)
        self.answer(seat, "Basic.CancelOk", consumer_tag=consumer_tag)
        if consumer is not None:
            consumer.queue.consumers.remove(consumer)
            self._left(consumer.queue)
            self._pump_all()

    def _basic_get(self, seat: Seat, queue: str, no_ack: bool = False) -> None:
        found = self.queue(seat, queue)
        found.used_ms = self.now_ms
        self._expire(found)
        if not found.ready:
            self.answer(seat, "Basic.GetEmpty")
            return
        held = self._first(found, [(seat, "")])
        found.ready.remove(held)
        self._expire(found)
        found.was_read = True
        entry = Outstanding(held, found)
        if not no_ack:
            self.channel(seat).outstanding.append(entry)
        fields = {"message_count": len(found.ready)}
        self.to(seat).answers.append(Answer("Basic.GetOk", fields, held.message, entry))

    # -- settling

    def _basic_ack(self, seat: Seat, delivery_tag: int = 0, multiple: bool = False) -> None:
        self._settle_tags(seat, "ack", delivery_tag, multiple)

    def _basic_reject(self, seat: Seat, delivery_tag: int = 0, requeue: bool = False) -> None:
        self._settle_tags(seat, "requeue" if requeue else "reject", delivery_tag, False)

    def _basic_nack(
        self, seat: Seat, delivery_tag: int = 0, multiple: bool = False, requeue: bool = False
    ) -> None:
        self._settle_tags(seat, "give back" if requeue else "reject", delivery_tag, multiple)

    def _basic_recover(self, seat: Seat, requeue: bool = False) -> None:
        assert requeue
        channel = self.channel(seat)
        entries, channel.outstanding = channel.outstanding, []
        self.answer(seat, "Basic.RecoverOk")
        for group in self._groups(entries):
            self._requeue(group, failed=False)
        self._pump_all()

    def _settle_tags(self, seat: Seat, how: str, tag: int, multiple: bool) -> None:
        channel = self.channel(seat)
        entries = [
            entry
            for entry in channel.outstanding
            if entry.tag == tag or (multiple and (tag == 0 or entry.tag < tag))
        ]
        if not (multiple and tag == 0) and not any(entry.tag == tag for entry in entries):
            raise errors.unknown_tag(tag)
        channel.outstanding = [entry for entry in channel.outstanding if entry not in entries]
        if channel.transaction is not None:
            channel.transaction.settlements.append((how, entries))
            return
        self._settle_entries(how, entries)
        self._pump_all()

    def _settle_entries(self, how: str, entries: list[Outstanding]) -> None:
        if how in ("requeue", "give back"):
            for group in self._groups(entries):
                self._requeue(group, failed=how == "requeue")
        elif how == "reject":
            for entry in chain.from_iterable(self._groups(entries)):
                if self._is_alive(entry.queue):
                    self._dead(entry.queue, entry.held.message, "rejected")

    def _groups(self, entries: list[Outstanding]) -> list[list[Outstanding]]:
        """All at once, or what each consumer was given; first what basic.get took."""
        if not self.dialect.settles_by_consumer:
            return [entries]
        groups: dict[str, list[Outstanding]] = {}
        for entry in entries:
            groups.setdefault(entry.consumer.tag if entry.consumer else "", []).append(entry)
        return [groups[tag] for tag in sorted(groups)]

    def _is_alive(self, queue: Queue) -> bool:
        return self.queues.get(queue.name) is queue

    def _requeue(self, entries: list[Outstanding], failed: bool = True) -> None:
        touched: list[Queue] = []
        for entry in entries:
            queue, held = entry.queue, entry.held
            if not self._is_alive(queue):
                continue
            held.redelivered = True
            held.returns += 1
            held.failures += failed or not queue.is_quorum
            limit = queue.delivery_limit
            if limit is not None and -1 < limit < held.failures:
                self._dead(queue, held.message, "delivery_limit")
                continue
            queue.put(held)
            if queue not in touched:
                touched.append(queue)
        if self.dialect.limits_requeued_first:
            for queue in touched:
                self._trim(queue)
                self._expire(queue)
        self._settle_all(touched)

    # -- confirms and transactions

    def _confirm_select(self, seat: Seat) -> None:
        channel = self.channel(seat)
        if channel.transaction is not None:
            raise errors.mode("cannot switch from tx to confirm mode")
        channel.confirms = True
        self.answer(seat, "Confirm.SelectOk")

    def _tx_select(self, seat: Seat) -> None:
        channel = self.channel(seat)
        if channel.confirms:
            raise errors.mode("cannot switch from confirm to tx mode")
        channel.transaction = channel.transaction or Transaction()
        self.answer(seat, "Tx.SelectOk")

    def _ended(self, channel: Channel) -> Transaction:
        if channel.transaction is None:
            raise errors.mode("channel is not transactional")
        transaction, channel.transaction = channel.transaction, Transaction()
        return transaction

    def _tx_commit(self, seat: Seat) -> None:
        transaction = self._ended(self.channel(seat))
        self._failing = seat
        self._is_committing = self.dialect.commits_at_once
        accepted = [
            self._deliver(seat, message, queues, publish, self._now_ready(message, queues, publish))
            for message, queues, publish in transaction.publishes
        ]
        for how, entries in transaction.settlements:
            self._settle_entries(how, entries)
        self._is_committing = False
        if not all(accepted):
            self._pump_all()
        self._failing = None
        if not all(accepted):
            raise errors.partial_commit()
        self.answer(seat, "Tx.CommitOk")
        self._pump_all()

    def _now_ready(self, message: Message, queues: list[str], publish: Publish) -> list[str]:
        return self._queues_for(message, self._is_ready) if publish.immediate else queues

    def _tx_rollback(self, seat: Seat) -> None:
        channel = self.channel(seat)
        back = self._ended(channel).settled()
        channel.outstanding = sorted(channel.outstanding + back, key=lambda entry: entry.tag)
        self.answer(seat, "Tx.RollbackOk")

    # -- time

    def _pass_time(self, by_ms: int) -> None:
        until = self.now_ms + by_ms
        while (due := self._next_due(until)) is not None:
            self.now_ms = max(self.now_ms, due)
            self._come_due()
        self.now_ms = until

    def _next_due(self, until: int) -> int | None:
        dues = [
            held.deadline_ms
            for queue in self.queues.values()
            for held in queue.ready
            if held.deadline_ms is not None
        ]
        dues += [due for due, _ in self.waiting]
        dues += [self._idle_until(queue) for queue in self.queues.values() if self._is_idle(queue)]
        return min((due for due in dues if due <= until), default=None)

    def _is_idle(self, queue: Queue) -> bool:
        return queue.rule("expires") is not None and not queue.consumers

    def _idle_until(self, queue: Queue) -> int:
        return int(queue.used_ms + queue.rule("expires"))

    def _come_due(self) -> None:
        self._release()
        self._settle_later()
        for queue in list(self.queues.values()):
            self._expire(queue)
            self._settle(queue)
        self._post()
        for queue in list(self.queues.values()):
            if self._is_idle(queue) and self._idle_until(queue) <= self.now_ms:
                self._delete(queue)

    # -- the process ends

    def _restart(self, clean: bool) -> None:
        if not clean:
            self._pass_time(WRITTEN_MS)
            self._post()
        for seat, channel in list(self.channels.items()):
            del self.channels[seat]
            for entry in channel.given():
                if self._is_alive(entry.queue):
                    entry.held.redelivered = True
                    entry.queue.put(entry.held)
        for queue in list(self.queues.values()):
            queue.consumers.clear()
            if queue.owner is not None or not queue.durable:
                self._delete(queue)
                continue
            queue.used_ms = self.now_ms
            queue.ready = [held for held in queue.ready if held.message.persistent]
            for held in queue.ready:
                held.maybe_redelivered |= not clean and queue.was_read
        for exchange in list(self.topology.exchanges.values()):
            if not exchange.durable:
                self.topology.delete(exchange.name)
        self._forget_exchanges()
        for queue in list(self.queues.values()):
            self._settle(queue)
        self._post()
        self.expected.clear()

    # -- policies

    def _set_policy(self, policy: Policy) -> None:
        if policy.definition is None:
            self.policies.pop(policy.name, None)
        else:
            self.policies[policy.name] = policy
        for exchange in self.topology.exchanges.values():
            exchange.policy = self._policy_of("exchanges", exchange.name)
        for queue in self.queues.values():
            before, dropped_heads = queue.rule("expires"), queue.overflow == "drop-head"
            queue.policy = self._policy_of("queues", queue.name)
            if queue.rule("expires") != before:
                queue.used_ms = self.now_ms
            if dropped_heads and self.dialect.policies_limit_first and not queue.is_quorum:
                self._drop_heads(queue)
        if self.dialect.policies_change_deadlines:
            for queue, held in self._all_held():
                self._set_deadline(queue, held)
        self._pump_all()

    def _all_held(self) -> Iterator[tuple[Queue, Held]]:
        for queue in self.queues.values():
            yield from ((queue, held) for held in queue.ready)
        for channel in self.channels.values():
            yield from ((entry.queue, entry.held) for entry in channel.given())

    def _policy_of(self, kind: str, name: str) -> dict[str, Any]:
        """Of the one with the highest priority; no two have the same here."""
        fitting = [
            policy
            for policy in self.policies.values()
            if policy.apply_to in ("all", kind) and re.search(policy.pattern, name)
        ]
        best = max(fitting, key=lambda policy: policy.priority, default=None)
        return dict(best.definition or {}) if best else {}

    # -- for those that look

    def visible_queues(self) -> Iterator[tuple[str, int, int]]:
        """Name, ready messages and consumers of each."""
        for name, queue in sorted(self.queues.items()):
            yield name, len(queue.ready), len(queue.consumers)
