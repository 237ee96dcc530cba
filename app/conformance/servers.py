"""The HTTP server that acts as publisher and subscribers; each check has its own topics and
callbacks."""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from aiohttp import web
from multidict import CIMultiDict, MultiDict

from .callback import Callback
from .exchange import Answer, Request
from .options import Options
from .results import Unusable
from .topic import Topic
from .transcript import Transcript

MAX_BODY_BYTES = 64 * 1024 * 1024
_PLACE = re.compile(r"/(?:topic|callback)/[0-9a-f]{16}")


class Servers:
    """Serves topics and callbacks while its context is entered.

    `url` is where the hub reaches it, without a trailing slash, `port` where it listens.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self.url = options.public_url.rstrip("/")
        self.port = 0
        self._served: dict[str, Callable[[Request], Awaitable[Answer]]] = {}
        application = web.Application(client_max_size=MAX_BODY_BYTES)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)

    def topic(
        self, trace: Transcript, content_type: str, body: bytes, suffix: str = "/document"
    ) -> Topic:
        """Creates a topic; its path and query end with `suffix`."""
        place = f"/topic/{secrets.token_hex(8)}"
        topic = Topic(f"{self.url}{place}{suffix}", self._options.hub, trace, content_type, body)
        self._served[place] = topic.answer
        return topic

    def callback(self, trace: Transcript, suffix: str = "") -> Callback:
        """Creates a callback with an unguessable URL, as WebSub 5.1 recommends."""
        place = f"/callback/{secrets.token_hex(8)}"
        callback = Callback(f"{self.url}{place}{suffix}", f"{place}{suffix}", trace)
        self._served[place] = callback.answer
        return callback

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        # A proxy in front may add or remove a path prefix.
        place = _PLACE.search(request.raw_path)
        serve = None if place is None else self._served.get(place[0])
        if place is None or serve is None:
            return web.Response(status=404)
        answer = await serve(
            Request(
                request.method,
                request.raw_path[place.start() :],
                MultiDict(request.query),
                CIMultiDict(request.headers),
                await request.read(),
                time.monotonic(),
            )
        )
        if answer.drop and request.transport is not None:
            request.transport.abort()
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    async def __aenter__(self) -> Self:
        """Starts to listen; raises `Unusable` for an address that can't be listened on."""
        host, _, port = self._options.listen.rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host.strip("[]"), int(port)), family=family)
        except OSError as error:
            raise Unusable(f"--listen {self._options.listen}: {error.strerror}") from error
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()
        self.port = int(self._socket.getsockname()[1])
        self.url = self.url or f"http://{host}:{self.port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A check that failed early may leave a hub that just connects, and what asyncio accepts
        # in the turn in which a server closes, it never closes.
        asyncio.get_running_loop().remove_reader(self._socket)
        for _ in range(3):
            await asyncio.sleep(0)
        await self._runner.cleanup()
