"""`/subscribe`: reads the form, checks who may, and asks the hub (rabbithub.md section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ...core.auth import User
from ...hub.requests import Resource, SubscribeRequest
from ..access import require_topic
from ..body import read_body
from ..context import Context
from ..paths import Target
from ..problems import Problem
from ..properties import MAX_QUERY_FIELDS
from ..strict_json import loads
from .endpoint import describe_resource

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
MAX_BODY_BYTES = 256 * 1024

Form = Mapping[str, list[str]]


async def subscribe(context: Context, request: Request, target: Target) -> Response:
    """Raises `Problem` 400 for a method and `hub.mode` that mean nothing together."""
    query = parse_form(request.scope["query_string"])
    match request.method:
        case "GET" if "hub.mode" not in query:
            return await describe_resource(context, request, target)
        case "POST":
            return await _post(context, request, target, query)
        case "DELETE":
            return await _delete(context, request, target, query)
    raise Problem(400, f"{request.method} with that hub.mode", title="Invalid operation")


async def _post(context: Context, request: Request, target: Target, query: Form) -> Response:
    user = await context.user_in(request, target.vhost)
    form = await _form(request, query)
    wish = _request(context, request, target, user, form)
    match _first(form, "hub.mode"):
        case "subscribe":
            user.require(target.vhost, "read", target.kind, target.name)
            await _check_topic(context, user, target, wish)
            _check_sink(context, user, wish, "subscribe")
            result = await context.hub.subscribe(wish)
        case "unsubscribe":
            _check_sink(context, user, wish, "unsubscribe")
            result = await context.hub.unsubscribe(wish)
        case None:
            raise Problem(400, "hub.mode is required")
        case mode:
            raise Problem(400, f"hub.mode '{mode[:80]}' is neither subscribe nor unsubscribe")
    return Response(status_code=204 if result.verified else 202)


async def _delete(context: Context, request: Request, target: Target, query: Form) -> Response:
    user = await context.user_in(request, target.vhost)
    user.require(target.vhost, "configure", target.kind, target.name)
    form = await _form(request, query)
    callback, topic = _first(form, "hub.callback"), _first(form, "hub.topic")
    if callback is None or topic is None:
        raise Problem(400, "hub.callback and hub.topic are required")
    await context.hub.remove(_resource(target), topic, callback)
    return JSONResponse({"consumers": [{"node": "warren", "status": "removed"}]})


async def _check_topic(
    context: Context, user: User, target: Target, wish: SubscribeRequest
) -> None:
    """A subscription of an exchange is a binding with the topic as its key."""
    if target.letter == "x" and wish.topic is not None:
        await require_topic(context.engine, user, "read", target.vhost, target.name, wish.topic)


def _check_sink(context: Context, user: User, wish: SubscribeRequest, use: str) -> None:
    """Who binds with a token needs write on what it binds."""
    sink = context.hub.shortcut_sink(wish, use)
    if sink is not None:
        kind = "exchange" if sink.kind == "x" else "queue"
        user.require(sink.vhost, "write", kind, sink.name)  # type: ignore[arg-type]


def _request(
    context: Context, request: Request, target: Target, user: User, form: Form
) -> SubscribeRequest:
    return SubscribeRequest(
        source=_resource(target),
        callback=_first(form, "hub.callback"),
        topic=_first(form, "hub.topic"),
        user=user.name,
        base_url=context.base_url(request),
        verify=tuple(form.get("hub.verify", ())),
        verify_token=_first(form, "hub.verify_token"),
        lease_seconds=_first(form, "hub.lease_seconds"),
        secret=_first(form, "hub.secret"),
    )


async def _form(request: Request, query: Form) -> Form:
    """All parameters from the query if any is there, else all from the body."""
    if any(name.startswith("hub.") for name in query):
        return query
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise Problem(415, f"content encoding '{encoding[:80]}' is not accepted here")
    media_type = request.headers.get("content-type", FORM).partition(";")[0].strip().lower()
    if media_type not in (FORM, JSON):
        raise Problem(415, f"content type '{media_type[:80]}' is neither {FORM} nor {JSON}")
    body = await read_body(request.receive, MAX_BODY_BYTES)
    return parse_form(body) if media_type == FORM else parse_json(body)


def parse_form(raw: bytes) -> Form:
    """Raises `Problem` 400 for what is not UTF-8 or has too many fields."""
    try:
        return parse_qs(
            raw.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_QUERY_FIELDS,
        )
    except ValueError as error:
        raise Problem(400, f"the form can't be read: {error}") from error


def parse_json(raw: bytes) -> Form:
    """`{"hub": {"mode": "subscribe", ...}}` as a form. Raises `Problem` 400."""
    document = loads(raw)
    hub = document.get("hub") if isinstance(document, dict) else None
    if not isinstance(hub, dict):
        raise Problem(400, 'the body has no object "hub"')
    return {f"hub.{name}": _texts(name, value) for name, value in hub.items() if value is not None}


def _texts(name: str, value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _texts(name, item)]
    if isinstance(value, dict):
        return []  # `contact` and its kind: read by RabbitHub's fork, of no effect here
    if isinstance(value, bool):
        return ["true" if value else "false"]
    try:
        str(value).encode()
    except UnicodeEncodeError as error:
        raise Problem(400, f"hub.{name[:80]} is not Unicode text") from error
    return [str(value)]


def _first(form: Form, name: str) -> str | None:
    values = form.get(name)
    return values[0] if values else None


def _resource(target: Target) -> Resource:
    return Resource(target.vhost, target.letter, target.name)
