"""The router of the management API, built from the route tables of its parts.

Errors of RabbitMQ's paths have its form, `{"error": "bad_request", "reason": "..."}`; those of
`/api/hub` and `/api/warren`, which RabbitMQ does not have, are problem documents as everywhere else
in Warren.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from urllib.parse import quote, unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from ....core.policy.keys import PolicyError
from ...context import Context
from ...error_pages import answer_problem, is_page_wanted
from ...paths import ApiPath
from ...problems import Problem, method_not_allowed, problem_of
from ...suggestions import suggestion
from . import (
    health,
    hub_attempts,
    hub_capabilities,
    hub_dead_letters,
    hub_subscriptions,
    hub_topics,
    hub_upstreams,
    limits,
    permissions,
    policies,
    quarantine,
    users,
    vhosts,
)
from .call import Call
from .route import Methods, Routes

TABLES: tuple[Routes, ...] = (
    vhosts.ROUTES, users.ROUTES, permissions.ROUTES, policies.ROUTES, limits.ROUTES,
    hub_capabilities.ROUTES, hub_upstreams.ROUTES, hub_subscriptions.ROUTES,
    hub_topics.ROUTES,
    hub_attempts.ROUTES, hub_dead_letters.ROUTES, quarantine.ROUTES, health.ROUTES,
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
    503: "service_unavailable",
    507: "insufficient_storage",
}
_FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
"""Types that a page of another site can make a browser post with its stored credentials."""
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send, path: ApiPath) -> None:
        """Answers every request. Raises `ClientDisconnect` only."""
        try:
            parts = path.parts()
        except Problem as problem:
            await _error_response(problem, scope, path.segments)(scope, receive, send)
            return
        # Each segment is decoded and encoded anew, so that literals match however they are spelled.
        canonical = "".join("/" + quote(part, safe="") for part in parts)
        inner = {**scope, "path": canonical, "root_path": "", "api_path": path}
        await self._router(inner, receive, send)

    async def _not_found(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await _send(self._refuse(request), request, send)

    async def _refuse(self, request: Request) -> Response:
        await self._context.user(request)  # wrong credentials are a 401 on every path
        path = "/".join(request.scope["api_path"].parts())
        near = suggestion(path, _PATHS, lambda path: f"/api/{path}")
        raise Problem(404, f"there is no such path{near}; see /openapi.json for all paths")


class _Endpoint:
    """The requests to one path, by method."""

    def __init__(self, context: Context, methods: Methods) -> None:
        self._context = context
        self._methods = methods
        implied = {"OPTIONS", *(["HEAD"] if "GET" in methods else [])}
        self._allowed = ", ".join(sorted({*methods, *implied}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await _send(self._answer(request), request, send)

    async def _answer(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        if method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": self._allowed})
        user = await self._context.user(request)
        if method not in self._methods:
            raise method_not_allowed(method, self._allowed)
        handler, tag = self._methods[method]
        tag.require(user)
        if method == "POST":
            _refuse_forms(request)
        names = tuple(request.path_params.values())
        return await handler(Call(self._context, request, user, names, tag))


def _route(context: Context, path: str, methods: Methods) -> Route:
    return Route(re.sub(r"\{(\w+)\}", r"{\1:segment}", path), _Endpoint(context, methods))


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
        segments = request.scope["api_path"].segments
        response = _error_response(error, request.scope, segments)
    await response(request.scope, request.receive, send)


def _refuse_forms(request: Request) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type in _FORM_TYPES:
        raise Problem(415, f"the body is {media_type}; application/json is needed")


def _error_response(error: Exception, scope: Scope, segments: tuple[bytes, ...]) -> Response:
    problem = Problem(400, str(error)) if isinstance(error, PolicyError) else problem_of(error)
    if segments[0] in _OWN or is_page_wanted(scope):
        return answer_problem(problem, scope)
    limit = problem.members.get("limit")
    reason = f"{problem.detail}; right: {limit}" if limit else problem.detail
    body = {"error": _ERROR_WORDS.get(problem.status, "internal_error"), "reason": reason}
    return JSONResponse(body, problem.status, headers=problem.headers)
