"""Requests that a page of another site makes a browser send, with the credentials it remembers.

A form, or a body without a type, goes out unasked (Fetch standard, "CORS-safelisted" requests);
for PUT and DELETE browsers ask first and are refused, and what GET answers no other page may read.
So it is POST that could subscribe, or publish, in the name of who looks at a page.
"""

from __future__ import annotations

from starlette.types import Scope

from .problems import Problem

SIGNS = frozenset((b"origin", b"sec-fetch-site"))
"""Fields that only browsers send, and no page can choose."""
_HOSTS = (b"host", b"x-forwarded-host")


def refuse_other_sites(scope: Scope) -> None:
    """Raises `Problem` 403. To be asked of POST requests with credentials.

    Where the connection is not secure browsers send Origin alone (Fetch Metadata, 2): then the
    page has to be from the host that is asked.
    """
    if scope["method"] != "POST":
        return
    site = origin = b""
    hosts: list[bytes] = []
    for name, value in scope["headers"]:
        if name == b"sec-fetch-site":
            site = value
        elif name == b"origin":
            origin = value
        elif name in _HOSTS:
            hosts.append(_bare(value))
    is_other = _bare(origin.partition(b"://")[2]) not in hosts if origin else False
    if site == b"cross-site" if site else is_other:
        raise Problem(403, "a page of another site can't use what your browser is logged in with")


def _bare(authority: bytes) -> bytes:
    """Without the port that is the scheme's own."""
    return authority.lower().removesuffix(b":80").removesuffix(b":443")
