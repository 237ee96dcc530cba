"""Error responses: an HTML page for browsers, problem+json for other clients."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path
from string import Template

from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from ..problems import MEDIA_TYPE, Problem
from .negotiation import choose

STATIC = Path(__file__).parents[2] / "static"
PAGES = STATIC / "pages"
HTML = "text/html"
_OFFERED = (MEDIA_TYPE, "application/json", HTML)
_POLICY = "default-src 'none'; style-src 'self'"
_HINTS = {
    401: "Log in with a user of this server and its password; an administrator adds users with "
    "PUT /api/users/NAME.",
    403: "An administrator gives permissions with PUT /api/permissions/VHOST/NAME.",
    404: "Exchanges are at /endpoint/x/NAME, queues at /endpoint/q/NAME.",
}


def answer_problem(problem: Problem, scope: Scope) -> Response:
    """Returns the HTML page if the request prefers HTML (RFC 9110 12.5.1), else problem+json."""
    return _page(problem, scope) if is_page_wanted(scope) else problem.response()


def is_page_wanted(scope: Scope) -> bool:
    """Returns whether the request prefers HTML."""
    fields = [value.decode("latin-1") for name, value in scope["headers"] if name == b"accept"]
    return choose(",".join(fields), _OFFERED) == HTML


def to_root(scope: Scope) -> str:
    """Returns the relative URL of this server's `/`, which works behind a proxy that adds a path
    prefix."""
    below: bytes = scope["raw_path"][len(scope.get("prefix", "")) :]
    return "../" * (below.count(b"/") - 1) or "./"


def _page(problem: Problem, scope: Scope) -> Response:
    root = to_root(scope)
    text = _template().substitute(
        title=escape(f"{problem.status} {problem.title}"),
        detail=escape(problem.detail),
        hint=escape(_HINTS.get(problem.status, "")),
        root=root,
        static=f"{root}static/",
    )
    headers = {
        **problem.headers,
        "Vary": "Accept",
        "Cache-Control": "no-store",
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
    }
    return HTMLResponse(text, problem.status, headers)


@cache
def _template() -> Template:
    return Template((PAGES / "page.html").read_text(encoding="utf-8"))
