"""Request URLs of tunnels: an application polls by GET and replies by POST (docs/tunnels.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp

from ...hub.tunnels.reply import MAX_HEAD_BYTES, read_reply
from ...hub.tunnels.tunnel import Tunnel
from ..access.cors import ALLOWED, added_fields
from ..access.cross_site import require_own_site
from ..context import Context
from ..http.takeover import (
    DeferredResponse,
    EndlessResponse,
    UpgradeResponse,
    drained,
    offers_websocket,
    successor_of,
)
from ..http.websocket import switching
from ..problems import Problem, method_not_allowed
from ..requests.body import read_body
from ..responses.empty import EmptyResponse
from ..responses.negotiation import choose
from ..tunnels.links import MAX_FORM_BYTES, SAFETY, claimed_by, private_url_of
from ..tunnels.polls import MESSAGE, LongPoll, ReadyPoll
from ..tunnels.socket import RequestSocket
from ..tunnels.streams import MessageStream, RequestEvents, RequestStream

REQUEST: Final = "request"
"""The name of the parameter that the path of a Request URL has."""
_ID: Final = re.compile(r"[A-Za-z0-9_-]{22,64}")
_LONG_POLLS: Final = frozenset(("", "*/*", MESSAGE))
_TAKEN: Final = EmptyResponse(202, SAFETY)
_ENDLESS: Final = {"Connection": "close", "X-Accel-Buffering": "no"}
"""nginx would collect an answer until 4 KiB are there."""
_STREAMS: Final[Mapping[str, Callable[[Tunnel, str, str], RequestStream]]] = {
    "text/event-stream": RequestEvents,
    "application/http": MessageStream,
}


async def request_url(
    context: Context, request: Request, label: str, token: str, request_id: str
) -> ASGIApp:
    """Handles a request to a Request URL."""
    match request.method:
        case "GET":
            return await _poll(context, request, label, token, request_id)
        case "POST":
            return await _reply(context, request, label, token, request_id)
    raise method_not_allowed(request.method, "GET, POST")


async def _poll(
    context: Context, request: Request, label: str, token: str, request_id: str
) -> ASGIApp:
    """Waits for a request, or streams requests if the client prefers that.

    Any id of the right form is polled: clients go on with the one they have, after a lapse or a
    restart too.
    """
    tunnels = context.hub.tunnels
    claimed = claimed_by(tunnels.labels.with_token(label, token))
    await read_body(request.receive, MAX_FORM_BYTES, context.unfinished, claimed)
    await drained(request.scope)
    tunnel = tunnels.labels.with_token(label, token)  # it may have been released meanwhile
    private_url = private_url_of(context, request, tunnel, token)
    if not _ID.fullmatch(request_id):
        raise Problem(404, "this is no Request URL; enrol to get one")
    if tunnels.is_stopping:
        raise Problem(503, "the server is stopping", headers={"Retry-After": "1"})
    tunnels.restore(tunnel)
    tunnel.require_room(request_id)
    if offers_websocket(request.scope):
        socket = RequestSocket(tunnel, request_id, private_url, context.unfinished)
        return _switched(context, request, socket)
    accept = request.headers.get("accept", "")
    kind = None if accept in _LONG_POLLS else choose(accept, (MESSAGE, *_STREAMS))
    if kind is not None and kind in _STREAMS:
        stream = _STREAMS[kind](tunnel, request_id, private_url)
        headers = {**SAFETY, "Content-Type": kind, **_ENDLESS}
        return EndlessResponse(headers, stream, stream.begin)
    fields = (*SAFETY.items(), *added_fields(request.scope))
    if tunnel.has_request:
        return ReadyPoll(tunnel, request_id, private_url)
    poll = LongPoll(tunnel, request_id, private_url, fields, successor_of(request.scope))
    return DeferredResponse(poll, poll.begin)


def _switched(context: Context, request: Request, connection: RequestSocket) -> ASGIApp:
    """Returns the switch to a WebSocket; raises `Problem` 403 for pages that CORS does not let read
    an answer to a poll."""
    scope = request.scope
    if ALLOWED not in dict(added_fields(scope)):
        require_own_site(scope, context.public_url)
    head = b"\r\n".join([*switching(scope["headers"]), b"", b""])
    return UpgradeResponse(head, connection, connection.begin)


async def _reply(
    context: Context, request: Request, label: str, token: str, request_id: str
) -> ASGIApp:
    """Takes a reply, whatever its media type: `text/plain` needs no CORS preflight."""
    tunnels = context.hub.tunnels
    tunnel = tunnels.labels.to_reply(label, token)
    tunnel.request(request_id)  # before its body is read
    limit = tunnels.settings.max_body_bytes + MAX_HEAD_BYTES
    body = await read_body(request.receive, limit, context.unfinished, claimed_by(tunnel))
    found = tunnel.request(request_id)
    tunnel.reply(found, read_reply(body, is_head=found.is_head))
    return _TAKEN
