"""Bindings: `/bindings`, and those of an exchange or queue.

The filter `name` of a list looks for a part of source, destination or routing key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal
from urllib.parse import quote, unquote

from starlette.responses import Response

from ....core.auth.authorization import to_bind
from ....core.errors import not_found
from ....core.queue.queue import Queue
from ....core.route.exchange import Exchange
from ....core.vhost import VirtualHost
from ....hub.engine.port import BindingSpec
from ...documents import objects, requests
from ...requests.properties import short_string
from .binding_json import ListedBinding, binding_json, default_binding, properties_key
from .call import Call, answer
from .declared import arguments_of
from .exchanges import DEFAULT_NAME
from .lists import ListSpec, gathered, list_of, listing, released
from .own_objects import subscription_of
from .required_tags import MANAGEMENT, sees
from .route import GONE, Handler, Operation, Routes

Kind = Literal["queue", "exchange"]


def _source(one: ListedBinding) -> str:
    return "" if one.source is None else one.source.name


async def _listed(call: Call, found: Iterable[ListedBinding]) -> Response:
    kind = ListSpec[ListedBinding](
        lambda one: f"{_source(one)} {one.binding.destination.name} {one.binding.routing_key}",
        lambda one: (_source(one), one.binding.destination.name, one.binding.routing_key),
        lambda one: {**binding_json(one), **subscription_of(call, one.binding.destination.name)},
    )
    rows = await gathered(found)
    response = await listing(call, rows, kind)
    await released(rows)
    return response


# -- lists


async def list_all(call: Call) -> Response:
    """Lists all bindings, those to the default exchange included."""
    vhosts = [one for one in call.broker.vhosts.values() if sees(call.user, one.name)]
    return await _list_of(call, vhosts)


async def list_in_vhost(call: Call) -> Response:
    """Lists the bindings in a virtual host, those to the default exchange included."""
    return await _list_of(call, [call.visible_vhost(*call.names)])


async def _list_of(call: Call, vhosts: Iterable[VirtualHost]) -> Response:
    return await _listed(call, chain.from_iterable(map(_in, vhosts)))


def _in(vhost: VirtualHost) -> Iterator[ListedBinding]:
    """Yields the bindings in a virtual host."""
    yield from map(default_binding, tuple(vhost.queues.values()))
    for exchange in tuple(vhost.exchanges.values()):
        yield from _from(exchange)


def _from(exchange: Exchange) -> Iterator[ListedBinding]:
    """Yields the bindings from an exchange; others may be made or removed meanwhile."""
    for destination in tuple(exchange.destinations):
        for binding in tuple(exchange.bindings_to(destination)):
            yield ListedBinding(exchange, binding)


async def list_of_queue(call: Call) -> Response:
    """Lists the bindings to a queue."""
    vhost_name, name = call.names
    vhost = call.visible_vhost(vhost_name)
    queue = vhost.queues.get(name) or vhost.queue(name)
    sources = tuple(queue.bound or ())
    found = [ListedBinding(one, binding) for one in sources for binding in one.bindings_to(queue)]
    return await _listed(call, [default_binding(queue), *found])


async def list_from_exchange(call: Call) -> Response:
    """Lists the bindings of which the exchange is the source."""
    vhost_name, name = call.names
    vhost = call.visible_vhost(vhost_name)
    if name == DEFAULT_NAME:
        return await _listed(call, map(default_binding, tuple(vhost.queues.values())))
    return await _listed(call, _from(vhost.exchange(name)))


async def list_to_exchange(call: Call) -> Response:
    """Lists the bindings of which the exchange is the destination."""
    vhost_name, name = call.names
    vhost = call.visible_vhost(vhost_name)
    if name == DEFAULT_NAME:
        return answer([])
    exchange = vhost.exchange(name)
    found = [
        ListedBinding(source, binding)
        for source in exchange.incoming
        for binding in source.bindings_to(exchange)
    ]
    return await _listed(call, found)


# -- the bindings between two ends


def _ends(call: Call, vhost: VirtualHost, kind: Kind) -> tuple[Exchange | None, Queue | Exchange]:
    """Returns source and destination in the path; raises `ChannelError` 404 unless both exist."""
    source, destination = call.names[1:3]
    found = vhost.queue(destination) if kind == "queue" else vhost.exchange(destination)
    return None if source == DEFAULT_NAME else vhost.exchange(source), found


def _between(call: Call, kind: Kind) -> list[ListedBinding]:
    source, destination = _ends(call, call.own_vhost(call.names[0]), kind)
    if source is None:
        return [default_binding(destination)] if isinstance(destination, Queue) else []
    return [ListedBinding(source, binding) for binding in source.bindings_to(destination)]


def _one(call: Call, kind: Kind) -> ListedBinding:
    """Returns the binding with the key in the path. Raises `ChannelError` 404."""
    key = call.names[3]
    for bound in _between(call, kind):
        own = properties_key(bound.binding.routing_key, bound.binding.arguments)
        if key in (own, _decoded(own)):
            return bound
    raise not_found(f"no binding '{key}' between '{call.names[1]}' and {kind} '{call.names[2]}'")


def _decoded(key: str) -> str:
    """Returns a key decoded once more. The path is decoded already; a key in it may be encoded
    twice."""
    return unquote(key)


def _handlers(kind: Kind) -> dict[str, Handler]:
    async def list_between(call: Call) -> Response:
        """Lists the bindings between two ends."""
        return await _listed(call, _between(call, kind))

    async def add(call: Call) -> Response:
        """Binds; a binding that is there already is no error."""
        vhost, source, destination = call.names
        call.own_vhost(vhost)
        body = await call.body()
        key = short_string("routing_key", body.text("routing_key")) if "routing_key" in body else ""
        arguments = arguments_of(body)
        host = call.own_vhost(vhost)
        host.refuse_default("" if source == DEFAULT_NAME else source)
        to_bind(call.user, host, source, kind, destination, key)
        spec = BindingSpec(source, destination, kind == "queue", key, arguments)
        await call.context.engine.bind(vhost, spec)
        response = await call.done(is_new=True)
        # Relative to the path that was posted to.
        own = quote(properties_key(key, arguments), safe="")
        response.headers["Location"] = f"{quote(destination, safe='')}/{own}"
        return response

    async def get(call: Call) -> Response:
        """Returns a binding by its `properties_key`."""
        return answer(binding_json(_one(call, kind)))

    async def remove(call: Call) -> Response:
        """Removes a binding."""
        source, binding = _one(call, kind)
        vhost, _, destination, _ = call.names
        host = call.own_vhost(vhost)
        host.refuse_default("" if source is None else source.name)
        name = call.names[1]
        to_bind(call.user, host, name, kind, destination, binding.routing_key)
        key, arguments = binding.routing_key, binding.arguments
        spec = BindingSpec(name, destination, kind == "queue", key, arguments)
        await call.context.engine.unbind(vhost, spec)
        return await call.done()

    return {"list": list_between, "add": add, "get": get, "remove": remove}


def _routes(letter: str, kind: Kind) -> Routes:
    handlers = _handlers(kind)
    path = f"/bindings/{{vhost}}/e/{{source}}/{letter}/{{destination}}"
    return {
        path: {
            "GET": list_of(handlers["list"], MANAGEMENT, objects.Binding),
            "POST": Operation(handlers["add"], MANAGEMENT, {201: None}, requests.Binding),
        },
        path + "/{key}": {
            "GET": Operation(handlers["get"], MANAGEMENT, {200: objects.Binding}),
            "DELETE": Operation(handlers["remove"], MANAGEMENT, GONE),
        },
    }


ROUTES: Routes = {
    "/bindings": {"GET": list_of(list_all, MANAGEMENT, objects.Binding)},
    "/bindings/{vhost}": {"GET": list_of(list_in_vhost, MANAGEMENT, objects.Binding)},
    "/queues/{vhost}/{queue}/bindings": {
        "GET": list_of(list_of_queue, MANAGEMENT, objects.Binding)
    },
    "/exchanges/{vhost}/{exchange}/bindings/source": {
        "GET": list_of(list_from_exchange, MANAGEMENT, objects.Binding)
    },
    "/exchanges/{vhost}/{exchange}/bindings/destination": {
        "GET": list_of(list_to_exchange, MANAGEMENT, objects.Binding)
    },
    **_routes("q", "queue"),
    **_routes("e", "exchange"),
}
