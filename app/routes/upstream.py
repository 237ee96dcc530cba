"""`/hub/callback/TOKEN`: verifications and deliveries of other hubs, where this one subscribes.

A subscription is identified by its token alone, never by Link fields, which anybody can send
(WebSub 8.1).
"""

from __future__ import annotations

import asyncio
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from ...core.errors import ChannelError, access_refused
from ...hub.feeds.cloud import CLOUD_PREFIX, TAKEN
from ...hub.feeds.push import is_of_feed
from ...hub.upstream.callbacks import Receiving
from ...hub.upstream.content import refusal
from ...hub.upstream.state import digest_of
from ..context import Context
from ..problems import Problem, method_not_allowed
from ..requests.body import read_body
from ..requests.paths import Target
from ..requests.properties import (
    CONTROL,
    HOPS_HEADER,
    MAX_SHORT_STRING_BYTES,
    PLAIN_HEADERS,
    parse_query,
)
from .capability import echo
from .publish import HttpPublisher
from .publish_plan import Permit

MAX_CHALLENGE = 1_000
"""Characters of a challenge that are repeated."""
MAX_FORM_BYTES = 64 * 1024
MAX_INLINE_HASH_BYTES = 256 * 1024
"""Larger content is hashed in a thread; hashing this much takes 1 ms."""
_MESSAGE_ID = b"x-amqp-message-id"
_MAX_LEASE_DIGITS = 12


async def callback(
    context: Context, publisher: HttpPublisher, request: Request, secret: str
) -> Response:
    """Handles a request of another hub.

    Raises `Problem` 404 for an unexpected verification, 410 for content without a subscription,
    403 for a bad signature.
    """
    if secret.startswith(CLOUD_PREFIX):
        return await _cloud(context, request, secret.removeprefix(CLOUD_PREFIX))
    match request.method:
        case "GET":
            return await _answer(context, request, secret)
        case "POST":
            return await _take(context, publisher, request, secret)
    raise method_not_allowed(request.method, "GET, POST")


async def _answer(context: Context, request: Request, token: str) -> Response:
    query = parse_query(request.scope["query_string"])
    callbacks, topic = context.hub.upstreams.callbacks, query.get("hub.topic", "")
    mode = query.get("hub.mode", "")
    if mode == "denied":
        denied = await callbacks.deny(token, topic, query.get("hub.reason", ""))
        if denied is not None:
            if is_of_feed(denied):
                await context.hub.feeds.push_ended(denied.request.routing_key or "")
            return Response(status_code=204)
    elif "hub.challenge" in query:
        lease_s = _lease_s(query.get("hub.lease_seconds", ""))
        if await callbacks.confirm(token, mode, topic, lease_s):
            return echo(query)
    raise Problem(404, "no subscription waits for this verification")


