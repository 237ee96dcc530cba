"""`/hub/callback/TOKEN`: what other hubs ask and send to this one as their subscriber.

The token is the only thing that a subscription is known by here, never its Link fields: anybody
can send those (WebSub 8.1).
"""

from __future__ import annotations

import asyncio
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from ...core.errors import ChannelError, access_refused
from ...hub.upstream.callbacks import Receiving
from ...hub.upstream.content import refusal
from ...hub.upstream.state import digest_of
from ..context import Context
from ..paths import Target
from ..problems import Problem
from ..properties import CONTROL, HOPS_HEADER, MAX_SHORT_STRING_BYTES, PLAIN_HEADERS, parse_query
from .capability import echo
from .publish import Permit, Publisher

HASHED_AT_ONCE_BYTES = 256 * 1024
"""1 ms; for more of it others on the loop would have to wait."""
_MESSAGE_ID = b"x-amqp-message-id"
_MAX_LEASE_DIGITS = 12


async def callback(
    context: Context, publisher: Publisher, request: Request, secret: str
) -> Response:
    """Raises `Problem` 404 for a question that this hub does not wait for, 410 for content that
    nobody subscribes to, 403 for content that is not signed as it has to be."""
    match request.method:
        case "GET":
            return await _answer(context, request, secret)
        case "POST":
            return await _take(context, publisher, request, secret)
    raise Problem(405, f"{request.method} is not possible here", headers={"Allow": "GET, POST"})


async def _answer(context: Context, request: Request, token: str) -> Response:
    query = parse_query(request.scope["query_string"])
    callbacks, topic = context.hub.upstreams.callbacks, query.get("hub.topic", "")
    mode = query.get("hub.mode", "")
    if mode == "denied":
        if await callbacks.deny(token, topic, query.get("hub.reason", "")):
            return Response(status_code=204)
    elif "hub.challenge" in query:
        lease_s = _lease_s(query.get("hub.lease_seconds", ""))
        if await callbacks.confirm(token, mode, topic, lease_s):
            return echo(query)
    raise Problem(404, "nobody here has asked for that")


def _lease_s(text: str) -> int | None:
    """None for what PubSubHubbub 0.3 leaves out, or what is no number."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_LEASE_DIGITS
    return int(text) if is_number else None


async def _take(context: Context, publisher: Publisher, request: Request, token: str) -> Response:
    """The answer means that the content is kept; who wants it gets it later (WebSub 7)."""
    receiving, digest = _receiving(context, token), b""

    async def permit(body: bytes | None) -> Permit | None:
        nonlocal receiving, digest
        receiving = _receiving(context, token)  # anew: it may be over when the body is there
        if body is not None:
            if len(body) > HASHED_AT_ONCE_BYTES:
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


def _receiving(context: Context, token: str) -> Receiving:
    found = context.hub.upstreams.callbacks.receiving(token)
    if found is None:
        raise Problem(410, "nobody subscribes here with this callback, or not any more")
    return found


def _checked(receiving: Receiving, request: Request, body: bytes) -> bytes:
    """What the content is remembered by, if it has an id; raises `Problem` 403 for content that
    is not signed as it has to be."""
    wrong = refusal(request.headers.get("x-hub-signature"), receiving.lease.secret, body)
    if wrong is not None:
        raise Problem(403, wrong)
    webhook_id = request.headers.get("webhook-id")
    return digest_of(webhook_id.encode(), body) if webhook_id else b""


def _permit(context: Context, receiving: Receiving, request: Request) -> Permit:
    upstream = receiving.upstream
    user = context.broker.users.get(upstream.owner)
    if user is None:
        raise access_refused(f"user '{upstream.owner}', who subscribed here, is no user any more")
    asked = upstream.request
    target = Target("endpoint", upstream.vhost, asked.kind, asked.sink)
    key = _key_said(request) if asked.routing_key is None else asked.routing_key
    return Permit(user, target, b"", _message_headers(request), key)


def _message_headers(request: Request) -> list[tuple[bytes, bytes]]:
    """What of the delivery becomes properties of the message: no more than a hub has to say."""
    kept = {*PLAIN_HEADERS, HOPS_HEADER}
    fields = [field for field in request.scope["headers"] if field[0] in kept]
    message_id = _text(request, "webhook-id")
    return [*fields, (_MESSAGE_ID, message_id.encode())] if message_id else fields


def _key_said(request: Request) -> str:
    """As this program's deliveries say it: percent-encoded where it is not plain."""
    key = unquote(_text(request, "x-amqp-routing-key"), errors="replace")
    return key if len(key.encode()) <= MAX_SHORT_STRING_BYTES else ""


def _text(request: Request, name: str) -> str:
    """The header, or "" where it can't stand in a message."""
    value = request.headers.get(name, "")
    fits = len(value.encode()) <= MAX_SHORT_STRING_BYTES and CONTROL.isdisjoint(value)
    return value if fits else ""
