"""What a requestor gets if no application has answered: browsers get a page. Inside frames, Firefox
replaces errors in a format that it does not show, such as `problem+json`, by one of its own."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from html import escape
from string import Template
from typing import Final

from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from ..problems import Problem
from ..responses.error_pages import PAGES, is_page_wanted

_HINTS: Final = {
    404: "The address may be misspelled, or the program that answered here has ended.",
    410: "The program that answered here has given up this address.",
    503: "The program that answers here is not connected, or is busy. Try again in a moment.",
    504: "The program that answers here took the request, and did not reply in time.",
}


def answer_requestor(problem: Problem, scope: Scope) -> Response:
    """Returns the page if the request prefers HTML, else `problem+json`."""
    return _page(problem) if is_page_wanted(scope) else problem.response()


def _page(problem: Problem) -> Response:
    template, policy = _template()
    text = template.substitute(
        title=escape(f"{problem.status} {problem.title}"),
        hint=escape(_HINTS.get(problem.status, "The request was not passed on.")),
        detail=escape(problem.detail),
    )
    headers = {
        **problem.headers,
        "Vary": "Accept",
        "Cache-Control": "no-store",
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
    }
    return HTMLResponse(text, problem.status, headers)


@cache
def _template() -> tuple[Template, str]:
    """Returns the template and its policy. It has its style in itself, since nothing else of this
    server is served below the tunnel domain."""
    text = (PAGES / "tunnel.html").read_text(encoding="utf-8")
    (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return Template(text), f"default-src 'none'; style-src 'sha256-{digest}'"
