"""From a path and a method to the function that answers.

Errors of RabbitMQ's paths have its form, `{"error": "bad_request", "reason": "what is wrong"}`;
those of `/api/hub` and `/api/warren`, which RabbitMQ does not have, are problem documents, as
everywhere else in this program.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from ....core.policy.keys import PolicyError
from ...context import Context
from ...error_pages import answer_problem, is_page_wanted
from ...paths import ApiPath
from ...problems import Problem, problem_of
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
_WORDS = {
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
_OF_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
"""What a page of another site can make a browser post, with the credentials that it remembers."""


_OWN = frozenset((b"hub", b"warren"))


class _Branch:
    """Routes that begin alike."""

    def __init__(self) -> None:
        self.literal: dict[str, _Branch] = {}
        self.name: _Branch | None = None
        self.methods: Methods | None = None

    def add(self, parts: list[str], methods: Methods) -> None:
        branch = self
        for part in parts:
            if part.startswith("{"):
                branch.name = branch.name or _Branch()
                branch = branch.name
            else:
                branch = branch.literal.setdefault(part, _Branch())
        branch.methods = methods

    def find(self, parts: Sequence[str]) -> tuple[Methods, tuple[str, ...]] | None:
        """The methods of a path and the names in it; a literal goes before a name, but a name
        may be the word of another path."""
        if not parts:
            return None if self.methods is None else (self.methods, ())
        first, rest = parts[0], parts[1:]
        onward = self.literal.get(first)
        found = None if onward is None else onward.find(rest)
        if found is not None or self.name is None:
            return found
        found = self.name.find(rest)
        return None if found is None else (found[0], (first, *found[1]))


_PATHS = [path[1:] for table in TABLES for path in table]
_ROOT = _Branch()
for _table in TABLES:
    for _path, _methods in _table.items():
        _ROOT.add(_path.split("/")[1:], _methods)


async def api(context: Context, request: Request, path: ApiPath) -> Response:
    """Never raises, but for a client that has hung up."""
    try:
        return await _answered(context, request, path)
    except ClientDisconnect:
        raise
    except Exception as error:
        return _refusal(error, request, path)


async def _answered(context: Context, request: Request, path: ApiPath) -> Response:
    found = _ROOT.find(path.parts())
    if found is None:
        await context.user(request)  # who has a wrong password is told so on every path
        near = suggestion("/".join(path.parts()), _PATHS, lambda path: f"/api/{path}")
        raise Problem(404, f"there is no such path{near}; /openapi.json has all that there are")
    methods, names = found
    allowed = ", ".join(sorted({*methods, "OPTIONS", *(["HEAD"] if "GET" in methods else [])}))
    method = "GET" if request.method == "HEAD" else request.method
    if method == "OPTIONS":
        return Response(status_code=204, headers={"Allow": allowed})
    user = await context.user(request)
    if method not in methods:
        raise Problem(405, f"{method} is not possible here", headers={"Allow": allowed})
    handler, right = methods[method]
    right.require(user)
    if method == "POST":
        _refuse_forms(request)
    return await handler(Call(context, request, user, names, right))


def _refuse_forms(request: Request) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type in _OF_FORMS:
        raise Problem(415, f"the body is {media_type}, application/json is needed")


def _refusal(error: Exception, request: Request, path: ApiPath) -> Response:
    """The answer to a request that ended with this error."""
    problem = Problem(400, str(error)) if isinstance(error, PolicyError) else problem_of(error)
    if path.segments[0] in _OWN or is_page_wanted(request.scope):
        return answer_problem(problem, request.scope)
    limit = problem.members.get("limit")
    reason = f"{problem.detail}; right: {limit}" if limit else problem.detail
    body = {"error": _WORDS.get(problem.status, "internal_error"), "reason": reason}
    return JSONResponse(body, problem.status, headers=problem.headers)
