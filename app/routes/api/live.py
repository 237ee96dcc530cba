"""Streams a snapshot of the server each second to the pages of the web UI: `/warren/live`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from starlette.responses import Response

from ...overview.live import READERS_MAX, LiveOverview
from ...overview.snapshot import View
from ...problems import Problem, busy
from .call import Call
from .event_stream import SSE, event_stream
from .filters import Filters
from .required_tags import ADMINISTRATOR, MANAGEMENT, MONITORING
from .route import Operation, Routes

QUERY: Final = ("history_s",)
HISTORY_S: Final = 600
HISTORY_S_MAX: Final = 86_400


async def follow(call: Call) -> Response:
    """Sends the rates and lengths of the last `history_s` seconds (600; more than that by the
    minute), then a snapshot each second: totals, rates, what is wrong in words, the queues and
    callbacks that need a look. Users without the tag `monitoring` see their virtual hosts and
    subscriptions, and no rates."""
    overview = call.context.overview
    history_s = Filters(dict(call.request.query_params), QUERY).number(
        "history_s", 0, HISTORY_S_MAX
    )
    if overview is None:
        raise Problem(501, "this server makes no snapshots")
    if overview.reader_count >= READERS_MAX:
        raise busy(f"{READERS_MAX} pages follow the server already: no more can at once")
    events = _events(call, overview, HISTORY_S if history_s is None else history_s)
    return event_stream(call, events)


async def _events(call: Call, overview: LiveOverview, history_s: int) -> AsyncGenerator[bytes]:
    with overview.reading():
        yield _event(b"history", await overview.history(_view(call), history_s))
        await overview.first()
        while not overview.is_closed:
            yield _event(b"snapshot", overview.snapshot(_view(call)))
            await overview.next_one()


def _event(name: bytes, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name, data)


def _view(call: Call) -> View:
    """Returns what the user may see now."""
    user = call.user
    callbacks_of = None if ADMINISTRATOR.has(user) else user.name
    if MONITORING.has(user):
        return View(None, None, callbacks_of)
    vhosts = frozenset(name for name in call.broker.vhosts if user.may_enter(name))
    return View(vhosts, user.name, user.name)


ROUTES: Routes = {
    "/warren/live": {"GET": Operation(follow, MANAGEMENT, {200: (SSE,)}, query=QUERY)}
}
