"""The router of the management API, built from the route tables of its parts.

Errors of RabbitMQ's paths have its form, `{"error": "bad_request", "reason": "..."}`; those of
`/api/hub` and `/api/warren`, which RabbitMQ does not have, are problem documents as everywhere else
in Warren.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from functools import partial
from urllib.parse import quote, unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from ....core.auth import User
from ...access.admission import Admission
from ...access.cross_site import may_be_of_page
from ...context import Context
from ...problems import Problem, method_not_allowed, problem_of
from ...requests.paths import api_names
from ...responses.error_pages import answer_problem, is_page_wanted
from ...suggestions import suggestion
from . import (
    audit,
    bindings,
    cluster,
    connections,
    consumers,
    definitions,
    exchanges,
    health,
    hub_attempts,
    hub_capabilities,
    hub_dead_letters,
    hub_feeds,
    hub_outputs,
    hub_pipeline,
    hub_results,
    hub_subscriptions,
    hub_tokens,
    hub_topics,
    hub_tunnels,
    hub_upstreams,
    lavinmq,
    limits,
    live,
    log,
    log_levels,
    messages,
    nodes,
    overview,
    parameters,
    permissions,
    policies,
    quarantine,
    queues,
    sessions,
    setup,
    snapshots,
    unacknowledged,
    users,
    vhosts,
)
from .call import Call
from .columns import with_columns
from .rabbitmq_paths import ask_rabbitmq, is_rabbitmqs
from .recording import BufferedBody, is_recorded, record
from .required_tags import NO_LOGIN
from .route import Handler, Methods, Routes

TABLES: tuple[Routes, ...] = (
    vhosts.ROUTES, users.ROUTES, permissions.ROUTES, policies.ROUTES, limits.ROUTES,
    parameters.ROUTES, messages.ROUTES, overview.ROUTES, nodes.ROUTES, cluster.ROUTES,
    definitions.ROUTES, live.ROUTES, log.ROUTES,
    bindings.ROUTES, queues.ROUTES, exchanges.ROUTES, connections.ROUTES, consumers.ROUTES,
    unacknowledged.ROUTES,
    hub_capabilities.ROUTES, hub_tokens.ROUTES, hub_upstreams.ROUTES, hub_subscriptions.ROUTES,
    hub_topics.ROUTES, hub_feeds.ROUTES, hub_outputs.ROUTES, hub_pipeline.ROUTES,
    hub_results.ROUTES, hub_tunnels.ROUTES,
    hub_attempts.ROUTES, hub_dead_letters.ROUTES, quarantine.ROUTES, snapshots.ROUTES,
    log_levels.ROUTES, lavinmq.ROUTES,
    health.ROUTES, sessions.ROUTES, setup.ROUTES,
    audit.ROUTES,
)  # fmt: skip
_ERROR_WORDS = {
    400: "bad_request",
    401: "not_authorised",
    403: "not_authorised",
    404: "Object Not Found",
    405: "method_not_allowed",
    409: "conflict",
    412: "precondition_failed",
    413: "payload_too_large",
    415: "unsupported_media_type",
    422: "unprocessable_entity",
    429: "too_many_requests",
    501: "not_implemented",
    503: "service_unavailable",
    507: "insufficient_storage",
}
_FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
"""Types that a page of another site can make a browser post with its stored credentials."""
NOBODY = Admission(User(""))
"""The admission of requests that need no credentials."""
_TAKE_FORMS = frozenset((definitions.add, definitions.add_to_vhost))
"""Handlers that read forms; who sent them is known by their Origin alone."""
_OWN = frozenset((b"hub", b"warren"))
"""First segments of the paths that RabbitMQ does not have."""
_PATHS = [path[1:] for table in TABLES for path in table]


class _Segment(Convertor[str]):
    """A percent-encoded path segment; it may be empty, and `%2F` is a slash in a name."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


register_url_convertor("segment", _Segment())


