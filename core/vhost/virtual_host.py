"""A virtual host: declares, deletes, binds and routes to its exchanges and queues.

Permissions are not checked here: AMQP channels and HTTP routes do that before they call, each for
the user it serves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..busy_names import BusyNames
from ..definitions.committed import CommittedTransactions
from ..definitions.facts import exchange_owner
from ..definitions.writer import DefinitionWriter
from ..errors import access_refused, not_found, precondition_failed
from ..message.equivalence import resource
from ..message.model import FieldValue, Table
from ..policy.policies import Policies
from ..queue.arguments import DeclaredArguments, check_properties
from ..queue.classic import ClassicQueue
from ..queue.deduplication import SeenIds
from ..queue.names import inner_name, server_name
from ..queue.queue import OWNER_GONE, Queue
from ..queue.redeclaration import check_owner, check_redeclaration
from ..queue.registry import make_queue
from ..queue.retained import RetainedQueue
from ..resources.limits import VhostLimits
from ..route.exchange import Exchange
from ..route.registry import equivalent, make
from ..route.resolve import resolve
from ..route.route import Route
from .alternates import AlternateExchanges
from .bindings import Bindings
from .deletion import Deletion
from .names import check_name

if TYPE_CHECKING:
    from ..context import BrokerContext

DEFAULT_EXCHANGE: Final = ""
REPLY_TO: Final = "amq.rabbitmq.reply-to"
REPLY_PREFIX: Final = REPLY_TO + "."
_PREDECLARED: Final = (
    ("amq.direct", "direct", False),
    ("amq.fanout", "fanout", False),
    ("amq.topic", "topic", False),
    ("amq.headers", "headers", False),
    ("amq.match", "headers", False),
    ("amq.rabbitmq.trace", "topic", True),
)


class VirtualHost:
    """The exchanges and queues of a virtual host, by name.

    The default exchange is not an object: routing to it is a look-up of the queue.
    """

    def __init__(self, name: str, broker: BrokerContext) -> None:
        self.name = name
        self.storage = DefinitionWriter(broker.set_aside, name, broker.facts)
        self.committed = CommittedTransactions(broker.facts, name)
        self.limits = VhostLimits(name, self.storage)
        self.properties: Table = {}
        """`description`, `tags`, `default_queue_type` and others."""
        self._broker = broker
        self.queues: dict[str, Queue] = {}
        self.exchanges: dict[str, Exchange] = {}
        self.inner_queues: dict[str, Queue] = {}
        """Queues in which exchanges store messages, by an internal name; clients can't use them."""
        self.replies: dict[str, Queue] = {}
        """Queues of direct reply-to, by the random name in the requests."""
        self.busy_names = BusyNames()
        self.alternates = AlternateExchanges()
        self.bindings = Bindings(self, broker)
        self.deletion = Deletion(self, broker)
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
        self.busy_names.require_free("exchange", name)
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
            self.storage.save_exchange(made)
            self.attach_inner_queue(made)
            made.storage = self.storage if made.durable else None
        self._broker.slices.start(self._bind_and_add(made))
        return made

    def _bind_and_add(self, made: Exchange) -> Iterator[None]:
        """Makes the first bindings before the exchange can be found: they miss no message."""
        with self.busy_names.busy("exchange", made.name):
            yield from self._broker.on_declared(self.name, made)
            self.add_exchange(made)

    def attach_inner_queue(self, exchange: Exchange) -> None:
        """Gives a delayed or persistent exchange its internal queue, the restored or a new one, and
        a deduplicating exchange its message ids."""
        if exchange.deduplication is not None and exchange.seen is None:
            owner = exchange_owner(self.name, exchange.name) if exchange.durable else None
            exchange.seen = SeenIds(exchange.deduplication, self._broker, owner)
        kind = exchange.inner_kind
        if kind is None:
            return
        name = inner_name(kind, exchange.name)
        queue = self.inner_queues.get(name)
        if queue is None:
            declared = DeclaredArguments(name, self.name, durable=exchange.durable)
            queue = make_queue(declared, self._broker, self._broker.store.reserve(1), arguments={})
            self.storage.save_queue(queue)
            self.inner_queues[name] = queue
        exchange.inner = queue
        if isinstance(queue, RetainedQueue) and exchange.persistence is not None:
            queue.set_limits(exchange.persistence)

    def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Deletes an exchange, and its bindings in slices; an absent one is no error.

        Raises `ChannelError` 403 or 406, `NameBusy` while other work on that name goes on.
        """
        self.busy_names.require_free("exchange", name)
        self.refuse_default(name)
        if name.startswith("amq."):
            raise access_refused(
                f"deletion of system {resource('exchange', name, self.name)} not allowed"
            )
        exchange = self.exchanges.get(name)
        if exchange is None:
            self.storage.delete_lost_exchange(name)
            return
        if if_unused and exchange.binding_count:
            raise precondition_failed(f"{resource('exchange', name, self.name)} in use")
        self.deletion.delete_exchange(exchange)

    def refuse_default(self, name: str) -> None:
        """Raises `ChannelError` 403 for the name of the default exchange."""
        if name == DEFAULT_EXCHANGE:
            raise access_refused("operation not permitted on the default exchange")

    def add_exchange(self, exchange: Exchange) -> None:
        """Adds an exchange that is stored already, if it is durable."""
        self.exchanges[exchange.name] = exchange
        if exchange.durable:
            exchange.storage = self.storage
        self.alternates.add(exchange)
        self.alternates.invalidate(exchange.name)
        self.policies.apply_to(exchange)

    # -- queues (AMQP 0-9-1 1.7)

    def queue(self, name: str, owner: object | None = None) -> Queue:
        """Returns the queue. Raises `ChannelError` 404, 405 if exclusive to another connection."""
        queue = self._named(name)
        if queue is None:
            raise not_found(f"no {resource('queue', name, self.name)}")
        check_owner(queue, owner)
        return queue

    def _named(self, name: str) -> Queue | None:
        """Finds a queue; an exclusive one of a closed connection is deleted instead."""
        queue = self.queues.get(name)
        if queue is not None and queue.owner is OWNER_GONE:
            self.deletion.delete_queue(queue)
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
        self.busy_names.require_free("queue", name)
        self._broker.statistics.churned().queue_declared += 1
        declared = DeclaredArguments(name, self.name, durable, exclusive, auto_delete)
        if found is not None:
            check_redeclaration(found, declared, arguments, owner)
            found.note_use()
            return found
        # Quorum queues and streams must have a name of their own, so that is checked first.
        check_properties(declared, arguments)
        if name:
            check_name("queue", name, self.name)
        declared = replace(declared, name=name or server_named or server_name())
        self.limits.check_queues(declared.name, len(self.queues))
        queue = make_queue(
            declared, self._broker, self._broker.store.reserve(1), owner=owner,
            arguments=arguments, strict=self._broker.limits.strict_arguments,
        )  # fmt: skip
        self.storage.save_queue(queue)
        self.queues[queue.name] = queue
        self._broker.statistics.churned().queue_created += 1
        self.policies.apply_to(queue)
        self._broker.slices.start(self._bind_to(queue))
        return queue

    def _bind_to(self, made: Queue) -> Iterator[None]:
        with self.busy_names.busy("queue", made.name):
            yield from self._broker.on_declared(self.name, made)

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
        self.busy_names.require_free("queue", name)
        if self._named(name) is None:
            self.storage.delete_lost_queue(name)
            return 0
        queue = self.queue(name, owner)
        if if_unused and queue.consumer_count:
            raise precondition_failed(f"{resource('queue', name, self.name)} in use")
        if if_empty and queue.ready_count:
            raise precondition_failed(f"{resource('queue', name, self.name)} not empty")
        return self.deletion.delete_queue(queue)

    def make_reply_queue(self, name: str) -> Queue:
        """Creates the private queue of a direct reply-to consumer."""
        queue = ClassicQueue(name, self.name, self._broker, self._broker.store.reserve(1))
        self.replies[name] = queue
        return queue

    def drop_reply_queue(self, queue: Queue) -> None:
        """Deletes the queue of a direct reply-to consumer, and cancels its consumers silently."""
        self.replies.pop(queue.name, None)
        for consumer in list(queue.ring.members) if queue.ring is not None else ():
            queue.remove_consumer(consumer)
        self.deletion.delete_queue(queue)

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
