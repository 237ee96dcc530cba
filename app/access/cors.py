"""Lets pages of other origins use the routes made for pages (Fetch standard, CORS).

They log in with bearer tokens. `Access-Control-Allow-Credentials` is never sent, so no browser adds
a cookie or a stored password, nor shows the answer to a request that had one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from ..problems import Problem
from ..requests.paths import Prefixes
from .origins import AllowedOrigins

FACETS: Final = frozenset({b"endpoint", b"subscribe", b"stream"})
ROOTS: Final = frozenset({b"hub", b"reversehttp", b"feeds"})
_ORIGIN: Final = b"origin"
ALLOWED: Final = "Access-Control-Allow-Origin"
_ADDED: Final = "warren.cors"
"""The extension of a scope with the fields that are added to its answer."""
_METHOD_FIELD: Final = b"access-control-request-method"
_EXPOSED: Final = (
    "Content-Location, Link, Location, Requesting-Client, Retry-After, WWW-Authenticate"
)
_PREFLIGHT: Final[Mapping[str, str]] = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, DELETE",
    # `*` covers X-Amqp-Header-NAME, of which there are many, but not Authorization.
    "Access-Control-Allow-Headers": "Authorization, *",
    "Access-Control-Allow-Private-Network": "true",
    "Access-Control-Max-Age": "7200",
}


class Cors:
    """Answers preflight requests, and adds the fields that let a page read an answer."""

    def __init__(self, origins: AllowedOrigins, prefixes: Prefixes) -> None:
        self._origins = origins
        self._prefixes = prefixes

    def origin(self, scope: Scope) -> str:
        """Returns the origin of a request from a page at a route for pages; empty for others."""
        for name, value in scope["headers"]:
            if name == _ORIGIN:
                return value.decode("latin-1") if self._covers(scope["raw_path"]) else ""
        return ""

    def _covers(self, raw_path: bytes) -> bool:
        segments = self._prefixes.split(raw_path)[1].split(b"/")[1:]
        is_facet = len(segments) > 2 and not FACETS.isdisjoint(segments[:2])
        return is_facet or (segments[0] in ROOTS and segments[:2] != [b"hub", b"callback"])

    def is_preflight(self, scope: Scope) -> bool:
        is_asked = any(name == _METHOD_FIELD for name, _ in scope["headers"])
        return is_asked and scope["method"] == "OPTIONS"

    async def answer_preflight(
        self, scope: Scope, receive: Receive, send: Send, origin: str
    ) -> None:
        """Answers before any route sees the request: it has no credentials."""
        if not self._allows(scope, origin):
            detail = f"pages of {origin} may not use this server: see the setting cors_origins"
            response = Problem(403, detail, headers={"Vary": "Origin"}).response()
        else:
            response = Response(status_code=204, headers={**_PREFLIGHT, **_allowed(origin)})
        await response(scope, receive, send)

    def adding(self, scope: Scope, send: Send, origin: str) -> Send:
        """Returns a `send` that adds the fields for an allowed origin."""
        allows = self._allows(scope, origin)
        fields = _allowed(origin) if allows else {"Vary": "Origin"}
        scope.setdefault("extensions", {})[_ADDED] = fields

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", [])]
                headers += [(name.encode(), value.encode()) for name, value in fields.items()]
                message = {**message, "headers": headers}
            await send(message)

        return send_on

    def _allows(self, scope: Scope, origin: str) -> bool:
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        return self._origins.allow(origin, host.decode("latin-1"))


def added_fields(scope: Scope) -> list[tuple[str, str]]:
    """Returns the fields for an answer that is written past `send`."""
    return [*scope["extensions"].get(_ADDED, {}).items()]


def _allowed(origin: str) -> dict[str, str]:
    return {
        ALLOWED: origin,
        "Access-Control-Expose-Headers": _EXPOSED,
        "Vary": "Origin",
    }
