"""Resolves the queues of a message, over bindings between exchanges and alternate exchanges.

Each exchange is visited once, so cycles end, and each queue gets one copy however many bindings or
keys lead to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..message.model import FieldValue
from .delayed import delay_queue
from .exchange import Exchange
from .route import Destination, Route

Headers = Mapping[str, FieldValue] | None

ExchangeByName = Callable[[str], Exchange | None]


def resolve(
    exchange: Exchange,
    routing_keys: Sequence[str],
    headers: Headers,
    *,
    exchange_by_name: ExchangeByName,
    watched: bool = True,
) -> Route:
    """Returns the route of a message with these keys (several with CC and BCC) and headers.

    An exchange whose bindings match none of the keys passes the message to its alternate exchange,
    if that exists. The route is invalidated when an exchange on the way changes; a cache calls
    `release` on a route that it evicts. `watched=False` returns a route for a single use, which is
    never invalidated and needs no release.
    """
    alone = not (exchange.reaches_exchanges or exchange.delays) and exchange.persistence is None
    found = _match(exchange, routing_keys, headers) if alone else None
    if not found:
        return _walk(exchange, routing_keys, headers, exchange_by_name, watched)
    # Nearly all messages end here, and the walk would cost them a third more.
    route = Route(tuple(found), exchange.uses_key, exchange.uses_headers, exchange.each_message)
    if watched:
        route.watch((exchange,))
    return route


def _walk(
    exchange: Exchange,
    routing_keys: Sequence[str],
    headers: Headers,
    exchange_by_name: ExchangeByName,
    watched: bool,
) -> Route:
    queues: dict[Destination, None] = {}
    visited = {exchange}
    to_visit = [exchange]
    for current in to_visit:
        for onward in _visit(current, routing_keys, headers, exchange_by_name, queues):
            if onward not in visited:
                visited.add(onward)
                to_visit.append(onward)
    route = Route(
        tuple(queues),
        any(passed.uses_key for passed in to_visit),
        any(passed.uses_headers or passed.delays for passed in to_visit),
        any(passed.each_message or passed.delays for passed in to_visit),
    )
    if watched:
        route.watch(to_visit)
    return route


def _visit(
    exchange: Exchange,
    routing_keys: Sequence[str],
    headers: Headers,
    exchange_by_name: ExchangeByName,
    queues: dict[Destination, None],
) -> Iterable[Exchange]:
    """Adds the queues of one exchange to `queues`; returns the exchanges to visit next."""
    if exchange.delays:
        waiting = delay_queue(exchange, headers)
        if waiting is not None and not waiting.deleted:
            queues[waiting] = None
            return ()
    stored = exchange.history_queue(headers)
    if stored is not None:
        queues[stored] = None
    found = _match(exchange, routing_keys, headers)
    if not found:
        return _alternate(exchange, exchange_by_name)
    if not exchange.reaches_exchanges:
        queues.update(found)
        return ()
    queues.update(item for item in found.items() if not isinstance(item[0], Exchange))
    return [destination for destination in found if isinstance(destination, Exchange)]


def _alternate(exchange: Exchange, exchange_by_name: ExchangeByName) -> Iterable[Exchange]:
    if exchange.alternate is None:
        return ()
    alternate = exchange_by_name(exchange.alternate)
    if alternate is None:
        exchange.warn_missing_alternate()
        return ()
    return (alternate,)


def _match(
    exchange: Exchange, routing_keys: Sequence[str], headers: Headers
) -> dict[Destination, None]:
    if len(routing_keys) == 1 or not exchange.uses_key or exchange.one_key:
        return {one: None for one in exchange.match(routing_keys[0], headers) if not one.deleted}
    return {
        one: None
        for routing_key in routing_keys
        for one in exchange.match(routing_key, headers)
        if not one.deleted
    }
