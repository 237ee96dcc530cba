"""`/in/SECRET`: capability URLs, whose holder may publish to one resource without credentials.

Used as a callback, another hub verifies the URL (GET) and delivers to it (POST). A POST publishes
as `POST /endpoint` does, as the user who created the capability and with that user's current
permissions.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...core.auth import User
from ...core.auth.authorization import to_publish
from ...core.errors import access_refused
from ...hub.capabilities.capability import Capability
from ..access.authorization import require_vhost
from ..context import Context
from ..problems import Problem, method_not_allowed
from ..requests.paths import Target
from ..requests.properties import parse_query
from .publish import HttpPublisher
from .publish_plan import Permit


async def capability(
    context: Context, publisher: HttpPublisher, request: Request, secret: str
) -> Response:
    """Handles a request to a capability URL.

    Raises `Problem` 410 for an invalid URL, which makes other hubs end their subscription, and 403
    while its creator may not write to the resource.
    """
    match request.method:
        case "POST":
            return await _publish(context, publisher, request, secret)
        case "GET":
            return _confirm(context, request, secret)
    raise method_not_allowed(request.method, "GET, POST")


async def _publish(
    context: Context, publisher: HttpPublisher, request: Request, secret: str
) -> Response:
    scope = request.scope
    mapped = publisher.plans.message_headers(scope["headers"])

    async def permit(_: bytes | None) -> Permit:
        found = _find(context, secret)
        user, target = _creator(context, found), _target(found)
        return Permit(user, target, scope["query_string"], mapped, found.routing_key)

    headers, body = await publisher.publish_as(permit, request.receive)
    return Response(body, 202, headers={name.decode(): value.decode() for name, value in headers})


def _confirm(context: Context, request: Request, secret: str) -> Response:
    """Returns the challenge: every subscription of a valid URL is confirmed."""
    found = _find(context, secret)
    user, target = _creator(context, found), _target(found)
    require_vhost(user, target.vhost, context.vhosts)
    to_publish(user, target.vhost, target.kind, target.name)
    query = parse_query(request.scope["query_string"])
    if query.get("hub.mode") == "denied":
        return Response(status_code=204)
    if query.get("hub.mode") not in ("subscribe", "unsubscribe"):
        raise Problem(400, "hub.mode is neither subscribe nor unsubscribe")
    return echo(query)


def echo(query: dict[str, str]) -> Response:
    """Returns `hub.challenge` as plain text, so that no browser renders it as a page."""
    challenge = query.get("hub.challenge")
    if challenge is None:
        raise Problem(400, "hub.challenge is required")
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return Response(challenge, media_type="text/plain", headers=headers)


def _find(context: Context, secret: str) -> Capability:
    found = context.hub.capabilities.find(secret)
    if found is None:
        raise Problem(410, "this URL is invalid: it was revoked, has expired, or never existed")
    return found


def _creator(context: Context, found: Capability) -> User:
    user = context.broker.users.get(found.owner)
    if user is None:
        raise access_refused(f"user '{found.owner}', who created this URL, no longer exists")
    return user


def _target(found: Capability) -> Target:
    resource = found.resource
    return Target("endpoint", resource.vhost, resource.kind, resource.name)
