"""The cookie of a session, and the checks of requests that have one.

Over TLS the cookie has the prefix `__Host-` (RFC 6265bis 4.1.3.2): no other host and no plain HTTP
can set or get it. It is `SameSite=Strict`, so pages of other sites can't make a browser send it;
a sibling host and another port of this machine can, and are refused by Origin and token.
"""

from __future__ import annotations

import hmac
from typing import Final

from starlette.types import Scope

from ..problems import Problem
from .clients import is_listed
from .cross_site import require_own_site

PLAIN_NAME: Final = "warren-session"
SECURE_NAME: Final = f"__Host-{PLAIN_NAME}"
OWN_COOKIES: Final = frozenset((SECURE_NAME.encode(), PLAIN_NAME.encode()))
CSRF_FIELD: Final = "X-CSRF-Token"
_CSRF_FIELD: Final = CSRF_FIELD.lower().encode()
_SIGNS: Final = frozenset((b"origin", b"sec-fetch-site"))
_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")


def is_secure(scope: Scope, public_url: str = "") -> bool:
    """Returns whether the browser's connection has TLS, to this server or to its proxy."""
    if scope["scheme"] == "https" or public_url.startswith("https:"):
        return True
    return is_listed(scope) and _field(scope, b"x-forwarded-proto") == b"https"


def secret_of(scope: Scope, *, secure: bool) -> str:
    """Returns the session's secret in the cookies; empty if there is none, or more than one."""
    wanted = (SECURE_NAME if secure else PLAIN_NAME).encode()
    cookies = [
        cookie.strip().partition(b"=")
        for name, value in scope["headers"]
        if name == b"cookie"
        for cookie in value.split(b";")
    ]
    found = [value for name, _, value in cookies if name == wanted]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def set_cookie(secret: str, *, secure: bool) -> str:
    """Returns the value of Set-Cookie that begins a session, or ends it if the secret is empty.

    Without an expiry, so the browser drops it at its own end.
    """
    name = SECURE_NAME if secure else PLAIN_NAME
    over = "" if secret else "; Max-Age=0"
    tls = "; Secure" if secure else ""
    return f"{name}={secret}; Path=/; HttpOnly; SameSite=Strict{tls}{over}"


def refuse_forged(scope: Scope, csrf_token: str, public_url: str = "") -> None:
    """Raises `Problem` 403 for a change that did not come from a page of this server, whose
    browser says so, with the token of its session."""
    if scope["method"] in _SAFE_METHODS:
        return
    require_own_site(scope, public_url)
    if all(name not in _SIGNS for name, _ in scope["headers"]):
        raise Problem(403, "a change with a session's cookie needs the field Origin")
    given = _field(scope, _CSRF_FIELD)
    if not hmac.compare_digest(given, csrf_token.encode()):
        raise Problem(
            403,
            f"a change with a session's cookie needs the field {CSRF_FIELD} with the csrf_token of "
            "GET /api/warren/session",
        )


def is_from_page(scope: Scope) -> bool:
    """Returns whether a page that knows of sessions has sent the request."""
    return any(name == _CSRF_FIELD for name, _ in scope["headers"])


def _field(scope: Scope, wanted: bytes) -> bytes:
    return next((bytes(value) for name, value in scope["headers"] if name == wanted), b"")
