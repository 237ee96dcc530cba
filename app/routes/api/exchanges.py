"""Exchanges: `/exchanges`; the default one is called `amq.default` in paths."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from starlette.responses import Response

from ....core.auth.authorization import to_declare, to_delete
from ....core.route.exchange import Exchange
from ....core.route.registry import check_type
from ....core.vhost import VirtualHost
from ....hub.engine.port import ExchangeSpec
from ...definitions.values import table_to_json
from ...documents import objects, requests
from ...requests.properties import short_string
from .call import Call, answer
from .declared import arguments_of, check_new_name
from .lists import ListSpec, gathered, list_of, listing
from .message_stats import EXCHANGE_NAMES
from .own_objects import WITHOUT_HUB, shown_in
from .queue_json import policy_fields
from .required_tags import MANAGEMENT, sees
from .route import GONE, SET, Operation, Routes
from .view import STATISTICS_QUERY, View

DEFAULT_NAME: Final = "amq.default"
Row = tuple[VirtualHost, Exchange | None]
"""An exchange with its virtual host; None for the default exchange."""


async def list_all(call: Call) -> Response:
    """Lists the exchanges of all virtual hosts that the user sees."""
    vhosts = [one for one in call.broker.vhosts.values() if sees(call.user, one.name)]
    return await _listed(call, vhosts)


async def list_in_vhost(call: Call) -> Response:
    """Lists the exchanges of a virtual host."""
    return await _listed(call, [call.visible_vhost(*call.names)])


async def _listed(call: Call, vhosts: Iterable[VirtualHost]) -> Response:
    view = View.of(call.request.query_params, call.broker)
    is_shown = shown_in(call)
    rows: list[Row] = await gathered(
        (vhost, exchange)
        for vhost in vhosts
        for exchange in (None, *vhost.exchanges.values())
        if exchange is None or is_shown(exchange.name)
    )
    fields = {
        "name": _name,
        "vhost": lambda row: row[0].name,
        "type": lambda row: "direct" if row[1] is None else row[1].type_name,
    }
    kind = ListSpec[Row](
        _name,
        lambda row: (row[0].name, _name(row)),
        lambda row: exchange_json(*row, view),
        fields,
    )
    return await listing(call, rows, kind)


def _name(row: Row) -> str:
    return "" if row[1] is None else row[1].name


def exchange_json(vhost: VirtualHost, exchange: Exchange | None, view: View) -> dict[str, Any]:
    """Returns the document of an exchange, or of the default one."""
    statistics = view.broker.statistics
    counted = statistics.default_exchange(vhost.name) if exchange is None else exchange
    applied = None if exchange is None else vhost.policies.of(exchange)
    found = {
        "name": "" if exchange is None else exchange.name,
        "vhost": vhost.name,
        "type": "direct" if exchange is None else exchange.type_name,
        "durable": exchange is None or exchange.durable,
        "auto_delete": exchange is not None and exchange.auto_delete,
        "internal": exchange is not None and exchange.internal,
        "arguments": {} if exchange is None else table_to_json(exchange.arguments),
        **policy_fields(applied),
    }
    if view.shows_all:
        found["message_stats"] = view.message_stats(counted.counters, EXCHANGE_NAMES)
    return found


async def get(call: Call) -> Response:
    """Returns an exchange with its figures."""
    vhost_name, name = call.names
    vhost = call.visible_vhost(vhost_name)
    exchange = None if name == DEFAULT_NAME else vhost.exchange(name)
    view = View.of(call.request.query_params, call.broker)
    document = exchange_json(vhost, exchange, view) | {"incoming": [], "outgoing": []}
    return answer(document)


async def put(call: Call) -> Response:
    """Declares an exchange; a repeated declaration has to be equivalent."""
    vhost_name, name = call.names
    body = await call.body()
    short_string("name of the exchange", name)
    vhost = call.own_vhost(vhost_name)
    vhost.refuse_default("" if name == DEFAULT_NAME else name)
    spec = ExchangeSpec(
        name,
        body.text("type") if body.has("type") else "direct",
        durable=body.flag("durable"),
        auto_delete=body.flag("auto_delete"),
        internal=body.flag("internal"),
        arguments=arguments_of(body),
    )
    check_type(spec.type)
    is_new = name not in vhost.exchanges
    if is_new:
        check_new_name("exchange", name, vhost_name)
    to_declare(call.user, vhost_name, "exchange", name, spec.arguments, is_new=is_new)
    await call.context.engine.declare_exchange(vhost_name, spec)
    return await call.done(is_new=is_new)


async def delete(call: Call) -> Response:
    """Deletes an exchange; with `if-unused` only if nothing is bound to it."""
    vhost_name, name = call.names
    vhost = call.own_vhost(vhost_name)
    vhost.refuse_default("" if name == DEFAULT_NAME else name)
    exchange = vhost.exchange(name)
    to_delete(call.user, vhost_name, "exchange", name)
    if_unused = call.request.query_params.get("if-unused") == "true"
    await call.context.engine.delete_exchange(vhost_name, exchange.name, if_unused=if_unused)
    return await call.done()


ROUTES: Routes = {
    "/exchanges": {"GET": list_of(list_all, MANAGEMENT, objects.Exchange, WITHOUT_HUB)},
    "/exchanges/{vhost}": {
        "GET": list_of(list_in_vhost, MANAGEMENT, objects.Exchange, WITHOUT_HUB)
    },
    "/exchanges/{vhost}/{exchange}": {
        "GET": Operation(get, MANAGEMENT, {200: objects.SingleExchange}, query=STATISTICS_QUERY),
        "PUT": Operation(put, MANAGEMENT, SET, requests.Exchange),
        "DELETE": Operation(delete, MANAGEMENT, GONE),
    },
}
