"""The base of all exchange types: identity, bindings, and the routes that a change invalidates.

A type implements `match`, `attach` and `detach` and, if it restricts its bindings, `check`. Nothing
here visits all bindings except to list them.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, NotRequired, Protocol, TypedDict

from ..message.deduplication import ARGUMENTS as DEDUPLICATION
from ..message.equivalence import resource
from ..message.model import FieldValue, Table
from .arguments import ExchangeArguments
from .binding import Binding, Destination, GroupedBindings
from .deduplication import read_deduplication
from .persistence import ARGUMENTS as PERSISTENCE
from .persistence import read_persistence
from .route import Watched

logger = logging.getLogger(__name__)

__all__ = [
    "ALTERNATE_EXCHANGE",
    "Binding",
    "BindingStorage",
    "Destination",
    "Exchange",
    "ExchangeProperties",
]

ALTERNATE_EXCHANGE = "alternate-exchange"

MAX_NAME_BYTES = 255
"""A name travels as a short string (AMQP 0-9-1 4.2.5.3)."""


class ExchangeProperties(TypedDict):
    """The properties of an exchange declaration, besides name and type."""

    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Table
    vhost: NotRequired[str]


class BindingStorage(Protocol):
    """Stores the bindings of durable exchanges."""

    def binding_key(self, source: Exchange, binding: Binding) -> bytes | None:
        """Returns the key under which a binding is stored, None if it is not stored. Raises
        `ChannelError` 406 if it can't be."""

    def bound(self, key: bytes) -> None: ...
    def unbound(self, source: Exchange, binding: Binding) -> None: ...


class Exchange(Watched, ABC):
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
        "deduplication",
        "deleted",
        "durable",
        "inner",
        "internal",
        "keeper",
        "name",
        "persistence",
        "seen",
        "vhost",
    )  # fmt: skip

    type_name: ClassVar[str]
    own_arguments: ClassVar[frozenset[str]] = (
        frozenset({ALTERNATE_EXCHANGE}) | PERSISTENCE | DEDUPLICATION
    )
    """The arguments of this class, besides those of its bases."""
    each_message: ClassVar[bool] = False
    """True: no route may be cached, not even for the same key and headers."""
    one_key: ClassVar[bool] = False
    """True: only the routing key counts, not the keys in CC and BCC."""
    inner_kind: str | None = None
    """The kind of inner queue that the exchange stores messages in (core/queue/registry.py)."""

    def __init__(
        self,
        name: str,
        *,
        durable: bool,
        auto_delete: bool,
        internal: bool,
        arguments: Table,
        vhost: str = "/",
    ) -> None:
        super().__init__()
        self.inner: Destination | None = None
        """The inner queue, set by the virtual host."""
        self.name = name
        self.vhost = vhost
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments = arguments
        self.alternate = self._alternate()
        self._missed_alternate: str | None = None
        self.keeper: BindingStorage | None = None
        """Stores bindings; only durable exchanges have one."""
        self.deleted = False
        """Whether it was deleted: it routes nothing, whatever bindings it still has."""
        self.binding_count = 0
        self._by_destination: GroupedBindings[Destination] = GroupedBindings()
        self._incoming: dict[Exchange, None] | None = None
        self._exchange_destinations = 0
        declared = ExchangeArguments(name, vhost, arguments)
        self.deduplication = read_deduplication(declared)
        self.seen: object | None = None
        """The message ids seen, if it deduplicates; set by the virtual host."""
        self.persistence = read_persistence(declared)
        if self.persistence is not None and self.inner_kind is not None:
            raise declared.invalid("x-persist-messages", f"{self.type_name} can't keep messages")

    @property
    @abstractmethod
    def uses_key(self) -> bool:
        """False: the routing key does not change the result."""

    @property
    def uses_headers(self) -> bool:
        """Whether it routes by headers or other properties: then `match` gets `MessageHeaders` for
        each message, and None only for a first try."""
        return False

    @abstractmethod
    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        """Returns the destinations of a message; one may be there more than once, and deleted ones
        may be among them unless the type chooses one.

        It changes no state: it may be called without a message being published.
        """

    @abstractmethod
    def attach(self, binding: Binding) -> None:
        """Adds a new binding to the indexes that `match` uses."""

    @abstractmethod
    def detach(self, binding: Binding) -> None:
        """Undoes `attach` of the same binding."""

    def check(self, routing_key: str, arguments: Table) -> None:
        """Raises `ChannelError` 406 if the type does not allow such a binding."""

    def bind(self, destination: Destination, routing_key: str, arguments: Table) -> bool:
        """Adds a binding; False if there is an equal one. Raises `ChannelError` 406 as `check`."""
        self.check(routing_key, arguments)
        binding = Binding(destination, routing_key, arguments)
        kept = None if self.keeper is None else self.keeper.binding_key(self, binding)
        first = destination not in self._by_destination
        if not self._by_destination.add(destination, binding):
            return False
        if first and isinstance(destination, Exchange):
            self._link(destination)
        self.binding_count += 1
        self.attach(binding)
        self.changed()
        if self.keeper is not None and kept is not None:
            self.keeper.bound(kept)
        return True

    def bindings_to(self, destination: Destination) -> Iterator[Binding]:
        """Returns all bindings from this exchange to one destination."""
        return iter(self._by_destination.group(destination))

    def has_binding(self, destination: Destination, routing_key: str, arguments: Table) -> bool:
        binding = Binding(destination, routing_key, arguments)
        return self._by_destination.has(destination, binding)

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
        if self.keeper is not None:
            self.keeper.unbound(self, binding)
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

    def history_queue(self, headers: Mapping[str, FieldValue] | None) -> Destination | None:
        """Returns the inner queue in which a message is stored for later bindings, if any."""
        return None if self.persistence is None else self.inner

    @property
    def incoming(self) -> tuple[Exchange, ...]:
        """The exchanges with a binding to this one."""
        return tuple(self._incoming or ())

    @property
    def reaches_exchanges(self) -> bool:
        """Whether any destination is an exchange."""
        return self._exchange_destinations > 0

    @property
    def destinations(self) -> Iterable[Destination]:
        """All destinations, each once, in the order of their first binding."""
        return self._by_destination.keys()

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

    def _alternate(self) -> str | None:
        arguments = ExchangeArguments(self.name, self.vhost, self.arguments)
        name = arguments.text(ALTERNATE_EXCHANGE)
        if name is None:
            return None
        if len(name.encode()) > MAX_NAME_BYTES or "\r" in name or "\n" in name:
            raise arguments.invalid(ALTERNATE_EXCHANGE, "not the name of an exchange")
        return name
