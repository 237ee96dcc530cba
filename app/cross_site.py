"""Refuses cross-site requests that carry the browser's stored credentials (CSRF).

Browsers send forms, and bodies without a type, to other sites without a preflight request (Fetch
standard, "CORS-safelisted" requests), so a page could subscribe or publish as the user who visits
it. Answers to GET can't be read by pages of other sites.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import Scope

from .problems import Problem

SIGNS = frozenset((b"origin", b"sec-fetch-site"))
"""Fields that browsers set and that pages can't change."""
_HOSTS = (b"host", b"x-forwarded-host")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_OWN_SITES = (b"same-origin", b"none")
"""A page of this server, or no page at all. `same-site` is not accepted: other hosts below the
same domain may belong to others."""


def refuse_other_sites(scope: Scope, public_url: str = "") -> None:
    """Raises `Problem` 403 for a cross-site request. Called for requests with credentials.

    On connections without TLS browsers send Origin alone (Fetch Metadata, 2). Origin, if present,
    must be the host of the request or that of `public_url`.
    """
    if scope["method"] in _SAFE_METHODS:
        return
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
        raise Problem(403, "a page of another site can't use what your browser is logged in with")


def _bare(authority: bytes) -> bytes:
    """Returns the authority without the default port of its scheme."""
    return authority.lower().removesuffix(b":80").removesuffix(b":443")
