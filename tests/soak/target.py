"""The web around the hub: callbacks that fail now and then, and the topics of others."""

from __future__ import annotations

from collections import Counter

from aiohttp import web

from tests.support.http import Callback

NEWS, SIGNED, TOPIC, LISTENER, PASSING = "/news", "/signed", "/topic/", "/listener/", "/passing/"
FAILS_EVERY = {NEWS: 20, SIGNED: 500}
"""One in so many messages is refused the first time that it comes. The signed ones are delivered
in strict order, so each failure holds back all that follow for seconds."""
KEPT_REQUESTS = 100


class Target(Callback):
    """Remembers bodies, not requests: a soak sends too many of these."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived: dict[str, Counter[int]] = {NEWS: Counter(), SIGNED: Counter()}
        """The number of deliveries of each message to each callback."""
        self.documents: Counter[str] = Counter()
        """The version of each topic, which is all that stands there."""
        self.received: Counter[str] = Counter()
        """The newest version that a listener got of each topic."""

    @property
    def origin(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def _handle(self, request: web.Request) -> web.Response:
        response = await super()._handle(request)
        del self.requests[:-KEPT_REQUESTS]
        if request.method == "POST":
            return web.Response(status=self._deliver(request.path, await request.read()))
        if request.path.startswith(TOPIC):
            name = request.path.removeprefix(TOPIC)
            return web.Response(text=str(self.documents[name]))
        return response

    def _deliver(self, path: str, body: bytes) -> int:
        """Gives the status to answer with."""
        if path.startswith(LISTENER):
            name = path.removeprefix(LISTENER)
            self.received[name] = max(self.received[name], int(body))
        elif path in self.arrived:
            number = int(body)
            self.arrived[path][number] += 1
            if number % FAILS_EVERY[path] == 0 and self.arrived[path][number] == 1:
                return 500
        return 200

    def has(self, path: str, number: int) -> bool:
        """Returns whether the message was accepted there."""
        return self.arrived[path][number] > (number % FAILS_EVERY[path] == 0)