def _lease_s(text: str) -> int | None:
    """Returns None if the lease is missing, as in PubSubHubbub 0.3, or is not a number."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_LEASE_DIGITS
    return int(text) if is_number else None


async def _take(
    context: Context, publisher: HttpPublisher, request: Request, token: str
) -> Response:
    """Publishes the content; the response says that it is stored, not distributed (WebSub 7)."""
    receiving, digest = _receiving(context, token), b""
    if is_of_feed(receiving.upstream):
        return await _announce(context, request, receiving)

    async def permit(body: bytes | None) -> Permit | None:
        nonlocal receiving, digest
        receiving = _receiving(context, token)  # again: it may have ended while the body came
        if body is not None:
            if len(body) > MAX_INLINE_HASH_BYTES:
                digest = await asyncio.to_thread(_checked, receiving, request, body)
            else:
                digest = _checked(receiving, request, body)
            if digest in receiving.state.seen:
                return None
        return _permit(context, receiving, request)

    try:
        await publisher.publish_as(permit, request.receive)
    except ChannelError as error:
        await context.hub.upstreams.callbacks.refused(receiving, error.explanation)
        raise
    if digest:
        receiving.state.seen.add(digest)
    await context.hub.upstreams.callbacks.accepted(receiving)
    return Response(status_code=202)


async def _announce(context: Context, request: Request, receiving: Receiving) -> Response:
    """Polls the feed whose change was pushed: what has changed is found as in any poll."""
    owner, limit = receiving.upstream.owner, context.hub.settings.fetch_max_bytes
    body = await read_body(request.receive, limit, context.unfinished, owner)
    await asyncio.to_thread(_checked, receiving, request, body)
    await context.hub.feeds.announced(receiving.upstream.request.routing_key or "")
    await context.hub.upstreams.callbacks.accepted(receiving)
    return Response(status_code=202)


async def _cloud(context: Context, request: Request, identity: str) -> Response:
    """Handles what an RSS cloud sends: a challenge, which is repeated, or that a feed has changed.

    Raises `Problem` 404 for a feed that is no longer registered.
    """
    feed = context.hub.feeds.with_id(identity)
    if feed is None:
        raise Problem(404, "no feed is registered for these announcements")
    if request.method == "GET":
        challenge = parse_query(request.scope["query_string"]).get("challenge", "")
        return Response(challenge[:MAX_CHALLENGE], media_type="text/plain")
    if request.method != "POST":
        raise method_not_allowed(request.method, "GET, POST")
    await read_body(request.receive, MAX_FORM_BYTES, context.unfinished, feed.owner)
    await context.hub.feeds.announced(feed.name)
    if "xml" in request.headers.get("content-type", ""):
        return Response(TAKEN, media_type="text/xml")
    return Response(status_code=204)


def _receiving(context: Context, token: str) -> Receiving:
    found = context.hub.upstreams.callbacks.receiving(token)
    if found is None:
        raise Problem(410, "no subscription has this callback, or it has ended")
    return found


def _checked(receiving: Receiving, request: Request, body: bytes) -> bytes:
    """Returns the digest of the content for deduplication, empty without a `webhook-id`.

    Raises `Problem` 403 for a bad signature.
    """
    reason = refusal(request.headers.get("x-hub-signature"), receiving.lease.secret, body)
    if reason is not None:
        raise Problem(403, reason)
    webhook_id = request.headers.get("webhook-id")
    return digest_of(webhook_id.encode(), body) if webhook_id else b""


def _permit(context: Context, receiving: Receiving, request: Request) -> Permit:
    upstream = receiving.upstream
    user = context.broker.users.get(upstream.owner)
    if user is None:
        raise access_refused(f"user '{upstream.owner}', who subscribed here, no longer exists")
    spec = upstream.request
    target = Target("endpoint", upstream.vhost, spec.kind, spec.sink)
    key = _routing_key(request) if spec.routing_key is None else spec.routing_key
    return Permit(user, target, b"", _message_headers(request), key)


def _message_headers(request: Request) -> list[tuple[bytes, bytes]]:
    """Returns the headers of the delivery that become properties of the message."""
    kept = {*PLAIN_HEADERS, HOPS_HEADER}
    fields = [field for field in request.scope["headers"] if field[0] in kept]
    message_id = _text(request, "webhook-id")
    return [*fields, (_MESSAGE_ID, message_id.encode())] if message_id else fields


def _routing_key(request: Request) -> str:
    """Returns the routing key in the header, percent-decoded, as Warren's deliveries have it."""
    key = unquote(_text(request, "x-amqp-routing-key"), errors="replace")
    return key if len(key.encode()) <= MAX_SHORT_STRING_BYTES else ""


def _text(request: Request, name: str) -> str:
    """Returns the header, or "" if it can't be a message property."""
    value = request.headers.get(name, "")
    fits = len(value.encode()) <= MAX_SHORT_STRING_BYTES and CONTROL.isdisjoint(value)
    return value if fits else ""
