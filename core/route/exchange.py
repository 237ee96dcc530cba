"""The base of all exchange types: identity, bindings, and the routes that a change invalidates.

A type implements `match`, `attach` and `detach` and, if it restricts its bindings, `check`. Nothing
here visits all bindings except to list them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol

from ..message.deduplication import ARGUMENTS as DEDUPLICATION
from ..message.equivalence import resource
from ..message.model import FieldValue, Table
from .arguments import ExchangeArguments
from .binding import Binding, GroupedBindings
from .deduplication import read_deduplication
from .persistence import ARGUMENTS as PERSISTENCE
from .persistence import read_persistence
from .route import Destination

if TYPE_CHECKING:
    from ..queue.deduplication import SeenIds
    from ..statistics.counters import MessageCounters

logger = logging.getLogger(__name__)

ALTERNATE_EXCHANGE: Final = "alternate-exchange"
DELAY_QUEUE: Final = "delay"
RETAINED_QUEUE: Final = "retained"
"""The kinds of inner queues (`core/queue/registry.py`)."""


class ExchangeDeclaration(NamedTuple):
    """The fields of an exchange declaration (AMQP 0-9-1 1.6.2.1)."""

    type_name: str
    name: str
    vhost: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Table


class BindingStorage(Protocol):
    """Stores the bindings of durable exchanges."""

    def binding_key(self, source: Exchange, binding: Binding) -> bytes | None:
        """Returns the key under which a binding is stored, None if it is not stored. Raises
        `ChannelError` 406 if it can't be."""

    def bound(self, key: bytes) -> None: ...
    def unbound(self, source: Exchange, binding: Binding) -> None: ...


