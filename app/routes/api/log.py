"""The log as it is written: `/warren/log`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

from starlette.responses import Response

from ...logs.tail import LINES_MAX, LogTail
from ...problems import Problem, busy
from .call import Call
from .event_stream import SSE, event_stream
from .filters import Filters
from .required_tags import ADMINISTRATOR
from .route import Operation, Routes

QUERY: Final = ("lines",)
LINES: Final = 100
READERS_MAX: Final = 20
KEEP_ALIVE_S: Final = 15.0


async def follow(call: Call) -> Response:
    """Sends the last lines of the log, then each further one, as events: `data` is a line as JSON.
    `lines` says how many of the last; with `Last-Event-ID` those since that event."""
    return followed(call, LINES, lambda line: line)


def followed(call: Call, usual: int, shown: Callable[[str], str]) -> Response:
    """Returns events with the last lines, `usual` if the request does not say how many, and each
    further one, as they are `shown`. Raises `Problem` 400 and 503."""
    tail = call.context.node.log
    filters = Filters(dict(call.request.query_params), QUERY)
    lines = filters.number("lines", 0, LINES_MAX)
    start = tail.newest(usual if lines is None else lines)
    seen = call.request.headers.get("last-event-id", "")
    if seen:
        if not (seen.isascii() and seen.isdigit() and len(seen) < 18):
            raise Problem(400, f"Last-Event-ID is '{seen[:80]}', it has to be that of an event")
        start = int(seen)
    if tail.reader_count >= READERS_MAX:
        raise busy(f"the log is read by {READERS_MAX} others: no more can read it at once")
    return event_stream(call, _events(tail, start, shown))


async def _events(tail: LogTail, last: int, shown: Callable[[str], str]) -> AsyncGenerator[bytes]:
    yield b": the log\n\n"
    with tail.reading() as woken:
        while not tail.is_closed:
            lines = tail.lines_after(last)
            if lines:
                last = lines[-1][0]
                events = (f"id: {number}\ndata: {shown(line)}\n\n" for number, line in lines)
                yield "".join(events).encode()
                continue
            woken.clear()
            try:
                async with asyncio.timeout(KEEP_ALIVE_S):
                    await woken.wait()
            except TimeoutError:
                yield b":\n\n"


ROUTES: Routes = {
    path: {"GET": Operation(follow, ADMINISTRATOR, {200: (SSE,)}, query=QUERY)}
    for path in ("/warren/log", "/hub/log")
}
