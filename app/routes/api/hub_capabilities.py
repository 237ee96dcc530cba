"""Capabilities: creates, lists and revokes URLs whose holder may publish to one resource."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from ....core.auth.authorization import to_publish
from ....core.errors import not_found
from ....hub.capabilities.capability import Capability
from ....hub.requests import Kind
from ...documents import hub, requests
from ...problems import Problem
from ...requests.paths import CAPABILITY_PATH, Target
from ...responses.times import rfc3339
from ..endpoint import find
from .body import Body
from .call import Call, answer
from .lists import list_of, listing_of
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import GONE, Operation, Routes

KINDS: dict[str, Kind] = {"x": "x", "q": "q"}


def described(capability: Capability) -> dict[str, Any]:
    """Returns the document of a capability, without its secret, which is shown once only."""
    resource = capability.resource
    return {
        "id": capability.id,
        "vhost": resource.vhost,
        "type": resource.kind,
        "name": resource.name,
        "routing_key": capability.routing_key,
        "owner": capability.owner,
        "note": capability.note,
        "made_at": rfc3339(capability.made_at),
        "expires_at": rfc3339(capability.expires_at),
    }


async def _list(call: Call) -> Response:
    """Lists the user's capability URLs; all for administrators."""
    found = (one for one in call.context.hub.capabilities.all() if _is_visible(call, one))
    return await listing_of(call, [described(one) for one in found])


async def _get(call: Call) -> Response:
    """Returns a capability, without its URL."""
    return answer(described(_find(call)))


async def _create(call: Call) -> Response:
    """Creates a URL whose holder may publish to a resource; it is shown only once. The body needs
    `vhost`, `type` (x or q) and `name`; it may have `expires_in_s`, `routing_key` and `note`.

    The user needs write permission on the resource.
    """
    body = await call.body()
    vhost = body.text("vhost")
    target = Target("endpoint", vhost, read_kind(body, "type"), body.text("name"))
    call.own_vhost(vhost)
    to_publish(call.user, vhost, target.kind, target.name)
    await find(call.context, target)
    made, secret = await call.context.hub.capabilities.make(
        target.resource(),
        call.user.name,
        expires_in_s=body.integer("expires_in_s") if body.has("expires_in_s") else None,
        routing_key=body.text("routing_key") if body.has("routing_key") else None,
        note=body.text("note") if body.has("note") else "",
    )
    base_url = call.context.base_url(call.request)
    location = f"{base_url}/api/hub/capabilities/{made.id}"
    headers = {"Cache-Control": "no-store", "Location": location}
    created = {"id": made.id, "url": base_url + CAPABILITY_PATH + secret}
    return JSONResponse(created, 201, headers=headers)


async def _revoke(call: Call) -> Response:
    """Revokes the URL permanently."""
    await call.context.hub.capabilities.revoke(_find(call))
    return Response(status_code=204)


def _find(call: Call) -> Capability:
    """Returns the capability in the path; raises `ChannelError` 404, for another user's capability
    too."""
    found = call.context.hub.capabilities.get(*call.names)
    if found is None or not _is_visible(call, found):
        raise not_found(f"no capability '{call.names[0]}'")
    return found


def _is_visible(call: Call, capability: Capability) -> bool:
    return ADMINISTRATOR.has(call.user) or capability.owner == call.user.name


def read_kind(body: Body, key: str) -> Kind:
    """Returns the kind of a resource; raises `Problem` 400 for anything but `x` and `q`."""
    kind = KINDS.get(body.text(key))
    if kind is None:
        raise Problem(400, f"key '{key}' must be x for an exchange or q for a queue")
    return kind


ROUTES: Routes = {
    "/hub/capabilities": {
        "GET": list_of(_list, MANAGEMENT, hub.Capability),
        "POST": Operation(_create, MANAGEMENT, {201: hub.MadeCapability}, requests.Capability),
    },
    "/hub/capabilities/{id}": {
        "GET": Operation(_get, MANAGEMENT, {200: hub.Capability}),
        "DELETE": Operation(_revoke, MANAGEMENT, GONE),
    },
}
