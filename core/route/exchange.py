"""What all exchanges share: identity, bindings, and the routes that a change ends.

A type adds how a message is matched, by `match`, `attach`, `detach` and, if its bindings have
rules, `check`. Nothing here scans all bindings except what must list them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, NotRequired, Protocol, TypedDict

from ..equivalence import resource, type_name
from ..errors import precondition_failed
from ..model import FieldValue, Table
from .binding import Binding, Destination, GroupedBindings
from .route import Watched

__all__ = [
    "ALTERNATE_EXCHANGE",
    "Binding",
    "BindingKeeper",
    "Destination",
    "Exchange",
    "ExchangeProperties",
]

ALTERNATE_EXCHANGE = "alternate-exchange"

MAX_NAME_BYTES = 255
"""A name travels as a short string (AMQP 0-9-1 4.2.5.3)."""

_NOT_BUILT = ("x-persist-messages", "x-persist-ms")
"""Known elsewhere; to accept one and not keep messages would lose them."""


class ExchangeProperties(TypedDict):
    """What an exchange is declared with, besides its name and type."""

    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Table
    vhost: NotRequired[str]


class BindingKeeper(Protocol):
    """Whoever makes bindings outlive the process."""

    def binding_key(self, source: Exchange, binding: Binding) -> bytes | None:
        """What it is kept under, None if it is not. Raises `ChannelError` 406 if it can't be."""

    def bound(self, key: bytes) -> None: ...
    def unbound(self, source: Exchange, bindings: Iterable[Binding]) -> None: ...


class Exchange(Watched, ABC):
    """A place to publish to (AMQP 0-9-1 1.6.2); raises `ChannelError` 406 on bad arguments.

    Whoever makes an exchange appear or vanish calls `changed` on those whose `alternate` is its
    name; `alternate` may be set anew, followed by `changed`.
    """

    __slots__ = (
        "_by_destination",
        "_exchange_destinations",
        "_incoming",
        "alternate",
        "arguments",
        "auto_delete",
        "binding_count",
        "durable",
        "internal",
        "keeper",
        "name",
        "vhost",
    )  # fmt: skip

    type_name: ClassVar[str]
    uses_key: ClassVar[bool]
    """False: any key gives the same answer."""
    uses_headers: ClassVar[bool] = False

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
        self.name = name
        self.vhost = vhost
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments = arguments
        self.alternate = self._alternate()
        self.keeper: BindingKeeper | None = None
        """Hears of bindings that come and go; only durable exchanges have one."""
        self.binding_count = 0
        self._by_destination: GroupedBindings[Destination] = GroupedBindings()
        self._incoming: dict[Exchange, None] | None = None
        self._exchange_destinations = 0
        self._refuse_not_built()

    @abstractmethod
    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        """The destinations of a message; one may come more than once."""

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

    def unbind(self, destination: Destination, routing_key: str, arguments: Table) -> bool:
        """True if there was such a binding; there need not be one (AMQP 0-9-1 1.7.2.5)."""
        wanted = Binding(destination, routing_key, arguments)
        binding = self._by_destination.discard(destination, wanted)
        if binding is None:
            return False
        self._forget(destination, (binding,))
        return True

    def unbind_all(self, destination: Destination) -> int:
        """Takes away every binding to one destination; gives how many there were."""
        bindings = tuple(self._by_destination.pop(destination))
        if bindings:
            self._forget(destination, bindings)
        return len(bindings)

    def clear(self) -> None:
        """Takes away every binding from this exchange and ends its routes: it is going away."""
        for destination in tuple(self._by_destination.keys()):
            self.unbind_all(destination)
        self.changed()

    def bindings(self) -> Iterator[Binding]:
        """All bindings from this exchange, those to one destination together."""
        return iter(self._by_destination)

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

    def _forget(self, destination: Destination, bindings: tuple[Binding, ...]) -> None:
        for binding in bindings:
            self.detach(binding)
        self.binding_count -= len(bindings)
        if isinstance(destination, Exchange) and destination not in self._by_destination:
            self._unlink(destination)
        self.changed()
        if self.keeper is not None:
            self.keeper.unbound(self, bindings)

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
        if ALTERNATE_EXCHANGE not in self.arguments:
            return None
        name = self.arguments[ALTERNATE_EXCHANGE]
        where = resource("exchange", self.name, self.vhost)
        if not isinstance(name, str):
            raise precondition_failed(
                f"invalid type '{type_name(name)}' for arg '{ALTERNATE_EXCHANGE}' in {where}"
            )
        if len(name.encode()) > MAX_NAME_BYTES or "\r" in name or "\n" in name:
            raise precondition_failed(
                f"invalid arg '{ALTERNATE_EXCHANGE}' for {where}: not the name of an exchange"
            )
        return name

    def _refuse_not_built(self) -> None:
        for argument in _NOT_BUILT:
            if argument in self.arguments:
                raise precondition_failed(
                    f"argument '{argument}' of {resource('exchange', self.name, self.vhost)} "
                    f"is not supported"
                )
