"""Upstreams: subscriptions of this hub at other hubs, by virtual host and name."""

from __future__ import annotations

import base64
from typing import Any

from starlette.responses import Response

from ....core.auth.authorization import to_publish
from ....core.errors import access_refused, not_found
from ....hub.upstream.upstream import Upstream, UpstreamLeases, UpstreamRequest
from ....hub.upstream.validation import DEFAULT_LEASE_S
from ...access.authorization import require_topic
from ...documents import hub, requests
from ...problems import Problem
from ...requests.paths import Target
from ...responses.times import rfc3339
from ..endpoint import find
from .body import Body
from .call import Call, answer
from .hub_capabilities import read_kind
from .lists import list_of, listing_of
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import GONE, SET, Operation, Routes


def described(upstream: Upstream) -> dict[str, Any]:
    """Returns the document of an upstream, without secrets and without callbacks, which are secret
    too: their holder could impersonate the other hub."""
    request, leases = upstream.request, upstream.leases
    lease = leases.current or leases.pending
    return {
        "vhost": upstream.vhost,
        "name": upstream.name,
        "owner": upstream.owner,
        "url": request.url,
        "hub": request.hub or None,
        "sink": {"type": request.kind, "name": request.sink},
        "routing_key": request.routing_key,
        "lease_seconds": request.lease_seconds,
        "signed": request.is_signed,
        "status": upstream.status.value,
        "reason": upstream.reason,
        "hub_url": lease and lease.hub_url,
        "self": lease and lease.topic,
        "expires_at": leases.current and rfc3339(leases.current.expires_at),
        "renew_at": rfc3339(upstream.renew_at),
    }


async def _list_all(call: Call) -> Response:
    """Lists the subscriptions of this hub at other hubs: the user's own; all for administrators."""
    return await listing_of(call, [described(one) for one in _visible(call)])


async def _list_in_vhost(call: Call) -> Response:
    """Lists the subscriptions at other hubs in a virtual host."""
    (vhost,) = call.names
    call.visible_vhost(vhost)
    found = [described(one) for one in _visible(call) if one.vhost == vhost]
    return await listing_of(call, found)


async def _get(call: Call) -> Response:
    """Returns a subscription at another hub, with its status and last error."""
    return answer(described(_find(call)))


async def _put(call: Call) -> Response:
    """Subscribes at another hub, into an exchange or queue. The body needs `url` and `sink`
    (`type`, `name`); it may have `hub`, `routing_key`, `lease_seconds`, `secret`, `username`
    and `password`.

    Answers 201 for a new one, else 204, before the other hub is contacted.
    """
    vhost, name = call.names
    call.own_vhost(vhost)
    body = await call.body()
    call.own_vhost(vhost)
    request, leases = _read_request(call, body), _read_secrets(body)
    await _check_sink(call, vhost, request)
    upstreams = call.context.hub.upstreams
    existing = upstreams.get(vhost, name)
    if existing is not None and not _is_visible(call, existing):
        raise access_refused(f"upstream '{name}' in vhost '{vhost}' belongs to another user")
    is_new = await upstreams.put(vhost, name, call.user.name, request, leases)
    return Response(status_code=201 if is_new else 204)


async def _delete(call: Call) -> Response:
    """Ends a subscription at another hub. The hub is asked to unsubscribe afterwards, until it has
    confirmed or the lease has ended."""
    found = _find(call)
    await call.context.hub.upstreams.remove(found.vhost, found.name)
    return Response(status_code=204)


def _read_request(call: Call, body: Body) -> UpstreamRequest:
    sink = body.inner("sink")
    return UpstreamRequest(
        url=body.text("url"),
        kind=read_kind(sink, "type"),
        sink=sink.text("name"),
        base_url=call.context.base_url(call.request),
        lease_seconds=body.integer("lease_seconds", DEFAULT_LEASE_S),
        hub=body.text("hub") if body.has("hub") else "",
        routing_key=body.text("routing_key") if body.has("routing_key") else None,
        is_signed=not body.is_false("secret"),
    )


def _read_secrets(body: Body) -> UpstreamLeases:
    has_secret = body.has("secret") and not body.is_false("secret")
    return UpstreamLeases(
        given_secret=body.text("secret") if has_secret else None,
        authorization=_read_credentials(body),
    )


def _read_credentials(body: Body) -> str | None:
    """Returns the Authorization value for topic and hub, from `username` and `password`."""
    if not body.has("username"):
        if body.has("password"):
            raise Problem(400, "key 'password' needs the key 'username'")
        return None
    name, password = body.text("username"), body.text("password")
    if ":" in name:
        raise Problem(400, "key 'username' must not contain a colon")
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


async def _check_sink(call: Call, vhost: str, request: UpstreamRequest) -> None:
    """Checks that the sink exists and the user may write to it; checked again for each delivery."""
    target = Target("endpoint", vhost, request.kind, request.sink)
    to_publish(call.user, vhost, target.kind, target.name)
    await find(call.context, target)
    if request.kind == "x" and request.routing_key is not None:
        user, engine = call.user, call.context.engine
        await require_topic(engine, user, "write", vhost, request.sink, request.routing_key)


def _find(call: Call) -> Upstream:
    """Returns the upstream in the path; raises `ChannelError` 404, for another user's upstream
    too."""
    vhost, name = call.names
    call.visible_vhost(vhost)
    found = call.context.hub.upstreams.get(vhost, name)
    if found is None or not _is_visible(call, found):
        raise not_found(f"no upstream '{name}' in vhost '{vhost}'")
    return found


def _visible(call: Call) -> list[Upstream]:
    return [one for one in call.context.hub.upstreams.all() if _is_visible(call, one)]


def _is_visible(call: Call, upstream: Upstream) -> bool:
    return ADMINISTRATOR.has(call.user) or upstream.owner == call.user.name


ROUTES: Routes = {
    "/hub/upstreams": {"GET": list_of(_list_all, MANAGEMENT, hub.Upstream)},
    "/hub/upstreams/{vhost}": {"GET": list_of(_list_in_vhost, MANAGEMENT, hub.Upstream)},
    "/hub/upstreams/{vhost}/{name}": {
        "GET": Operation(_get, MANAGEMENT, {200: hub.Upstream}),
        "PUT": Operation(_put, MANAGEMENT, SET, requests.Upstream),
        "DELETE": Operation(_delete, MANAGEMENT, GONE),
    },
}