class Api:
    """The ASGI application below `/api`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        table = {path: methods for routes in TABLES for path, methods in routes.items()}
        self._router = Router(
            [_route(context, path, table[path]) for path in sorted(table, key=_precedence)],
            redirect_slashes=False,
            default=self._not_found,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers every request. Raises `ClientDisconnect` only."""
        segments = scope["path"].encode("latin-1").split(b"/")[2:]
        if len(segments) > 1 and not segments[-1]:
            segments.pop()  # as in RabbitMQ: rabbit-hole asks for /api/users/
        try:
            names = api_names(segments)
        except Problem as problem:
            await _error_response(problem, scope, segments[0])(scope, receive, send)
            return
        # Each segment is decoded and encoded anew, so that literals match however they are spelled.
        path = "".join("/" + quote(name, safe="") for name in names)
        inner = {**scope, "path": path, "root_path": "", "path_params": {}, "api_names": names}
        await self._router(inner, receive, send)

    async def _not_found(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await _send(self._refuse(request), request, send)

    async def _refuse(self, request: Request) -> Response:
        # Wrong credentials are a 401 on every path.
        await self._context.admission(request)
        path = "/".join(request.scope["api_names"])
        near = suggestion(path, _PATHS, lambda path: f"/api/{path}")
        raise Problem(404, f"there is no such path{near}; see /openapi.json for all paths")


class _Endpoint:
    """The requests to one path, by method."""

    def __init__(self, context: Context, path: str, methods: Methods) -> None:
        self._context = context
        self._path = path
        self._methods = methods
        self._is_rabbitmqs = bool(context.management_url) and is_rabbitmqs(path)
        implied = {"OPTIONS", *(["HEAD"] if "GET" in methods else [])}
        self._allowed = ", ".join(sorted({*methods, *implied}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await _send(self._answer(request), request, send)

    async def _answer(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        if method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": self._allowed})
        operation = self._methods.get(method)
        admission = NOBODY
        if operation is None or operation.tag is not NO_LOGIN:
            admission = await self._context.admission(request)
        if operation is None:
            raise method_not_allowed(method, self._allowed)
        if self._is_rabbitmqs:
            raise ask_rabbitmq(self._path, self._context.management_url)
        names = tuple(request.path_params.values())
        handler, tag = operation.handler, operation.tag
        if not is_recorded(self._path, method, tag):
            return await _act(handler, Call(self._context, request, admission, names, tag))
        body = BufferedBody(request.receive)
        call = Call(self._context, Request(request.scope, body.receive), admission, names, tag)
        return await record(call, partial(_act, handler, call), self._methods, body)


async def _act(handler: Handler, call: Call) -> Response:
    call.right.require(call.user)
    if call.request.method == "POST" and call.right is not NO_LOGIN and handler not in _TAKE_FORMS:
        _refuse_forms(call.request)
    return with_columns(call.request, await handler(call))


def _route(context: Context, path: str, methods: Methods) -> Route:
    return Route(re.sub(r"\{(\w+)\}", r"{\1:segment}", path), _Endpoint(context, path, methods))


def _precedence(path: str) -> tuple[bool, ...]:
    """Returns a sort key by which literals come before names, segment by segment."""
    return tuple(part.startswith("{") for part in path.split("/"))


async def _send(answer: Awaitable[Response], request: Request, send: Send) -> None:
    """Sends the response, or that for the error raised. Raises `ClientDisconnect` only."""
    try:
        response = await answer
    except ClientDisconnect:
        raise
    except Exception as error:
        first = request.scope["api_names"][0].encode()
        response = _error_response(error, request.scope, first)
    await response(request.scope, request.receive, send)


def _refuse_forms(request: Request) -> None:
    """Raises `Problem` 415 for a form that a page may have sent. `curl -d` calls JSON a form where
    nobody says what it is, and RabbitMQ takes it."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type in _FORM_TYPES and may_be_of_page(request.scope):
        raise Problem(415, f"the body is {media_type}; application/json is needed")


def _error_response(error: Exception, scope: Scope, first_segment: bytes) -> Response:
    problem = problem_of(error)
    if first_segment in _OWN or is_page_wanted(scope):
        return answer_problem(problem, scope)
    limit = problem.members.get("limit")
    reason = f"{problem.detail}; right: {limit}" if limit else problem.detail
    body = {"error": _ERROR_WORDS.get(problem.status, "internal_error"), "reason": reason}
    if "engine" in problem.members:
        body["engine"] = problem.members["engine"]
    return JSONResponse(body, problem.status, headers=problem.headers)
