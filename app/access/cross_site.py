"""Refuses cross-site requests that carry the browser's stored credentials (CSRF).

Browsers send forms, and bodies without a type, to other sites without a preflight request (Fetch
standard, "CORS-safelisted" requests), so a page could subscribe or publish as the user who visits
it. Answers to GET can't be read by pages of other sites.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import Scope

from ..problems import Problem

SIGNS = frozenset((b"origin", b"sec-fetch-site"))
"""Fields that browsers set and that pages can't change."""
_HOSTS = (b"host", b"x-forwarded-host")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_BROWSER = b"Mozilla/"
_OWN_SITES = (b"same-origin", b"none")
"""A page of this server, or no page at all. `same-site` is not accepted: other hosts below the
same domain may belong to others."""


def refuse_other_sites(scope: Scope, public_url: str = "") -> None:
    """Raises `Problem` 403 for a cross-site request. Called for requests with credentials.

    On connections without TLS browsers send Origin alone (Fetch Metadata, 2). Origin, if present,
    must be the host of the request or that of `public_url`.
    """
    if scope["method"] not in _SAFE_METHODS:
        require_own_site(scope, public_url)


def require_own_site(scope: Scope, public_url: str = "") -> None:
    """Raises `Problem` 403 for a request from a page of another site, whatever its method is:
    pages can read what comes over WebSocket."""
    site = origin = b""
    hosts = [_bare(urlsplit(public_url).netloc.encode())]
    for name, value in scope["headers"]:
        if name == b"sec-fetch-site":
            site = value
        elif name == b"origin":
            origin = value
        elif name in _HOSTS:
            hosts.append(_bare(value))
    host = _bare(origin.partition(b"://")[2])
    if (site and site not in _OWN_SITES) or (origin and not (host and host in hosts)):
        raise Problem(
            403, "a request from another site with stored browser credentials was refused"
        )


def may_be_of_page(scope: Scope) -> bool:
    """Returns whether a page may have made a browser send the request.

    Browsers of before 2020 send neither sign with some forms; their User-Agent, which pages can't
    change either, begins as that of every browser does.
    """
    return any(
        name in SIGNS or (name == b"user-agent" and value.startswith(_BROWSER))
        for name, value in scope["headers"]
    )


def _bare(authority: bytes) -> bytes:
    """Returns the authority without the default port of its scheme."""
    return authority.lower().removesuffix(b":80").removesuffix(b":443")
