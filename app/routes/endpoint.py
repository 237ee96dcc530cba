"""`/endpoint`: declares, deletes and describes resources; tokens (RabbitHub). `publish.py`
publishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from ...core.auth import User
from ...core.auth.authorization import to_declare, to_delete, to_publish
from ...core.errors import ChannelError, access_refused, not_found
from ...core.message.model import Table
from ...hub.engine.port import ExchangeSpec, QueueInfo, QueueSpec
from ..access.authorization import require_vhost
from ..context import Context
from ..problems import Problem, conflict, invalid_operation
from ..requests.parameters import refuse_unknown, unknown_parameter
from ..requests.paths import Target
from ..requests.properties import flag, parse_query, short_string
from ..responses.describe import describe
from ..responses.error_pages import to_root
from ..responses.success_bodies import declared

MAX_INTEGER = 2**63 - 1
GENERATED = "amq.gen-"
STYLESHEET = "static/description.xsl"
DEFAULT_EXCHANGE = ExchangeSpec("", "direct")
"""The engine does not list the default exchange."""


async def endpoint(context: Context, request: Request, target: Target) -> Response:
    """Handles a request other than a publish.

    Raises `Problem` 400 for an unknown combination of method and `hub.mode`.
    """
    query = parse_query(request.scope["query_string"])
    match request.method, query.get("hub.mode"):
        case "PUT", None:
            return await _put(context, request, target, query)
        case "DELETE", None:
            return await _delete(context, request, target, query)
        case (("GET" | "HEAD"), None):
            return await describe_resource(context, request, target)
        case (("GET" | "HEAD"), "generate_token"):
            return await _generate_token(context, request, target, query)
        case (("GET" | "HEAD"), ("subscribe" | "unsubscribe") as use):
            return await _answer_challenge(context, request, target, query, use)
    raise invalid_operation(request.method, query.get("hub.mode"))


async def describe_resource(context: Context, request: Request, target: Target) -> Response:
    """Describes the resource to users with any permission on it, as for a passive declare.

    Raises `ChannelError` 403 without one, whether the resource exists or not.
    """
    user = await _reader(context, request, target.vhost)
    user.require_any(target.vhost, target.kind, target.name)
    found = await find(context, target)
    response = describe(
        target, found, request.headers.get("accept", ""), to_root(request.scope) + STYLESHEET
    )
    if target.facet == "endpoint":
        response.headers["Link"] = _links(context, request, target)
    return response


async def _reader(context: Context, request: Request, vhost: str) -> User:
    """Returns the authenticated user, or `hub_user` for a request without credentials, so that
    anonymous subscribers at `/hub` can discover topics."""
    hub_user = context.broker.users.get(context.hub.settings.hub_user)
    if hub_user is None or "authorization" in request.headers:
        return await context.user_in(request, vhost, takes_tokens=True)
    require_vhost(hub_user, vhost, context.vhosts)
    return hub_user


def _links(context: Context, request: Request, target: Target) -> str:
    """Returns the Link header with hub and topic URL (WebSub 4)."""
    topic = parse_query(request.scope["query_string"]).get("hub.topic")
    key = "" if topic is None else "?hub.topic=" + quote(topic, safe="")
    base_url = context.base_url(request)
    return f'<{base_url}/hub>; rel="hub", <{base_url}{target.path()}{key}>; rel="self"'


async def find(context: Context, target: Target) -> ExchangeSpec | QueueInfo:
    """Returns the exchange or queue. Raises `ChannelError` 404."""
    found: ExchangeSpec | QueueInfo | None
    if target.letter == "x" and not target.name:
        return DEFAULT_EXCHANGE
    if target.letter == "x":
        found = await context.engine.exchange(target.vhost, target.name)
    else:
        found = await context.engine.queue(target.vhost, target.name)
    if found is None:
        raise not_found(f"no {target.kind} '{target.name}' in vhost '{target.vhost}'")
    return found


async def _put(
    context: Context, request: Request, target: Target, query: Mapping[str, str]
) -> Response:
    user = await context.user_in(request, target.vhost)
    if target.letter == "x":
        made = await _declare_exchange(context, user, target, query)
    else:
        made = await _declare_queue(context, user, target, query)
    if made is None:
        return Response(status_code=204)
    return declared(made, context.location(request, made))


async def _declare_exchange(
    context: Context, user: User, target: Target, query: Mapping[str, str]
) -> Target | None:
    """Returns the exchange if it was created, None if it existed with the same attributes."""
    user.require(target.vhost, "configure", "exchange", target.name)
    if not target.name:
        raise access_refused("operation not permitted on the default exchange")
    words = {"amqp.exchange_type", "durable", "auto_delete", "internal"}
    given, arguments = _read_attributes(query, words)
    existing = await context.engine.exchange(target.vhost, target.name)
    is_new = existing is None
    to_declare(user, target.vhost, "exchange", target.name, arguments, is_new=is_new)
    spec = existing or ExchangeSpec(target.name)
    spec = replace(spec, **given, arguments={**spec.arguments, **arguments})
    try:
        await context.engine.declare_exchange(target.vhost, spec)
    except ChannelError as error:
        raise (conflict(error) if existing else error) from error
    return None if existing else target


async def _declare_queue(
    context: Context, user: User, target: Target, query: Mapping[str, str]
) -> Target | None:
    """Returns the queue if it was created, with a generated name if none was given; else None."""
    name = target.name or GENERATED
    user.require(target.vhost, "configure", "queue", name)
    if target.name.startswith("amq."):
        raise Problem(400, f"'{target.name}' has the reserved prefix 'amq.'",
                      title="Invalid queue name")  # fmt: skip
    given, arguments = _read_attributes(query, {"durable", "auto_delete"})
    existing = await context.engine.queue(target.vhost, target.name) if target.name else None
    to_declare(user, target.vhost, "queue", name, arguments, is_new=existing is None)
    spec = existing.spec if existing else QueueSpec(target.name)
    spec = replace(spec, **given, arguments={**spec.arguments, **arguments})
    try:
        declared = await context.engine.declare_queue(target.vhost, spec)
    except ChannelError as error:
        raise (conflict(error) if existing else error) from error
    return None if existing else replace(target, name=declared.spec.name)


def _read_attributes(query: Mapping[str, str], words: set[str]) -> tuple[dict[str, Any], Table]:
    """Returns the given attributes and the arguments. Raises `Problem` 400 for any other name."""
    given: dict[str, Any] = {}
    arguments: Table = {}
    for name, value in query.items():
        if name.startswith("arg.") and name != "arg.":
            key = short_string("an argument's name", name.removeprefix("arg."))
            arguments[key] = argument(name, value)
        elif name not in words:
            raise unknown_parameter(name, [*words, "arg.NAME"])
        elif name == "amqp.exchange_type":
            given["type"] = short_string(name, value)
        else:
            given[name] = flag(name, value)
    return given, arguments


def argument(name: str, value: str) -> int | bool | str:
    """Returns an integer for decimal digits, a boolean for `true` and `false`, else the string."""
    if value in ("true", "false"):
        return value == "true"
    if not (value.isascii() and value.isdigit()):
        return value
    if len(value) > 20 or int(value) > MAX_INTEGER:
        raise Problem(400, f"{name} is {value[:80]}, more than the maximum {MAX_INTEGER}")
    return int(value)


async def _delete(
    context: Context, request: Request, target: Target, query: Mapping[str, str]
) -> Response:
    user = await context.user_in(request, target.vhost)
    to_delete(user, target.vhost, target.kind, target.name)
    words = {"if-unused"} if target.letter == "x" else {"if-unused", "if-empty"}
    flags, arguments = _read_attributes(query, words)
    if arguments:
        raise Problem(400, "a delete takes no arguments")
    if target.letter == "x" and not target.name:
        raise access_refused("operation not permitted on the default exchange")
    await find(context, target)
    try:
        await _delete_found(context, target, flags)
    except ChannelError as error:
        raise conflict(error) from error
    return Response(status_code=204)


async def _delete_found(context: Context, target: Target, flags: Mapping[str, bool]) -> None:
    if_unused = flags.get("if-unused", False)
    if target.letter == "x":
        await context.engine.delete_exchange(target.vhost, target.name, if_unused=if_unused)
    else:
        await context.engine.delete_queue(
            target.vhost, target.name, if_unused=if_unused, if_empty=flags.get("if-empty", False)
        )


async def _generate_token(
    context: Context, request: Request, target: Target, query: Mapping[str, str]
) -> Response:
    user = await context.user_in(request, target.vhost)
    refuse_unknown(query, ("hub.mode", "hub.intended_use"))
    to_publish(user, target.vhost, target.kind, target.name)
    await find(context, target)
    token = context.hub.shortcuts.generate_token(target.resource(), query.get("hub.intended_use"))
    return Response(
        f"hub.verify_token={quote(token, safe='')}",
        media_type="application/x-www-form-urlencoded",
    )


async def _answer_challenge(
    context: Context, request: Request, target: Target, query: Mapping[str, str], use: str
) -> Response:
    """Answers the challenge of a request with a token of this hub (RabbitHub).

    The token is the credential, since another hub has none here. If a request has credentials,
    they must be valid.
    """
    if "authorization" in request.headers:
        await context.user_in(request, target.vhost)
    context.hub.shortcuts.check_token(query.get("hub.verify_token"), target.resource(), use)
    challenge = query.get("hub.challenge")
    if challenge is None:
        raise Problem(400, "hub.challenge is required")
    return Response(
        challenge, media_type="text/plain", headers={"X-Content-Type-Options": "nosniff"}
    )
