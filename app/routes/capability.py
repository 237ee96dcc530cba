"""`/in/SECRET`: who knows the URL may publish to its resource, and confirm a hub's question.

It takes the place of credentials in a callback: another hub verifies it (GET) and delivers to
it (POST) as it does with any callback. The publish is that of `POST /endpoint`, in the name of
the user who made the capability and with that user's rights of the moment.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...core.auth import User
from ...core.auth.authorization import to_publish
from ...core.errors import access_refused
from ...hub.capabilities.capability import Capability
from ..access import require_vhost
from ..context import Context
from ..paths import Target
from ..problems import Problem
from ..properties import parse_query
from .publish import Permit, Publisher


async def capability(
    context: Context, publisher: Publisher, request: Request, secret: str
) -> Response:
    """Raises `Problem` 410 for a URL that is not valid, which ends a subscription that posts to
    it, and 403 while its maker may not write there."""
    match request.method:
        case "POST":
            return await _publish(context, publisher, request, secret)
        case "GET":
            return _confirm(context, request, secret)
    raise Problem(405, f"{request.method} is not possible here", headers={"Allow": "GET, POST"})


async def _publish(
    context: Context, publisher: Publisher, request: Request, secret: str
) -> Response:
    scope = request.scope
    mapped = publisher.mapped(scope["headers"])

    async def permit(_: bytes | None) -> Permit:
        found = _find(context, secret)
        user, target = _maker(context, found), _target(found)
        return Permit(user, target, scope["query_string"], mapped, found.routing_key)

    headers, body = await publisher.publish_as(permit, request.receive)
    return Response(body, 202, headers={name.decode(): value.decode() for name, value in headers})


def _confirm(context: Context, request: Request, secret: str) -> Response:
    """The challenge, for whoever made the URL known to a hub wants what is delivered to it."""
    found = _find(context, secret)
    user, target = _maker(context, found), _target(found)
    require_vhost(user, target.vhost, context.vhosts)
    to_publish(user, target.vhost, target.kind, target.name)
    query = parse_query(request.scope["query_string"])
    if query.get("hub.mode") == "denied":
        return Response(status_code=204)
    if query.get("hub.mode") not in ("subscribe", "unsubscribe"):
        raise Problem(400, "hub.mode is neither subscribe nor unsubscribe")
    return echo(query)


def echo(query: dict[str, str]) -> Response:
    """`hub.challenge` as plain text, which no browser takes for a page of this site."""
    challenge = query.get("hub.challenge")
    if challenge is None:
        raise Problem(400, "hub.challenge is required")
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return Response(challenge, media_type="text/plain", headers=headers)


def _find(context: Context, secret: str) -> Capability:
    found = context.hub.capabilities.find(secret)
    if found is None:
        raise Problem(410, "this URL is not valid: it was revoked, has expired, or never was")
    return found


def _maker(context: Context, found: Capability) -> User:
    user = context.broker.users.get(found.owner)
    if user is None:
        raise access_refused(f"user '{found.owner}', who made this URL, is no user any more")
    return user


def _target(found: Capability) -> Target:
    resource = found.resource
    return Target("endpoint", resource.vhost, resource.kind, resource.name)
