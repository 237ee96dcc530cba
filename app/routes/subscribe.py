"""`/subscribe`: reads the parameters, authorizes, and calls the hub (docs/rabbithub.md)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ...core.auth import ADMINISTRATOR, User
from ...core.auth.reserved import refuse_reserved
from ...hub.requests import Resource, SubscribeRequest
from ...hub.subscriptions.options import PARAMETERS
from ..access.authorization import is_trusted, require_topic
from ..access.token_users import TokenUser
from ..context import Context
from ..problems import Problem, invalid_operation
from ..requests.forms import Form, first, first_values, parse_form, read_form
from ..requests.parameters import refuse_unknown
from ..requests.paths import Target
from ..responses.facets import SUBSCRIBE_NAMES
from ..responses.success_bodies import subscribed
from ..subscriptions.document import NODE
from .endpoint import describe_resource


async def subscribe(context: Context, request: Request, target: Target) -> Response:
    """Handles a request.

    Raises `Problem` 400 for an unknown combination of method and `hub.mode`.
    """
    query = parse_form(request.scope["query_string"])
    match request.method:
        case "GET" | "HEAD" if "hub.mode" not in query:
            return await describe_resource(context, request, target)
        case "POST":
            return await _post(context, request, target, query)
        case "DELETE":
            return await _delete(context, request, target, query)
    raise invalid_operation(request.method, first(query, "hub.mode"))


async def _post(context: Context, request: Request, target: Target, query: Form) -> Response:
    user = await context.user_in(request, target.vhost, takes_tokens=True)
    form = await read_form(request, query, context.unfinished, user.name)
    # Again: the user or a permission may have been removed while the body was received.
    user = await context.user_in(request, target.vhost, takes_tokens=True)
    require_scope(user, target.resource())
    refuse_unknown(form, SUBSCRIBE_NAMES)
    subscribe_request = _request(context, request, target, user, form)
    mode = first(form, "hub.mode")
    match mode:
        case "subscribe":
            await require_source(context, user, subscribe_request)
            require_sink(context, user, subscribe_request, "subscribe")
            result = await context.hub.subscriptions.subscribe(subscribe_request)
        case "unsubscribe":
            require_sink(context, user, subscribe_request, "unsubscribe")
            result = await context.hub.subscriptions.unsubscribe(subscribe_request)
        case None:
            raise Problem(400, "hub.mode is required")
        case _:
            raise Problem(400, f"hub.mode '{mode[:80]}' is neither subscribe nor unsubscribe")
    return subscribed(mode, subscribe_request, result, request.headers.get("accept", ""))


async def _delete(context: Context, request: Request, target: Target, query: Form) -> Response:
    user = await _require_configure(context, request, target)
    form = await read_form(request, query, context.unfinished, user.name)
    await _require_configure(context, request, target)
    refuse_unknown(form, SUBSCRIBE_NAMES)
    callback, topic = first(form, "hub.callback"), first(form, "hub.topic")
    if callback is None or topic is None:
        raise Problem(400, "hub.callback and hub.topic are required")
    await context.hub.subscriptions.remove(target.resource(), topic, callback)
    return JSONResponse({"consumers": [{"node": NODE, "status": "removed"}]})


async def _require_configure(context: Context, request: Request, target: Target) -> User:
    user = await context.user_in(request, target.vhost)
    user.require(target.vhost, "configure", target.kind, target.name)
    return user


def require_scope(user: User, source: Resource) -> None:
    """Raises `ChannelError` 403 for a token without a scope to read the source: it must not end
    the other subscriptions of its owner."""
    if isinstance(user, TokenUser):
        user.require(source.vhost, "read", source.word, source.name)


def longest_lease_s(user: User) -> int | None:
    """Returns how long a subscription of the user may last: no longer than a token."""
    return max(1, int(user.lasts_s())) if isinstance(user, TokenUser) else None


async def require_source(context: Context, user: User, request: SubscribeRequest) -> None:
    """Raises `ChannelError` 403 unless the user may read the source."""
    source = request.source
    user.require(source.vhost, "read", source.word, source.name)
    if source.kind == "x" and request.topic is not None:
        # A subscription of an exchange is a binding with the topic as its key.
        await require_topic(context.engine, user, "read", source.vhost, source.name, request.topic)


def require_sink(context: Context, user: User, request: SubscribeRequest, use: str) -> None:
    """Raises `ChannelError` 403 if the request is a shortcut and the user may not write to its
    sink."""
    sink = context.hub.shortcuts.sink(request, use)
    if sink is not None:
        user.require(sink.vhost, "write", sink.word, sink.name)
        refuse_reserved(sink.vhost, sink.word, sink.name)


def _request(
    context: Context, request: Request, target: Target, user: User, form: Form
) -> SubscribeRequest:
    given = first_values(form)
    return SubscribeRequest(
        source=target.resource(),
        callback=given.get("hub.callback"),
        topic=given.get("hub.topic"),
        user=user.name,
        base_url=context.base_url(request),
        verify=tuple(form.get("hub.verify", ())),
        verify_token=given.get("hub.verify_token"),
        lease_seconds=given.get("hub.lease_seconds"),
        secret=given.get("hub.secret"),
        given={name: given[name] for name in PARAMETERS if name in given},
        is_administrator=ADMINISTRATOR in user.tags,
        longest_lease_s=longest_lease_s(user),
        is_trusted=is_trusted(user),
    )
