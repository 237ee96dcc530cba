"""The URLs of a label, its forms, and the fields that keep them from others."""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from ...hub.tunnels.pending_request import new_id
from ...hub.tunnels.tunnel import Tunnel
from ..context import Context
from ..problems import Problem
from ..requests.body import read_body
from ..requests.forms import Form, parse_form
from ..requests.paths import TUNNELS_PATH

MAX_FORM_BYTES: Final = 8 * 1024
SAFETY: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
"""The fields of every response of the gateway: its URL or its links are credentials."""


def links(context: Context, request: Request, tunnel: Tunnel, token: str) -> dict[str, str]:
    """Returns the fields with the URLs of a label. In one line, because some clients read the last
    line of a name only."""
    private_url = private_url_of(context, request, tunnel, token)
    public_url = context.hub.tunnels.addresses.public_url(tunnel.registration.label)
    found = {"first": f"{private_url}/{new_id()}", "related": public_url}
    return {
        "Link": ", ".join(f'<{url}>; rel="{relation}"' for relation, url in found.items()),
        "Location": private_url,
    }


def private_url_of(context: Context, request: Request, tunnel: Tunnel, token: str) -> str:
    """Returns the private URL of a label; raises as `gateway_url`."""
    return f"{gateway_url(context, request)}/{tunnel.registration.label}/{token}"


def gateway_url(context: Context, request: Request) -> str:
    """Returns the gateway URL, for links. Raises `Problem` 421 for a host that is not known to be
    this server's: the links are credentials."""
    found = context.base_url(request)
    if urlsplit(found).hostname not in _hosts(context.public_url, context.hub.settings.base_urls):
        raise Problem(
            421, f"this server does not know the host of {found}; the setting public_url names it"
        )
    return found + TUNNELS_PATH


@lru_cache(16)
def _hosts(public_url: str, base_urls: tuple[str, ...]) -> frozenset[str | None]:
    return frozenset(urlsplit(url).hostname for url in (public_url, *base_urls))


async def read_fields(context: Context, request: Request, claimed_by: str) -> Form:
    """Returns the fields of query and body, those of the body first, whatever its media type:
    `navigator.sendBeacon` sends text."""
    body = await read_body(request.receive, MAX_FORM_BYTES, context.unfinished, claimed_by)
    query = parse_form(request.scope["query_string"])
    return {**query, **parse_form(body)}


def claimed_by(tunnel: Tunnel) -> str:
    """Returns the name under which incomplete bodies of an application count."""
    return f"tunnel {tunnel.registration.label}"
