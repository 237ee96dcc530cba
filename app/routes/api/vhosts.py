"""Virtual hosts: `/vhosts`."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from ....core.message.model import FieldValue, Table
from ....core.vhost import VirtualHost
from ....core.vhosts import delete_vhost, put_vhost
from ...problems import Problem
from .body import Body
from .call import Call, answer
from .required_tags import ADMINISTRATOR, MANAGEMENT, sees
from .route import Routes

_DEFAULT_TYPE = "default_queue_type"
_PROTECTED = "protected_from_deletion"
_TYPES = ("classic", "quorum", "stream")
_ALL = ".*"


async def list_vhosts(call: Call) -> Response:
    vhosts = call.broker.vhosts.values()
    return answer([described(vhost) for vhost in vhosts if sees(call.user, vhost.name)])


async def get_vhost(call: Call) -> Response:
    return answer(described(call.visible_vhost(*call.names)))


def described(vhost: VirtualHost) -> dict[str, Any]:
    properties = vhost.properties
    known = {
        "description": properties.get("description", ""),
        "tags": properties.get("tags", []),
        _DEFAULT_TYPE: properties.get(_DEFAULT_TYPE, "classic"),
        _PROTECTED: properties.get(_PROTECTED, False),
    }
    return {"name": vhost.name, **known, "metadata": known, "tracing": False}


async def put(call: Call) -> Response:
    """What the body does not say stays as it is. Whoever makes a virtual host may use it."""
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
    said: dict[str, FieldValue] = {}
    if "description" in body:
        said["description"] = body.text("description")
    if "tags" in body:
        tags: list[FieldValue] = [*body.names("tags")]
        said["tags"] = tags
    if _DEFAULT_TYPE in body:
        said[_DEFAULT_TYPE] = _queue_type(body.text(_DEFAULT_TYPE))
    if _PROTECTED in body:
        said[_PROTECTED] = body.flag(_PROTECTED)
    return {name: value for name, value in {**before, **said}.items() if value}


def _queue_type(found: str) -> str:
    """Empty for the one that queues have anyway."""
    if found not in ("", "undefined", *_TYPES):
        raise Problem(400, f"{_DEFAULT_TYPE} is '{found}', it can be {', '.join(_TYPES)}")
    return "" if found in ("undefined", "classic") else found


async def delete(call: Call) -> Response:
    (name,) = call.names
    if call.vhost(name).properties.get(_PROTECTED):
        raise Problem(412, f"vhost '{name}' is protected from deletion: take that away first")
    ended = asyncio.Event()
    delete_vhost(call.broker, name, ended.set)
    await ended.wait()
    if name in call.broker.ending:
        raise Problem(500, f"vhost '{name}' could not be deleted: see the log of the server")
    return await call.done()


async def protect(call: Call) -> Response:
    return await _set_protection(call, True)


async def unprotect(call: Call) -> Response:
    return await _set_protection(call, False)


async def _set_protection(call: Call, value: bool) -> Response:
    vhost = call.vhost(*call.names)
    properties = {**vhost.properties, _PROTECTED: value}
    if not value:
        del properties[_PROTECTED]
    put_vhost(call.broker, vhost.name, properties)
    return await call.done()


ROUTES: Routes = {
    "/vhosts": {"GET": (list_vhosts, MANAGEMENT)},
    "/vhosts/{vhost}": {
        "GET": (get_vhost, MANAGEMENT),
        "PUT": (put, ADMINISTRATOR),
        "DELETE": (delete, ADMINISTRATOR),
    },
    "/vhosts/{vhost}/deletion/protection": {
        "POST": (protect, ADMINISTRATOR),
        "DELETE": (unprotect, ADMINISTRATOR),
    },
}
