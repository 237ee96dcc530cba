"""URLs that let their holder post to a resource: made, listed and revoked here."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from ....core.auth.authorization import to_publish
from ....core.errors import not_found
from ....hub.capabilities.capability import Capability
from ....hub.requests import Kind
from ...paths import CAPABILITY_PATH, Target
from ...problems import Problem
from ...times import rfc3339
from ..endpoint import find
from .body import Body
from .call import Call, answer
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import Routes

KINDS: dict[str, Kind] = {"x": "x", "q": "q"}


def described(capability: Capability) -> dict[str, Any]:
    """Without the secret, which nobody has but who got the URL."""
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
    """URLs that let their holder post to a resource: the user's, or all to an administrator."""
    found = (one for one in call.context.hub.capabilities.all() if _is_visible(call, one))
    return answer([described(one) for one in found])


async def _get(call: Call) -> Response:
    """What one permits, without its URL."""
    return answer(described(_find(call)))


async def _make(call: Call) -> Response:
    """Makes a URL that lets its holder post to a resource; it is shown this once. The body needs
    `vhost`, `type` (x or q) and `name`; it may have `expires_in_s`, `routing_key` and `note`.

    Who makes it needs write on the resource.
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
    shown = {"id": made.id, "url": base_url + CAPABILITY_PATH + secret}
    return JSONResponse(shown, 201, headers=headers)


async def _revoke(call: Call) -> Response:
    """Makes the URL invalid for good."""
    await call.context.hub.capabilities.revoke(_find(call))
    return Response(status_code=204)


def _find(call: Call) -> Capability:
    """One of another user is as one that is not there."""
    found = call.context.hub.capabilities.get(*call.names)
    if found is None or not _is_visible(call, found):
        raise not_found(f"no capability '{call.names[0]}'")
    return found


def _is_visible(call: Call, capability: Capability) -> bool:
    return ADMINISTRATOR.has(call.user) or capability.owner == call.user.name


def read_kind(body: Body, key: str) -> Kind:
    """Raises `Problem` 400 for anything but `x` and `q`."""
    kind = KINDS.get(body.text(key))
    if kind is None:
        raise Problem(400, f"key '{key}' has to be x for an exchange or q for a queue")
    return kind


ROUTES: Routes = {
    "/hub/capabilities": {"GET": (_list, MANAGEMENT), "POST": (_make, MANAGEMENT)},
    "/hub/capabilities/{id}": {"GET": (_get, MANAGEMENT), "DELETE": (_revoke, MANAGEMENT)},
}
