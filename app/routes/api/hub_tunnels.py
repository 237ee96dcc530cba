"""Tunnels: the labels that applications have enrolled. Administrators see all, others their own."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from ....core.auth import ADMINISTRATOR
from ....core.errors import not_found
from ...documents import hub
from ...problems import Problem
from ...tunnels.listing import listing, sees
from .call import Call, answer
from .required_tags import ANYBODY
from .route import GONE, Operation, Routes

BLOCK_S: Final = 86_400
BLOCK_MAX_S: Final = 30 * 86_400


async def list_tunnels(call: Call) -> Response:
    """Lists tunnels by label, with the polls that wait and the requests since the server's start,
    and the labels that administrators have blocked."""
    return answer(listing(call.context.hub.tunnels, call.user))


async def release(call: Call) -> Response:
    """Releases a label: its polls end, and its URL answers 410. An administrator also blocks the
    label of another user for `block_s` seconds, a day without it: nobody can enrol that label, and
    its owner no new one. 0 blocks nothing, and ends an earlier block. A label without an owner is
    blocked only if `block_s` says so."""
    tunnels, label = call.context.hub.tunnels, call.names[0]
    is_administrator = ADMINISTRATOR in call.user.tags
    found = tunnels.labels.get(label)
    if found is not None and sees(call.user, found):
        await tunnels.release(found, _block_s(call, found.registration.owner))
        return Response(status_code=204)
    found = tunnels.labels.released(label)
    if found is None or not is_administrator:
        raise not_found(f"no tunnel '{label}'")
    await tunnels.block(found, _block_s(call, found.registration.owner))
    return Response(status_code=204)


def _block_s(call: Call, owner: str) -> int:
    """Returns how long the label is blocked; raises `Problem` 400 and 403."""
    given = call.request.query_params.get("block_s")
    if given is None:
        return 0 if owner in ("", call.user.name) else BLOCK_S
    if ADMINISTRATOR not in call.user.tags:
        raise Problem(403, "block_s: only administrators block labels")
    is_number = given.isascii() and given.isdigit() and len(given) <= len(str(BLOCK_MAX_S))
    if not is_number or int(given) > BLOCK_MAX_S:
        raise Problem(400, f"block_s is '{given[:80]}', not 0 to {BLOCK_MAX_S} seconds")
    return int(given)


ROUTES: Routes = {
    "/hub/tunnels": {"GET": Operation(list_tunnels, ANYBODY, {200: hub.EnrolledTunnels})},
    "/hub/tunnels/{label}": {"DELETE": Operation(release, ANYBODY, GONE)},
}