class Exchange(Destination):
    """An exchange (AMQP 0-9-1 1.6.2); raises `ChannelError` 406 for invalid arguments.

    When an exchange is declared or deleted, `changed` must be called on those whose `alternate` is
    its name, and also after `alternate` was set.
    """

    __slots__ = (
        "_by_destination",
        "_exchange_destinations",
        "_incoming",
        "_missed_alternate",
        "alternate",
        "arguments",
        "auto_delete",
        "binding_count",
        "counters",
        "deduplication",
        "delays",
        "inner",
        "internal",
        "persistence",
        "seen",
        "storage",
        "type_name",
        "uses_headers",
        "uses_key",
        "vhost",
    )

    known_arguments: ClassVar[frozenset[str]] = (
        frozenset({ALTERNATE_EXCHANGE}) | PERSISTENCE | DEDUPLICATION
    )
    each_message: ClassVar[bool] = False
    """True: no route may be cached, not even for the same key and headers."""
    one_key: ClassVar[bool] = False
    """True: only the routing key counts, not the keys in CC and BCC."""
    distributes: ClassVar[bool] = False
    """True: each message goes to one of the bindings, so another binding takes from the others."""
    keeps_history: ClassVar[bool] = False
    """True: exchanges of this type store messages for later bindings, whatever their arguments."""

    def __init__(self, declared: ExchangeDeclaration) -> None:
        super().__init__(declared.name, durable=declared.durable)
        self.type_name = declared.type_name
        self.vhost = declared.vhost
        self.auto_delete = declared.auto_delete
        self.internal = declared.internal
        self.arguments = declared.arguments
        arguments = ExchangeArguments(declared.name, declared.vhost, declared.arguments)
        self.uses_key = True
        """False: the routing key does not change the result of `match`."""
        self.uses_headers = False
        """True: `match` gets `MessageHeaders` for each message, and None only for a first try."""
        self.delays = False
        """Whether a message with a delay waits in the inner queue (`delayed.py`)."""
        self.inner: Destination | None = None
        """The inner queue, set by the virtual host."""
        self.storage: BindingStorage | None = None
        """Stores bindings; only durable exchanges have one."""
        self.alternate = arguments.exchange_name(ALTERNATE_EXCHANGE)
        self._missed_alternate: str | None = None
        self.binding_count = 0
        self.counters: MessageCounters | None = None
        self._by_destination: GroupedBindings[Destination] = GroupedBindings()
        self._incoming: dict[Exchange, None] | None = None
        self._exchange_destinations = 0
        self.deduplication = read_deduplication(arguments)
        self.seen: SeenIds | None = None
        """The message ids seen, if it deduplicates; set by the virtual host."""
        self.persistence = read_persistence(arguments)

    @property
    def inner_kind(self) -> str | None:
        """The kind of inner queue that it stores messages in."""
        if self.delays:
            return DELAY_QUEUE
        return None if self.persistence is None else RETAINED_QUEUE

    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        """Returns the destinations of a message; one may be there more than once, and deleted ones
        may be among them unless the type chooses one.

        It changes no state: it may be called without a message being published.
        """
        raise NotImplementedError

    def attach(self, binding: Binding) -> None:
        """Adds a new binding to the indexes that `match` uses."""
        raise NotImplementedError

    def detach(self, binding: Binding) -> None:
        """Undoes `attach` of the same binding."""
        raise NotImplementedError

    def check(self, routing_key: str, arguments: Table) -> None:
        """Raises `ChannelError` 406 if the type does not allow such a binding."""

    def history_queue(self, headers: Mapping[str, FieldValue] | None) -> Destination | None:
        """Returns the inner queue in which a message is stored for later bindings, if any."""
        return None if self.persistence is None else self.inner

    def without_bindings(self) -> Exchange:
        """Returns an exchange of the same type and arguments that has no bindings."""
        return type(self)(
            ExchangeDeclaration(
                self.type_name, self.name, self.vhost, False, False, False, self.arguments
            )
        )

    # -- bindings

    def bind(self, destination: Destination, routing_key: str, arguments: Table) -> bool:
        """Adds a binding; False if there is an equal one. Raises `ChannelError` 406 as `check`."""
        self.check(routing_key, arguments)
        binding = Binding(destination, routing_key, arguments)
        stored_key = None if self.storage is None else self.storage.binding_key(self, binding)
        first = destination not in self._by_destination
        if not self._by_destination.add(destination, binding):
            return False
        if first and isinstance(destination, Exchange):
            self._link(destination)
        self.binding_count += 1
        self.attach(binding)
        self.changed()
        if self.storage is not None and stored_key is not None:
            self.storage.bound(stored_key)
        return True

    def unbind(self, destination: Destination, routing_key: str, arguments: Table) -> bool:
        """Removes a binding; False if there is none, which is no error (AMQP 0-9-1 1.7.2.5)."""
        equal = Binding(destination, routing_key, arguments)
        binding = self._by_destination.discard(destination, equal)
        if binding is None:
            return False
        self.detach(binding)
        self.binding_count -= 1
        if isinstance(destination, Exchange) and destination not in self._by_destination:
            self._unlink(destination)
        self.changed()
        if self.storage is not None:
            self.storage.unbound(self, binding)
        return True

    def end(self) -> None:
        """Marks it as deleted and invalidates its routes; the caller removes its bindings."""
        self.deleted = True
        self.changed()
        for source in self.incoming:
            source.changed()

    def bindings(self) -> Iterator[Binding]:
        """Returns all bindings from this exchange, grouped by destination."""
        return iter(self._by_destination)

    def bindings_to(self, destination: Destination) -> Iterator[Binding]:
        """Returns all bindings from this exchange to one destination."""
        return iter(self._by_destination.group(destination))

    def has_binding(self, destination: Destination, routing_key: str, arguments: Table) -> bool:
        binding = Binding(destination, routing_key, arguments)
        return self._by_destination.has(destination, binding)

    @property
    def destinations(self) -> Iterable[Destination]:
        """All destinations, each once, in the order of their first binding."""
        return self._by_destination.keys()

    @property
    def incoming(self) -> tuple[Exchange, ...]:
        """The exchanges with a binding to this one."""
        return tuple(self._incoming or ())

    @property
    def reaches_exchanges(self) -> bool:
        """Whether any destination is an exchange."""
        return self._exchange_destinations > 0

    def warn_missing_alternate(self) -> None:
        """Logs that the alternate exchange does not exist; once for each name of it."""
        if self._missed_alternate != self.alternate:
            self._missed_alternate = self.alternate
            logger.warning(
                "alternate exchange '%s' of %s does not exist: unroutable messages are dropped",
                self.alternate,
                resource("exchange", self.name, self.vhost),
            )

    def _link(self, destination: Exchange) -> None:
        self._exchange_destinations += 1
        if destination._incoming is None:
            destination._incoming = {}
        destination._incoming[self] = None

    def _unlink(self, destination: Exchange) -> None:
        self._exchange_destinations -= 1
        if destination._incoming is not None:
            destination._incoming.pop(self, None)
