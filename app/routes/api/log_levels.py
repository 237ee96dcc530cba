"""Levels of the log while the server runs: `/warren/log-levels`. A restart forgets them."""

from __future__ import annotations

from starlette.responses import Response

from ...documents import common, requests
from ...logs.levels import LEVELS, is_area, levels, set_level
from ...problems import Problem
from .call import Call, answer
from .required_tags import ADMINISTRATOR
from .route import GONE, SET, Operation, Routes


async def _list(call: Call) -> Response:
    """Lists the areas that have a level of their own."""
    return answer([{"area": area, "level": level} for area, level in levels().items()])


async def _set(call: Call) -> Response:
    """Sets the level of an area, such as `hub.delivery`, until the server stops."""
    area = _area(call)
    level = (await call.body()).text("level")
    if level not in LEVELS:
        raise Problem(400, f"level is '{level[:80]}', none of {', '.join(LEVELS)}")
    is_new = area not in levels()
    set_level(area, level)
    return Response(status_code=201 if is_new else 204)


async def _reset(call: Call) -> Response:
    """Removes the level of an area: that of the area around it holds again."""
    area = _area(call)
    if area not in levels():
        raise Problem(404, f"area '{area}' has no level of its own")
    set_level(area, None)
    return Response(status_code=204)


def _area(call: Call) -> str:
    """Returns the area in the path; raises `Problem` 404 for one that does not exist."""
    (area,) = call.names
    if not is_area(area):
        raise Problem(
            404,
            f"there is no area '{area[:80]}': areas are folders and modules, such as core.store, "
            "hub.delivery or app.access.authentication",
        )
    return area


ROUTES: Routes = {
    "/warren/log-levels": {"GET": Operation(_list, ADMINISTRATOR, {200: list[common.LogLevel]})},
    "/warren/log-levels/{area}": {
        "PUT": Operation(_set, ADMINISTRATOR, SET, requests.Level),
        "DELETE": Operation(_reset, ADMINISTRATOR, GONE),
    },
}
