"""`/reversehttp/_relay/HOST:PORT`: sends a request to a listed host, for a user."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from ...hub.tunnels.reply import MAX_HEAD_BYTES
from ..access.token_users import TokenUser
from ..context import Context
from ..problems import Problem
from ..requests.body import read_body
from ..tunnels.links import SAFETY
from ..tunnels.polls import MESSAGE

RELAY: Final = "_relay"
"""The label of relayed requests, also in the scopes of tokens."""


async def relay(context: Context, request: Request, target: str) -> Response:
    """Returns the response of the host.

    Raises `Problem` 404 without the setting, 401 without a login, and 415, and `ChannelError` 403
    for a token without a scope for it.
    """
    hub = context.hub
    if not hub.settings.relay_hosts:
        raise Problem(404, "requests are not relayed (setting relay_hosts)")
    user = await context.user(request, takes_tokens=True)
    if isinstance(user, TokenUser):
        user.require_label(RELAY)
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/http":
        raise Problem(415, f"one request at a time, as {MESSAGE}")
    limit = hub.settings.tunnels.max_body_bytes + MAX_HEAD_BYTES
    body = await read_body(request.receive, limit, context.unfinished, user.name)
    answer = await (await hub.relay.get()).send(target, body)
    return Response(answer, media_type=MESSAGE, headers=SAFETY)
