"""`/stream`: messages of an exchange, queue or stream over one connection (docs/live.md).

What the client asks for decides the form: WebSocket, Server-Sent Events, JSON lines for `*/*`, or
one JSON document, for which a request waits (long poll).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from ...core.auth import User
from ...hub.live.forms import EVENT_STREAM, JSON_ITEMS, JSON_LINES, WEBSOCKET, Form
from ...hub.live.queue_reading import PREFETCH
from ...hub.live.reader import LiveReader
from ...hub.requests import Resource
from ..access.authentication import authorization_of, is_bearer
from ..access.cors import added_fields
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
from ..live.commands import Commands
from ..live.connection import LiveConnection
from ..live.permit import ReadPermit, WritePermit
from ..live.poll import MEDIA_TYPE as JSON
from ..live.poll import WAIT_MAX_S, WAIT_S, LivePoll
from ..live.socket import LiveSocket
from ..problems import Problem, method_not_allowed
from ..requests.parameters import unknown_parameter
from ..requests.paths import Target
from ..requests.properties import parse_fields, short_string
from ..responses.negotiation import choose

SSE: Final = "text/event-stream"
NDJSON: Final = "application/x-ndjson"
QUERY: Final = ("key", "cursor", "token", "ack", "prefetch", "wait_s", "mode")
_FORMS: Final[dict[str, Form]] = {NDJSON: JSON_LINES, SSE: EVENT_STREAM, JSON: JSON_ITEMS}
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept",
    "X-Accel-Buffering": "no",
    "X-Content-Type-Options": "nosniff",
}
"""nginx would collect a stream until 4 KiB are there."""
_ONLY_BY_SOCKET: Final = {"Cache-Control": "no-store", "Vary": "Accept"}
"""Of the answer to a request for the messages of a queue with acks, which only WebSocket has."""


class StreamQuery(NamedTuple):
    """The parameters of a request."""

    keys: tuple[str, ...]
    cursor: str
    token: str
    prefetch: int | None
    """None for messages that are acknowledged when they are written."""
    wait_s: int | None
    publishes_only: bool


async def stream(context: Context, request: Request, target: Target) -> ASGIApp:
    """Sends messages as they come, until the client disconnects."""
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed(request.method, "GET, HEAD")
    wanted = _wanted(request)
    if wanted.token:
        request = _with_token(request, wanted.token)
    user = await context.user_in(request, target.vhost, takes_tokens=True)
    if target.letter == "q":
        _require_own_page(context, request)
    source = target.resource()
    is_socket = offers_websocket(request.scope)
    if wanted.publishes_only:
        return _for_publishing(context, request, user, source, wanted)
    user.require(target.vhost, "read", target.kind, target.name)
    form, media_type = (WEBSOCKET, "") if is_socket else _form(request)
    wait_s = _wait_s(wanted, media_type)
    live = context.hub.live
    keys = await live.keys_of(source, wanted.keys)
    permit = ReadPermit(context.broker, user, source, keys)
    permit.require()
    prefetch = wanted.prefetch
    is_stored = await context.engine.stream(source.vhost, source.kind, source.name) is not None
    if not is_socket and is_stored:
        prefetch = None  # Its cursors say how far a reader is.
    reader = await live.open(source, keys, form, permit, wanted.cursor, prefetch=prefetch)
    if prefetch is not None and not is_socket:
        return Response(status_code=204, headers=_ONLY_BY_SOCKET)
    if is_socket:
        return _switched(context, request, user, source, reader)
    if form is JSON_ITEMS:
        await drained(request.scope)
        fields = added_fields(request.scope)
        after, is_head = successor_of(request.scope), request.method == "HEAD"
        if is_head:  # It has no body, and what would be in it must stay in the queue.
            reader, wait_s = live.open_silent(form, permit), 0
        poll = LivePoll(reader, wait_s, fields, after, is_head=is_head)
        return DeferredResponse(poll, poll.begin)
    connection = LiveConnection(reader)
    headers = {**_HEADERS, "Content-Type": media_type}
    return EndlessResponse(headers, connection, connection.begin)


def _for_publishing(
    context: Context, request: Request, user: User, source: Resource, wanted: StreamQuery
) -> UpgradeResponse:
    """Returns a WebSocket for publishes alone, which needs no permission to read."""
    if not offers_websocket(request.scope):
        raise Problem(400, "mode=publish needs WebSocket: POST to /endpoint publishes without")
    if wanted.keys or wanted.cursor or wanted.prefetch is not None:
        raise Problem(400, "mode=publish delivers nothing: it takes no key, cursor and ack")
    permit = WritePermit(context.broker, user, source)
    permit.require()
    reader = context.hub.live.open_silent(WEBSOCKET, permit)
    return _switched(context, request, user, source, reader)


def _require_own_page(context: Context, request: Request) -> None:
    """Raises `Problem` 403 for a password that a browser has stored, from a page of another site: a
    request to a queue takes messages from it, whether or not the page can read them."""
    if not is_bearer(authorization_of(request.scope)):
        require_own_site(request.scope, context.public_url)


def _form(request: Request) -> tuple[Form, str]:
    """Returns the form of messages and its media type; raises `Problem` 406."""
    accept = request.headers.get("accept", "")
    media_type = choose(accept, tuple(_FORMS))
    if media_type is None:
        raise Problem(406, f"'{accept[:200]}' accepts neither {' nor '.join(_FORMS)}")
    return _FORMS[media_type], media_type


def _switched(
    context: Context, request: Request, user: User, source: Resource, reader: LiveReader
) -> UpgradeResponse:
    """Returns the switch to a WebSocket; raises as `_require_own_page`: a page could read what
    comes, unlike an answer to its GET."""
    _require_own_page(context, request)
    head = b"\r\n".join([*switching(request.scope["headers"]), b"", b""])
    connection = LiveSocket(reader, Commands(context, user, source, reader.source))
    return UpgradeResponse(head, connection, connection.begin)


def _wanted(request: Request) -> StreamQuery:
    """Reads the query; `Last-Event-ID` is the cursor of a client that comes back."""
    fields = parse_fields(request.scope["query_string"])
    for name, _ in fields:
        if name not in QUERY:
            raise unknown_parameter(name, QUERY)
    given = dict(fields)
    for name in QUERY[1:]:
        if sum(one == name for one, _ in fields) > 1:
            raise Problem(400, f"{name} is given more than once")
    return StreamQuery(
        tuple(short_string("key", value) for name, value in fields if name == "key"),
        request.headers.get("last-event-id", "") or given.get("cursor", ""),
        given.get("token", ""),
        _prefetch(given),
        _number("wait_s", given["wait_s"]) if "wait_s" in given else None,
        _publishes_only(given),
    )


def _publishes_only(given: Mapping[str, str]) -> bool:
    """Returns whether the connection only publishes; raises `Problem` 400."""
    mode = given.get("mode", "read")
    if mode not in ("read", "publish"):
        raise Problem(400, f"mode is '{mode[:80]}', neither read nor publish")
    return mode == "publish"


def _prefetch(given: Mapping[str, str]) -> int | None:
    """Returns the prefetch, None without acks; raises `Problem` 400."""
    ack, prefetch = given.get("ack", "auto"), given.get("prefetch")
    if ack not in ("auto", "manual"):
        raise Problem(400, f"ack is '{ack[:80]}', neither auto nor manual")
    if ack == "auto":
        if prefetch is not None:
            raise Problem(400, "prefetch needs ack=manual")
        return None
    if prefetch is None:
        return PREFETCH
    return _number("prefetch", prefetch)


def _number(name: str, text: str) -> int:
    """Returns a number of the query; raises `Problem` 400."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise Problem(400, f"{name} is '{text[:80]}', not a decimal number")
    return int(text)


def _wait_s(wanted: StreamQuery, media_type: str) -> int:
    """Returns how long to wait. Raises `Problem` 400."""
    wait_s = wanted.wait_s
    if wait_s is None:
        return WAIT_S
    if media_type != JSON:
        raise Problem(400, f"wait_s is for long polls: Accept: {JSON}")
    if wait_s > WAIT_MAX_S:
        raise Problem(400, f"wait_s is {wait_s}, at most {WAIT_MAX_S}")
    return wait_s


def _with_token(request: Request, token: str) -> Request:
    """Returns the request with the token of its query as its credentials: `EventSource` can't set a
    field, and a browser may add a password that it has stored."""
    fields = [field for field in request.scope["headers"] if field[0] != b"authorization"]
    fields.append((b"authorization", b"Bearer " + token.encode("latin-1", "replace")))
    return Request({**request.scope, "headers": fields}, request.receive)
