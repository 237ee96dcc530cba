"""Requests that a page of another site makes a browser send, with the credentials it remembers.

A form, or a body without a type, goes out unasked (Fetch standard, "CORS-safelisted" requests), so
a page could subscribe, or publish, in the name of who looks at it. What GET answers no other page
may read.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import Scope

from .problems import Problem

SIGNS = frozenset((b"origin", b"sec-fetch-site"))
"""Fields that only browsers send, and no page can choose."""
_HOSTS = (b"host", b"x-forwarded-host")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_OWN_SITES = (b"same-origin", b"none")
"""From a page of ours, or from nobody's page. A page of the same site is that of somebody else:
whoever has another host below the same domain."""


def refuse_other_sites(scope: Scope, public_url: str = "") -> None:
    """Raises `Problem` 403. To be asked of requests with credentials.

    Where the connection is not secure browsers send Origin alone (Fetch Metadata, 2). Whatever
    else is said, Origin has to be the host that is asked, or that of `public_url`.
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
    """Without the port that is the scheme's own."""
    return authority.lower().removesuffix(b":80").removesuffix(b":443")
