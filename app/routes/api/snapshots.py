"""Snapshots of the server's files, from which `warren backup` copies: `/warren/snapshots`."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from ....core.errors import not_found
from ...documents import common
from ...problems import Problem
from ...snapshots import Snapshots
from .call import NO_STORE, Call, answer
from .required_tags import ADMINISTRATOR
from .route import GONE, Operation, Routes


def _snapshots(call: Call) -> Snapshots:
    """Returns the snapshots of the server; raises `Problem` 501 where it can make none."""
    found = call.context.snapshots
    if found is None:
        raise Problem(501, "this server stores nothing on disk")
    return found


async def _list(call: Call) -> Response:
    """Lists the snapshots; they end when the server does."""
    return answer([one.document() for one in _snapshots(call).all()])


async def _make(call: Call) -> Response:
    """Makes a snapshot of all that is confirmed, in a folder of the data directory on the server's
    machine, to be copied from there and deleted."""
    made = await _snapshots(call).make()
    return JSONResponse(made.document(), 201, headers=NO_STORE)


async def _remove(call: Call) -> Response:
    """Removes a snapshot."""
    found = _snapshots(call).get(*call.names)
    if found is None:
        raise not_found(f"no snapshot '{call.names[0]}'")
    await _snapshots(call).remove(found)
    return Response(status_code=204)


ROUTES: Routes = {
    "/warren/snapshots": {
        "GET": Operation(_list, ADMINISTRATOR, {200: list[common.Snapshot]}),
        "POST": Operation(_make, ADMINISTRATOR, {201: common.Snapshot}),
    },
    "/warren/snapshots/{id}": {"DELETE": Operation(_remove, ADMINISTRATOR, GONE)},
}
