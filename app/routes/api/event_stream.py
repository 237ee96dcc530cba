"""Answers that go on with server-sent events, as long as their user may have them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Final

from ...responses.streamed_response import StreamedResponse
from .call import NO_STORE, Call

SSE: Final = "text/event-stream"


def event_stream(call: Call, events: AsyncGenerator[bytes]) -> StreamedResponse:
    """Returns an answer that ends with the events, with the session, token or password by which the
    request was let in, and with the user's right."""
    return StreamedResponse(_while_permitted(call, events), NO_STORE, SSE, AsyncExitStack())


async def _while_permitted(call: Call, events: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    woken = asyncio.Event()
    async with aclosing(events):
        with call.admission.watching(woken.set):
            while (event := await _next(call, events, woken)) is not None:
                yield event


async def _next(call: Call, events: AsyncGenerator[bytes], woken: asyncio.Event) -> bytes | None:
    """Returns the next event; None if there is none, or the user may not have it any more."""
    coming = asyncio.create_task(_take(events))
    coming.add_done_callback(lambda _: woken.set())
    try:
        while (lasts_s := call.lasts_s()) > 0:
            if coming.done():
                return coming.result()
            woken.clear()
            with suppress(TimeoutError):  # by then the session may have been used
                async with asyncio.timeout(None if math.isinf(lasts_s) else lasts_s):
                    await woken.wait()
        return None
    finally:
        coming.cancel()
        await asyncio.wait([coming])


async def _take(events: AsyncGenerator[bytes]) -> bytes | None:
    return await anext(events, None)
