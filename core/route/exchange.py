"""What all exchanges share: identity, bindings, and the routes that a change ends.

A type adds how a message is matched, by `match`, `attach`, `detach` and, if its bindings have
rules, `check`. Nothing here scans all bindings except what must list them.
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
    """What an exchange is declared with, besides its name and type."""

    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Table
    vhost: NotRequired[str]


class BindingStorage(Protocol):
    """Whoever makes bindings outlive the process."""

    def binding_key(self, source: Exchange, binding: Binding) -> bytes | None:
        """What it is kept under, None if it is not. Raises `ChannelError` 406 if it can't be."""

    def bound(self, key: bytes) -> None: ...
    def unbound(self, source: Exchange, binding: Binding) -> None: ...


class Exchange(Watched, ABC):
    """A place to publish to (AMQP 0-9-1 1.6.2); raises `ChannelError` 406 on bad arguments.

    Whoever makes an exchange appear or vanish calls `changed` on those whose `alternate` is its
    name; `alternate` may be set anew, followed by `changed`.
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
    """Arguments that this class knows, besides those that its bases know."""
    each_message: ClassVar[bool] = False
    """True: no answer may be remembered, not even for the same key and headers."""
    one_key: ClassVar[bool] = False
    """True: of a message's keys only its own counts, not those of CC and BCC."""
    inner_kind: str | None = None
    """What kind of inner queue an exchange needs that keeps messages (core/queue/registry.py)."""

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
        """That queue, from the virtual host."""
        self.name = name
        self.vhost = vhost
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments = arguments
        self.alternate = self._alternate()
        self._missed_alternate: str | None = None
        self.keeper: BindingStorage | None = None
        """Hears of bindings that come and go; only durable exchanges have one."""
        self.deleted = False
        """Nothing is routed by it any more, whatever bindings it still has."""
        self.binding_count = 0
        self._by_destination: GroupedBindings[Destination] = GroupedBindings()
        self._incoming: dict[Exchange, None] | None = None
        self._exchange_destinations = 0
        declared = ExchangeArguments(name, vhost, arguments)
        self.deduplication = read_deduplication(declared)
        self.seen: object | None = None
        """What it has seen, if it drops that; from the virtual host."""
        self.persistence = read_persistence(declared)
        if self.persistence is not None and self.inner_kind is not None:
            raise declared.invalid("x-persist-messages", f"{self.type_name} can't keep messages")

    @property
    @abstractmethod
    def uses_key(self) -> bool:
        """False: any key gives the same answer."""

    @property
    def uses_headers(self) -> bool:
        """True for one that looks at headers or any other property: then `match` gets
        `MessageHeaders` for each message, and None only where a first answer is tried out."""
        return False

    @abstractmethod
    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        """The destinations of a message; one may come more than once, and those that are deleted
        may be among them if it does not choose.

        It leaves no trace: it may be asked without a message following.
        """

    @abstractmethod
    def attach(self, binding: Binding) -> None:
        """Adds a new binding to what `match` looks at."""

    @abstractmethod
    def detach(self, binding: Binding) -> None:
        """Undoes `attach` of the same binding."""

    def check(self, routing_key: str, arguments: Table) -> None:
        """Raises `ChannelError` 406 if this type has no such binding; nothing is refused here."""

    def bind(self, destination: Destination, routing_key: str, arguments: Table) -> bool:
        """True if new, False for a repeat; raises `ChannelError` 406 as `check` does."""
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
        """All bindings from this exchange to one destination."""
        return iter(self._by_destination.group(destination))

    def has_binding(self, destination: Destination, routing_key: str, arguments: Table) -> bool:
        wanted = Binding(destination, routing_key, arguments)
        return self._by_destination.has(destination, wanted)

    def unbind(self, destination: Destination, routing_key: str, arguments: Table) -> bool:
        """True if there was such a binding; there need not be one (AMQP 0-9-1 1.7.2.5)."""
        wanted = Binding(destination, routing_key, arguments)
        binding = self._by_destination.discard(destination, wanted)
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
        """Ends its routes for good; its bindings are for the caller to take away."""
        self.deleted = True
        self.changed()
        for source in self.incoming:
            source.changed()

    def bindings(self) -> Iterator[Binding]:
        """All bindings from this exchange, those to one destination together."""
        return iter(self._by_destination)

    def history_queue(self, headers: Mapping[str, FieldValue] | None) -> Destination | None:
        """Where a message is kept for bindings to come."""
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
        """Everything bound, each once, in the order of first binding."""
        return self._by_destination.keys()

    def warn_missing_alternate(self) -> None:
        """Warns that its alternate does not exist: once, until its name is another one."""
        if self._missed_alternate != self.alternate:
            self._missed_alternate = self.alternate
            logger.warning(
                "alternate exchange '%s' of %s does not exist: what finds no queue is dropped",
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
