"""Virtual hosts: `/vhosts`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from ....core.message.model import FieldValue, Table
from ....core.vhost import VirtualHost
from ....core.vhosts import delete_vhost, put_vhost
from ...documents import objects, requests
from ...problems import Problem
from ...totals import Totals
from .body import Body
from .call import Call, answer
from .lists import ListSpec, list_of, listing
from .required_tags import ADMINISTRATOR, MANAGEMENT, sees
from .route import GONE, SET, Operation, Routes
from .view import STATISTICS_QUERY, View

_DEFAULT_TYPE = "default_queue_type"
_PROTECTED = "protected_from_deletion"
_TYPES = ("classic", "quorum", "stream")
_ALL = ".*"


async def list_vhosts(call: Call) -> Response:
    """Lists the virtual hosts that the user sees, with the messages in them."""
    vhosts = [one for one in call.broker.vhosts.values() if sees(call.user, one.name)]
    view, totals = View.of(call.request.query_params, call.broker), await _totals(call)
    kind = ListSpec[VirtualHost](
        lambda vhost: vhost.name,
        lambda vhost: vhost.name,
        lambda vhost: _with_figures(vhost, call, view, totals),
    )
    return await listing(call, vhosts, kind)


async def get_vhost(call: Call) -> Response:
    """Returns a virtual host with the messages in it."""
    vhost = call.visible_vhost(*call.names)
    view = View.of(call.request.query_params, call.broker)
    return answer(_with_figures(vhost, call, view, await _totals(call)))


async def _totals(call: Call) -> Mapping[str, Totals]:
    return await call.context.node.totals.read(call.broker)


def _with_figures(
    vhost: VirtualHost, call: Call, view: View, totals: Mapping[str, Totals]
) -> dict[str, Any]:
    found = _described(vhost) | {"cluster_state": {call.context.node.name: "running"}}
    if view.shows_lengths:
        own = totals.get(vhost.name, Totals())
        rate = call.context.node.totals.rate
        found |= {
            "messages": own.messages,
            "messages_details": {"rate": rate([vhost.name], "messages")},
            "messages_ready": own.ready,
            "messages_ready_details": {"rate": rate([vhost.name], "ready")},
            "messages_unacknowledged": own.unacknowledged,
            "messages_unacknowledged_details": {"rate": rate([vhost.name], "unacknowledged")},
        }
    if view.shows_all:
        counters = call.broker.statistics.vhost(vhost.name)
        found["message_stats"] = view.message_stats(counters)
    return found


def _described(vhost: VirtualHost) -> dict[str, Any]:
    properties = vhost.properties
    known = {
        "description": properties.get("description", ""),
        "tags": properties.get("tags", []),
        _DEFAULT_TYPE: properties.get(_DEFAULT_TYPE, "classic"),
        _PROTECTED: properties.get(_PROTECTED, False),
    }
    return {"name": vhost.name, **known, "metadata": known, "tracing": False}


async def put(call: Call) -> Response:
    """Creates or changes a virtual host; properties missing from the body stay as they are.

    A new one gives its creator all permissions.
    """
    (name,) = call.names
    body = await call.body()
    found = call.broker.vhosts.get(name)
    properties = _properties(body, {} if found is None else found.properties)
    with call.broker.store.together():
        is_new = put_vhost(call.broker, name, properties)
        if is_new:
            call.broker.users.set_permissions(call.user.name, name, _ALL, _ALL, _ALL)
    return await call.done(is_new=is_new)


def _properties(body: Body, before: Table) -> Table:
    if body.flag("tracing"):
        raise Problem(400, "tracing of a vhost is not supported")
    given: dict[str, FieldValue] = {}
    if "description" in body:
        given["description"] = body.text("description")
    if "tags" in body:
        tags: list[FieldValue] = [*body.names("tags")]
        given["tags"] = tags
    if _DEFAULT_TYPE in body:
        given[_DEFAULT_TYPE] = _queue_type(body.text(_DEFAULT_TYPE))
    if _PROTECTED in body:
        given[_PROTECTED] = body.flag(_PROTECTED)
    return {name: value for name, value in {**before, **given}.items() if value}


def _queue_type(found: str) -> str:
    """Returns an empty text for the default, classic."""
    if found not in ("", "undefined", *_TYPES):
        raise Problem(400, f"{_DEFAULT_TYPE} is '{found}', it can be {', '.join(_TYPES)}")
    return "" if found in ("undefined", "classic") else found


async def delete(call: Call) -> Response:
    """Deletes a virtual host with its queues, messages, exchanges, permissions and subscriptions.
    412 while it is protected from deletion."""
    (name,) = call.names
    if call.vhost(name).properties.get(_PROTECTED):
        raise Problem(412, f"vhost '{name}' is protected from deletion: remove that first")
    ended = asyncio.Event()
    delete_vhost(call.broker, name, ended.set)
    await ended.wait()
    if name in call.broker.ending:
        raise Problem(500, f"vhost '{name}' could not be deleted: see the log of the server")
    return await call.done()


async def protect(call: Call) -> Response:
    """Protects a virtual host from deletion."""
    return await _set_protection(call, True)


async def unprotect(call: Call) -> Response:
    """Ends the protection of a virtual host from deletion."""
    return await _set_protection(call, False)


async def _set_protection(call: Call, value: bool) -> Response:
    vhost = call.vhost(*call.names)
    properties = {**vhost.properties, _PROTECTED: value}
    if not value:
        del properties[_PROTECTED]
    put_vhost(call.broker, vhost.name, properties)
    return await call.done()


ROUTES: Routes = {
    "/vhosts": {"GET": list_of(list_vhosts, MANAGEMENT, objects.VirtualHost)},
    "/vhosts/{vhost}": {
        "GET": Operation(get_vhost, MANAGEMENT, {200: objects.VirtualHost}, query=STATISTICS_QUERY),
        "PUT": Operation(put, ADMINISTRATOR, SET, requests.Vhost),
        "DELETE": Operation(delete, ADMINISTRATOR, GONE),
    },
    "/vhosts/{vhost}/deletion/protection": {
        "POST": Operation(protect, ADMINISTRATOR, GONE),
        "DELETE": Operation(unprotect, ADMINISTRATOR, GONE),
    },
}
