"""Tokens: creates, lists and revokes tokens with which a web page reads and writes
(docs/live.md)."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from ....core.errors import not_found
from ....hub.tokens.scope import AnyScope, Scope, TunnelScope
from ....hub.tokens.token import Token
from ....hub.tokens.tokens import EXPIRES_IN_S, read_scopes
from ...documents import hub, requests
from ...responses.times import rfc3339
from .call import Call, answer
from .lists import list_of, listing_of
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import GONE, Operation, Routes


def described(token: Token, used_at: float | None) -> dict[str, Any]:
    """Returns the document of a token, without its secret, which is shown once only."""
    return {
        "id": token.id,
        "name": token.name,
        "owner": token.owner,
        "scopes": [scope.document() for scope in token.scopes],
        "made_at": rfc3339(token.made_at),
        "expires_at": rfc3339(token.expires_at),
        "last_used_at": None if used_at is None else rfc3339(used_at),
    }


async def _list(call: Call) -> Response:
    """Lists the user's valid tokens; all for administrators."""
    tokens = call.context.hub.tokens
    found = (one for one in tokens.all() if _is_visible(call, one))
    return await listing_of(call, [described(one, tokens.uses.last(one.id)) for one in found])


async def _get(call: Call) -> Response:
    """Returns a token, without its secret."""
    found = _find(call)
    return answer(described(found, call.context.hub.tokens.uses.last(found.id)))


async def _create(call: Call) -> Response:
    """Creates a token, which is shown only once. The body needs `name` and `scopes`, a list of
    `{"read": "x/NAME", "vhost": "/"}` (or `write`, or `q/NAME`), `{"tunnel": "LABEL"}` and
    `{"manage": "read", "path": "queues/*"}` (or `write`); it may have `expires_in_s`.

    The user needs the permission that each scope names, now and whenever the token is used; a name
    that ends in `*` stands for all that begin so, and is not checked now.
    """
    body = await call.body()
    name, scopes = body.text("name"), read_scopes(body.everything().get("scopes"))
    for scope in scopes:
        _require(call, scope)
    made, secret = await call.context.hub.tokens.make(
        name, call.user.name, scopes, body.integer("expires_in_s", EXPIRES_IN_S)
    )
    headers = {
        "Cache-Control": "no-store",
        "Location": f"{call.context.base_url(call.request)}/api/hub/tokens/{made.id}",
    }
    created = {**described(made, None), "token": secret}
    return JSONResponse(created, 201, headers=headers)


def _require(call: Call, scope: AnyScope) -> None:
    if isinstance(scope, TunnelScope):
        return  # Every user may enrol tunnels.
    if scope.vhost is not None:
        call.own_vhost(scope.vhost)
    if isinstance(scope, Scope) and scope.resource is not None:
        resource = scope.resource
        call.user.require(scope.vhost, scope.access, resource.word, resource.name)


async def _revoke(call: Call) -> Response:
    """Revokes the token permanently; streams that were opened with it end."""
    await call.context.hub.tokens.revoke(_find(call))
    return Response(status_code=204)


def _find(call: Call) -> Token:
    """Returns the token in the path; raises `ChannelError` 404, for another user's token too."""
    found = call.context.hub.tokens.get(*call.names)
    if found is None or not _is_visible(call, found):
        raise not_found(f"no token '{call.names[0]}'")
    return found


def _is_visible(call: Call, token: Token) -> bool:
    return ADMINISTRATOR.has(call.user) or token.owner == call.user.name


ROUTES: Routes = {
    "/hub/tokens": {
        "GET": list_of(_list, MANAGEMENT, hub.Token),
        "POST": Operation(_create, MANAGEMENT, {201: hub.MadeToken}, requests.Token),
    },
    "/hub/tokens/{id}": {
        "GET": Operation(_get, MANAGEMENT, {200: hub.Token}),
        "DELETE": Operation(_revoke, MANAGEMENT, GONE),
    },
}
