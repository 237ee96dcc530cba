"""A virtual host: declares, deletes, binds and routes to its exchanges and queues.

Permissions are not checked here: AMQP channels and HTTP routes do that before they call, each for
the user it serves.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from . import route as _types  # noqa: F401  (registers the exchange types)
from .busy_names import BusyNames
from .definitions.facts import exchange_owner
from .definitions.writer import DefinitionWriter
from .errors import access_refused, not_found, precondition_failed, resource_locked
from .message.equivalence import check_equivalent, inequivalent_argument, resource
from .message.model import FieldValue, Table
from .policy.policies import Policies
from .queue.arguments import KNOWN, Declared, check_properties
from .queue.classic import ClassicQueue
from .queue.consumer import Consumer
from .queue.deduplication import SeenIds
from .queue.queue import OWNER_GONE, Queue
from .queue.registry import inner_name, make_queue
from .queue.retained import RetainedQueue
from .replay.replay import Replay, replays_of
from .resources.limits import VhostLimits
from .route.binding import Binding, Destination
from .route.exchange import Exchange
from .route.persistence import ReplayRequest, read_replay_request
from .route.registry import equivalent, make
from .route.resolve import resolve
from .route.route import Route
from .slices import for_each

if TYPE_CHECKING:
    from .broker import Broker

DEFAULT_EXCHANGE = ""
REPLY_TO = "amq.rabbitmq.reply-to"
REPLY_PREFIX = REPLY_TO + "."
_PREDECLARED = (
    ("amq.direct", "direct", False),
    ("amq.fanout", "fanout", False),
    ("amq.topic", "topic", False),
    ("amq.headers", "headers", False),
    ("amq.match", "headers", False),
    ("amq.rabbitmq.trace", "topic", True),
)
_LOCKED = (
    "cannot obtain exclusive access to locked {}. It could be originally declared on another "
    "connection or the exclusive property value does not match that of the original declaration."
)


class VirtualHost:
    """The exchanges and queues of a virtual host, by name.

    The default exchange is not an object: routing to it is a look-up of the queue.
    """

    def __init__(self, name: str, broker: Broker) -> None:
        self.name = name
        self.keeper = DefinitionWriter(broker.set_aside, name, broker.facts)
        self.limits = VhostLimits(name, self.keeper)
        self.properties: Table = {}
        """`description`, `tags`, `default_queue_type` and others."""
        self._broker = broker
        self.queues: dict[str, Queue] = {}
        self.exchanges: dict[str, Exchange] = {}
        self.inner_queues: dict[str, Queue] = {}
        """Queues in which exchanges store messages, by an internal name; clients can't use them."""
        self.replies: dict[str, Queue] = {}
        """Queues of direct reply-to, by the random name in the requests."""
        self.under_way = BusyNames()
        self._alternates: dict[str, dict[Exchange, None]] = {}
        self.policies = Policies(self, broker)
        for exchange, type_name, internal in _PREDECLARED:
            self.add_exchange(
                make(
                    type_name, exchange, durable=True, auto_delete=False, internal=internal,
                    arguments={}, vhost=name,
                )
            )  # fmt: skip

    # -- exchanges (AMQP 0-9-1 1.6)

    def exchange(self, name: str) -> Exchange:
        """Returns the exchange. Raises `ChannelError` 404."""
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise not_found(f"no {resource('exchange', name, self.name)}")
        return exchange

    def publishable(self, name: str) -> Exchange | None:
        """Returns the exchange to publish to, None for the default one.

        Raises `ChannelError` 404, or 403 for an internal exchange.
        """
        if name == DEFAULT_EXCHANGE:
            return None
        exchange = self.exchange(name)
        if exchange.internal:
            raise access_refused(
                f"cannot publish to internal {resource('exchange', name, self.name)}"
            )
        return exchange

    def declare_exchange(
        self,
        name: str,
        type_name: str,
        *,
        durable: bool,
        auto_delete: bool,
        internal: bool,
        arguments: Table,
    ) -> Exchange:
        """Creates an exchange, or checks that the existing one is equivalent.

        It can be found once its first bindings are made, in slices (`Broker.on_declared`). Raises
        `ChannelError` 403 or 406, `NameBusy` while other work on that name goes on.
        """
        self.under_way.require_free("exchange", name)
        found = self.exchanges.get(name)
        if found is not None:
            equivalent(found, type_name, durable, auto_delete, internal, arguments)
            return found
        self.refuse_default(name)
        made = make(
            type_name, name, durable=durable, auto_delete=auto_delete, internal=internal,
            arguments=arguments, vhost=self.name, strict=self._broker.limits.strict_arguments,
        )  # fmt: skip
        check_name("exchange", name, self.name)
        with self._broker.store.together():
            self.keeper.keep_exchange(made)
            self.give_inner(made)
            made.keeper = self.keeper if made.durable else None
        self._broker.slices.start(self._bind_and_add(made))
        return made

    def _bind_and_add(self, made: Exchange) -> Iterator[None]:
        """Makes the first bindings before the exchange can be found: they miss no message."""
        with self.under_way.busy("exchange", made.name):
            yield from self._broker.on_declared(self, made)
            self.add_exchange(made)

    def give_inner(self, exchange: Exchange) -> None:
        """Gives a delayed or persistent exchange its internal queue, the restored or a new one, and
        a deduplicating exchange its message ids."""
        if exchange.deduplication is not None and exchange.seen is None:
            owner = exchange_owner(self.name, exchange.name) if exchange.durable else None
            exchange.seen = SeenIds(exchange.deduplication, self._broker, owner)
        kind = exchange.inner_kind or ("retained" if exchange.persistence else None)
        if kind is None:
            return
        name = inner_name(kind, exchange.name)
        queue = self.inner_queues.get(name)
        if queue is None:
            declared = Declared(name, self.name, durable=exchange.durable)
            queue = make_queue(declared, self._broker, self._broker.store.reserve(1), arguments={})
            self.keeper.keep_queue(queue)
            self.inner_queues[name] = queue
        exchange.inner = queue
        if isinstance(queue, RetainedQueue) and exchange.persistence is not None:
            queue.set_limits(exchange.persistence)

    def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Deletes an exchange, and its bindings in slices; an absent one is no error.

        Raises `ChannelError` 403 or 406, `NameBusy` while other work on that name goes on.
        """
        self.under_way.require_free("exchange", name)
        self.refuse_default(name)
        if name.startswith("amq."):
            raise access_refused(
                f"deletion of system {resource('exchange', name, self.name)} not allowed"
            )
        exchange = self.exchanges.get(name)
        if exchange is None:
            self.keeper.end_lost_exchange(name)
            return
        if if_unused and exchange.binding_count:
            raise precondition_failed(f"{resource('exchange', name, self.name)} in use")
        self._broker.slices.start(self._end_exchange(exchange))

    def refuse_default(self, name: str) -> None:
        if name == DEFAULT_EXCHANGE:
            raise access_refused("operation not permitted on the default exchange")

    def add_exchange(self, exchange: Exchange) -> None:
        """Adds an exchange that is stored already, if it is durable."""
        self.exchanges[exchange.name] = exchange
        if exchange.durable:
            exchange.keeper = self.keeper
        if exchange.alternate is not None:
            self._alternates.setdefault(exchange.alternate, {})[exchange] = None
        self._alternate_changed(exchange.name)
        self.policies.adopt(exchange)

    def change_alternate(self, exchange: Exchange, alternate: str | None) -> None:
        """Sets the alternate exchange, for a policy; None removes it."""
        self._leave_alternate(exchange)
        exchange.alternate = alternate
        if alternate is not None:
            self._alternates.setdefault(alternate, {})[exchange] = None
        exchange.changed()

    def _leave_alternate(self, exchange: Exchange) -> None:
        if exchange.alternate is not None:
            users = self._alternates[exchange.alternate]
            users.pop(exchange, None)
            if not users:
                del self._alternates[exchange.alternate]

    def _end_exchange(self, exchange: Exchange) -> Iterator[None]:
        """Deletes an exchange, and the auto-delete ones that lose their last binding by it.

        With a worklist, not recursion: chains can be thousands long. An exchange can't be found
        any more at once, its bindings go in steps; its name is free when all are deleted.
        """
        doomed: list[Exchange] = []
        with ExitStack() as busy:

            def doom(exchange: Exchange) -> None:
                if self.exchanges.get(exchange.name) is exchange:
                    busy.enter_context(self.under_way.busy("exchange", exchange.name))
                    self._take_away(exchange)
                    doomed.append(exchange)

            doom(exchange)
            while doomed:
                gone = doomed.pop()
                for destination in tuple(gone.destinations):
                    yield from self._unbind_each(gone, destination)
                for source in gone.incoming:
                    yield from self._unbind_each(source, gone)
                    if source.auto_delete and not source.binding_count:
                        doom(source)
                if isinstance(gone.inner, Queue):
                    self.drop_queue(gone.inner)
                self.keeper.end_exchange(gone)

    def _take_away(self, exchange: Exchange) -> None:
        """Removes an exchange, so that it can't be found and routes nothing."""
        del self.exchanges[exchange.name]
        exchange.end()
        self._leave_alternate(exchange)
        self.policies.forget(exchange)
        self._alternate_changed(exchange.name)
        self._broker.on_deleted(self.name, "exchange", exchange.name)

    def _unbind_each(self, source: Exchange, destination: Destination) -> Iterator[None]:
        """Removes the bindings from source to destination, one a step."""
        for binding in tuple(source.bindings_to(destination)):
            source.unbind(destination, binding.routing_key, binding.arguments)
            yield
        self._unbound(destination, source)

    def _alternate_changed(self, name: str) -> None:
        for user in self._alternates.get(name, ()):
            user.changed()

    def _auto_delete_exchange(self, exchange: Exchange) -> None:
        """Deletes an auto-delete exchange without bindings; a deleted one is no error."""
        if exchange.auto_delete and not exchange.binding_count:
            self._broker.slices.start(self._end_exchange(exchange))

    # -- queues (AMQP 0-9-1 1.7)

    def queue(self, name: str, owner: object | None = None) -> Queue:
        """Returns the queue. Raises `ChannelError` 404, 405 if exclusive to another connection."""
        queue = self._named(name)
        if queue is None:
            raise not_found(f"no {resource('queue', name, self.name)}")
        if queue.owner is not None and queue.owner is not owner:
            raise resource_locked(_LOCKED.format(resource("queue", name, self.name)))
        return queue

    def _named(self, name: str) -> Queue | None:
        """Finds a queue; an exclusive one of a closed connection is deleted instead."""
        queue = self.queues.get(name)
        if queue is not None and queue.owner is OWNER_GONE:
            self.drop_queue(queue)
            return None
        return queue

    def declare_queue(
        self,
        name: str,
        *,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Table | None = None,
        owner: object | None = None,
        server_named: str = "",
    ) -> Queue:
        """Creates a queue (and its name, if empty), or checks that the existing one is equivalent.

        `owner` is the declaring connection. `server_named`, from `server_name`, replaces an empty
        name. Raises `ChannelError` 403, 405 or 406, `NameBusy` while other work on that name goes
        on.
        """
        arguments = arguments or {}
        found = self._named(name)
        self.under_way.require_free("queue", name)
        if found is not None:
            self._compare_queue(found, durable, exclusive, auto_delete, arguments, owner)
            found.note_use()
            return found
        declared = Declared(name, self.name, durable, exclusive, auto_delete)
        # Quorum queues and streams must have a name of their own, so that is asked first.
        check_properties(declared, arguments)
        if name:
            check_name("queue", name, self.name)
        declared = replace(declared, name=name or server_named or self.server_name())
        self.limits.check_queues(declared.name, len(self.queues))
        queue = make_queue(
            declared, self._broker, self._broker.store.reserve(1), owner=owner,
            arguments=arguments, strict=self._broker.limits.strict_arguments,
        )  # fmt: skip
        self.keeper.keep_queue(queue)
        self.queues[queue.name] = queue
        self.policies.adopt(queue)
        self._broker.slices.start(self._bind_to(queue))
        return queue

    def _bind_to(self, made: Queue) -> Iterator[None]:
        with self.under_way.busy("queue", made.name):
            yield from self._broker.on_declared(self, made)

    def delete_queue(
        self,
        name: str,
        *,
        if_unused: bool = False,
        if_empty: bool = False,
        owner: object | None = None,
    ) -> int:
        """Deletes a queue; returns the number of its ready messages. An absent one is no error.

        Its name is busy until its bindings are removed and its consumers cancelled, in slices.
        Raises `ChannelError` 405 or 406, `NameBusy` while other work on that name goes on.
        """
        self.under_way.require_free("queue", name)
        if self._named(name) is None:
            self.keeper.end_lost_queue(name)
            return 0
        queue = self.queue(name, owner)
        if if_unused and queue.consumer_count:
            raise precondition_failed(f"{resource('queue', name, self.name)} in use")
        if if_empty and queue.ready_count:
            raise precondition_failed(f"{resource('queue', name, self.name)} not empty")
        return self.drop_queue(queue)

    def drop_queue(self, queue: Queue) -> int:
        """Deletes a queue and its messages at once; it can't be found and gets no messages.

        Bindings are removed and consumers cancelled in slices. Returns the number of messages
        that were ready.
        """
        if queue.deleted:
            return 0
        queue.deleted = True
        for queues in (self.queues, self.inner_queues):
            if queues.get(queue.name) is queue:
                del queues[queue.name]
        self.policies.forget(queue)
        queue.invalidate_routes()
        ready = queue.ready_count
        queue.purge()
        if queue.durable:
            self._broker.slices.start(self._broker.store.drop(queue))
        self._broker.slices.start(self._end_queue(queue))
        return ready

    def _end_queue(self, queue: Queue) -> Iterator[None]:
        """Removes bindings and consumers, one a step; the definition goes after the bindings."""
        with self.under_way.busy("queue", queue.name):
            for exchange in tuple(queue.bound or ()):
                yield from self._unbind_each(exchange, queue)
                if exchange.auto_delete and not exchange.binding_count:
                    yield from self._end_exchange(exchange)
            self.keeper.end_queue(queue)
            yield from for_each(queue.detach_consumers(), _tell_cancelled)
            self._broker.on_deleted(self.name, "queue", queue.name)

    def clear(self) -> Iterator[None]:
        """Deletes everything in the virtual host, bindings first, in steps for `Slices`."""
        yield from for_each((*self.replies.values(), *self.queues.values()), self.drop_queue)
        self.replies.clear()
        for exchange in tuple(self.exchanges.values()):
            yield from self._end_exchange(exchange)
        while self.under_way:
            yield  # until other sliced deletions are done
        yield from for_each(tuple(self.inner_queues.values()), self.drop_queue)
        self.policies.clear_all()

    def make_reply_queue(self, name: str) -> Queue:
        """Creates the private queue of a direct reply-to consumer."""
        queue = ClassicQueue(name, self.name, self._broker, self._broker.store.reserve(1))
        self.replies[name] = queue
        return queue

    def drop_reply_queue(self, queue: Queue) -> None:
        self.replies.pop(queue.name, None)
        for consumer in list(queue.ring.members) if queue.ring is not None else ():
            queue.remove_consumer(consumer)
        self.drop_queue(queue)

    def _compare_queue(
        self,
        found: Queue,
        durable: bool,
        exclusive: bool,
        auto_delete: bool,
        arguments: Table,
        owner: object | None,
    ) -> None:
        self.queue(found.name, owner)
        if exclusive != (found.owner is not None):
            raise resource_locked(_LOCKED.format(resource("queue", found.name, self.name)))
        pairs: list[tuple[str, FieldValue, FieldValue]] = [
            ("durable", durable and not exclusive, found.durable),
            ("auto_delete", auto_delete, found.auto_delete),
        ]
        names = sorted((arguments.keys() | found.arguments.keys()) & KNOWN)
        pairs += [(name, arguments.get(name), found.arguments.get(name)) for name in names]
        for argument, received, current in pairs:
            check_equivalent("queue", found.name, self.name, argument, received, current)
        for name in (arguments.keys() - found.arguments.keys()) & KNOWN:
            # An argument without a value still counts: the first declaration would refuse it.
            raise inequivalent_argument("queue", found.name, self.name, name, None, None)

    def server_name(self) -> str:
        """Returns a new queue name with 128 random bits, which nobody can guess."""
        return "amq.gen-" + urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()

    # -- bindings

    def bind(
        self,
        source: Exchange,
        destination: Destination,
        routing_key: str,
        arguments: Table,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """Adds a binding; a repeated one is no error.

        `done` runs when the binding is active: at once, or when the queue has got the messages it
        requests from a persistent exchange. Raises `ChannelError` 406 for bad arguments, 403 for
        binding an exchange to a persistent one.
        """
        kept = source.persistence
        if kept is not None and isinstance(destination, Exchange):
            raise access_refused(
                f"{resource('exchange', source.name, self.name)} keeps messages: it can't be the "
                f"source of a binding to an exchange"
            )
        wanted = None if kept is None else read_replay_request(arguments)
        if kept is not None and kept.replays_by_default:
            wanted = wanted or ReplayRequest(since=0)
        is_new = not source.has_binding(destination, routing_key, arguments)
        if wanted is None or not is_new or not isinstance(destination, Queue):
            self.attach(source, destination, routing_key, arguments)
            done()
            return
        source.check(routing_key, arguments)
        self._replay(source, destination, routing_key, arguments, wanted, done)

    def _replay(
        self,
        source: Exchange,
        queue: Queue,
        routing_key: str,
        arguments: Table,
        wanted: ReplayRequest,
        done: Callable[[], None],
    ) -> None:
        binding = Binding(queue, routing_key, arguments)
        if source.keeper is not None:
            source.keeper.binding_key(source, binding)
        for replay in replays_of(source, queue):
            if replay.binding == binding:
                replay.on_done.append(done)
                return

        def attach() -> None:
            if not (source.deleted or queue.deleted):
                self.attach(source, queue, routing_key, arguments)

        replay = Replay(self._broker, source, binding, wanted, attach)
        replay.on_done.append(done)
        replay.start()

    def attach(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Table
    ) -> None:
        """As `bind`, without a replay."""
        if source.bind(destination, routing_key, arguments):
            for replay in replays_of(source, destination):
                replay.bound(Binding(destination, routing_key, arguments))
        if isinstance(destination, Queue):
            if destination.bound is None:
                destination.bound = {}
            destination.bound[source] = None

    def unbind(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Table
    ) -> None:
        """Removes a binding, also one whose replay goes on; an absent one is no error."""
        binding = Binding(destination, routing_key, arguments)
        for replay in replays_of(source, destination):
            if replay.binding == binding:
                replay.end(in_force=False)
            else:
                replay.unbound(binding)
        if source.unbind(destination, routing_key, arguments):
            if destination not in source.destinations:
                self._unbound(destination, source)
            self._auto_delete_exchange(source)
        else:
            self.keeper.end_lost_binding(source, binding)

    def _unbound(self, destination: Destination, source: Exchange) -> None:
        if isinstance(destination, Queue) and destination.bound is not None:
            destination.bound.pop(source, None)

    # -- routing

    def route(
        self,
        exchange: Exchange | None,
        routing_keys: Sequence[str],
        headers: Mapping[str, FieldValue] | None,
        *,
        watched: bool,
    ) -> Route:
        """Routes a message; `exchange` is None for the default exchange.

        A watched route is marked dead when bindings change; any other is for a single use.
        """
        if exchange is None:
            return self._default_route(routing_keys, watched)
        return resolve(
            exchange, routing_keys, headers, exchange_by_name=self.exchanges.get, watched=watched
        )

    def _default_route(self, names: Sequence[str], watched: bool) -> Route:
        found = dict.fromkeys(self._by_name(names))
        route = Route(tuple(found), uses_key=True, uses_headers=False)
        if watched:
            # A missing queue may be declared at any time without a notification: not cached.
            if len(found) == len(set(names)):
                route.watch(tuple(found))
            else:
                route.dead = True
        return route

    def _by_name(self, names: Sequence[str]) -> Iterator[Queue]:
        for name in names:
            queue = self.queues.get(name)
            if queue is None and name.startswith(REPLY_PREFIX):
                queue = self.replies.get(name)
            if queue is not None:
                yield queue


def _tell_cancelled(consumer: Consumer) -> None:
    consumer.session.cancelled(consumer)


def check_name(kind: str, name: str, vhost: str) -> None:
    """Checks the name of a new object. Raises `ChannelError` 403 if reserved, 406 for line ends.

    A line end could split a header of the HTTP deliveries that carry the name.
    """
    if name.startswith("amq."):
        raise access_refused(f"{kind} name '{name}' contains reserved prefix 'amq.*'")
    if "\r" in name or "\n" in name:
        raise precondition_failed(f"{kind} name {name!r} contains a line end")
