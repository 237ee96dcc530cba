"""The delayed message exchange: a message is routed after the delay in its header `x-delay`.

Bindings and routing are those of the type in its argument `x-delayed-type`; a delayed message goes
to the exchange's delay queue instead (core/queue/delay.py). So confirms, mandatory, transactions
and crashes work as for any other publish.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Self, cast

from ..errors import precondition_failed
from ..message.equivalence import resource, shown, type_name
from ..message.model import FieldValue
from ..wire.delay import DELAY, wait_ms
from .binding import Destination
from .exchange import Exchange
from .registry import exchange_types, register

DELAYED_TYPE = "x-delayed-type"


@register
class DelayedExchange(Exchange):
    """An exchange that delays messages; its class inherits from this and the type it delays.

    Raises `ChannelError` 406 if `x-delayed-type` is not a type that can be delayed, and in `match`
    if `x-delay` is not a number of milliseconds.
    """

    __slots__ = ()

    type_name = "x-delayed-message"
    own_arguments = frozenset({DELAYED_TYPE})
    uses_headers = True
    each_message = True
    inner_kind = "delay"

    def __new__(cls, name: str, **properties: Any) -> Self:
        if cls is not DelayedExchange:
            return super().__new__(cls)
        where = resource("exchange", name, properties.get("vhost", "/"))
        made = _delaying(_delayed_type(where, properties["arguments"]))
        return super().__new__(cast("type[Self]", made))

    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        if headers is not None and DELAY in headers and self._waits(headers[DELAY]):
            return () if self.inner is None else (self.inner,)
        return super().match(routing_key, headers)  # type: ignore[safe-super]

    def _waits(self, value: FieldValue) -> bool:
        try:
            return wait_ms(value) > 0
        except ValueError as error:
            raise precondition_failed(
                f"invalid header '{DELAY}' {shown(value)!r} of type {type_name(value)} for "
                f"{resource('exchange', self.name, self.vhost)}: {error}"
            ) from None


def _delayed_type(where: str, arguments: Mapping[str, FieldValue]) -> type[Exchange]:
    name = arguments.get(DELAYED_TYPE)
    found = exchange_types.get(name) if isinstance(name, str) else None
    if found is None or found.inner_kind is not None:
        given = "nothing" if name is None else f"'{shown(name)}'"
        known = sorted(name for name, kind in exchange_types.items() if kind.inner_kind is None)
        raise precondition_failed(
            f"invalid arg '{DELAYED_TYPE}' for {where}: {given} given, it must be one of "
            f"{', '.join(known)}"
        )
    return found


@cache
def _delaying(delayed: type[Exchange]) -> type[DelayedExchange]:
    return type(f"Delayed{delayed.__name__}", (DelayedExchange, delayed), {"__slots__": ()})
