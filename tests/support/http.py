"""A callback: a real HTTP server that records what is sent to it and answers by script."""

from __future__ import annotations

import asyncio
import socket
import threading
from asyncio.trsock import TransportSocket
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from aiohttp import web
from multidict import CIMultiDict, MultiDict

from .process import wait_until

START_TIMEOUT_S = 60.0
SETTLE_S = 0.01
"""Between no more listening and the end, for who came just then: a connection that is half taken
would be nobody's to close."""
MAX_BODY_BYTES = 64 * 1024 * 1024
_ports: set[int] = set()


async def stop_accepting(*listening: socket.socket | TransportSocket) -> None:
    """Before a server is closed: what asyncio accepts in the turn in which that happens, it never
    closes."""
    loop = asyncio.get_running_loop()
    for one in listening:
        loop.remove_reader(one)
    for _ in range(3):
        await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came; `query` is decoded, `raw_path` is path and query as sent."""

    method: str
    path: str
    raw_path: str
    query: MultiDict[str]
    headers: CIMultiDict[str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; with `hang` the sender gets nothing until the callback closes."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    hang: bool = False


class ThreadedServer:
    """An HTTP server in a thread of its own: it listens on a free loopback port between entry and
    exit, on every path and method."""

    host = "127.0.0.1"
    port = 0

    async def _handle(self, request: web.Request) -> web.Response:
        raise NotImplementedError

    async def _end(self) -> None:
        """Ends what was begun beside the requests."""

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        application = web.Application(client_max_size=MAX_BODY_BYTES)
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            listening = self._listen()
            await web.SockSite(runner, listening).start()
            self.port = listening.getsockname()[1]
            self._started.set()
            await self._stop.wait()
            await stop_accepting(listening)
        finally:
            await self._end()
            await runner.cleanup()

    def _listen(self) -> socket.socket:
        """On a port that no other server of this process has had: what was subscribed to that
        one may still be delivered."""
        while True:
            listening = socket.create_server((self.host, self.port))
            port: int = listening.getsockname()[1]
            if self.port or port not in _ports:
                _ports.add(port)
                return listening
            listening.close()

    def __enter__(self) -> Self:
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            raise RuntimeError(f"{type(self).__name__} did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


class Callback(ThreadedServer):
    """A webhook target.

    A GET with `hub.challenge` is a verification: the challenge is echoed, or `refusal` is
    answered when it is set. A GET with `hub.mode=denied` is a denial, answered with the next of
    `denial_answers`, then 200. Everything else is a delivery: it takes the next scripted answer,
    then `default`. Requests are kept in the order in which they were complete, but for deliveries
    of a body in `ignored`, which are answered with 200 and counted.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.default = Answer()
        self.ignored: set[bytes] = set()
        self.ignored_count = 0
        self.refusal: Answer | None = None
        self.denial_answers: deque[Answer] = deque()
        self._script: deque[Answer] = deque()

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/callback"

    @property
    def verifications(self) -> list[Request]:
        return [request for request in self.requests if "hub.challenge" in request.query]

    @property
    def deliveries(self) -> list[Request]:
        return [
            request
            for request in self.requests
            if "hub.challenge" not in request.query and not _is_denial(request.query)
        ]

    @property
    def denials(self) -> list[Request]:
        return [request for request in self.requests if _is_denial(request.query)]

    def script(self, *answers: int | Answer) -> None:
        """The next deliveries are answered with these, a number being a status."""
        self._script.extend(Answer(one) if isinstance(one, int) else one for one in answers)

    def wait(self, count: int, timeout_s: float = 10.0) -> list[Request]:
        """Waits for `count` deliveries in all and gives every one there is by then."""
        wait_until(
            lambda: len(self.deliveries) >= count, timeout_s, f"delivery {count} at the callback"
        )
        return self.deliveries

    def wait_verifications(self, count: int, timeout_s: float = 10.0) -> list[Request]:
        """Waits for `count` verifications in all and gives every one there is by then."""
        wait_until(
            lambda: len(self.verifications) >= count,
            timeout_s,
            f"verification {count} at the callback",
        )
        return self.verifications

    async def _handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.method == "POST" and body in self.ignored:
            self.ignored_count += 1
            return web.Response()
        self.requests.append(
            Request(
                request.method,
                request.path,
                request.raw_path,
                MultiDict(request.query),
                CIMultiDict(request.headers),
                body,
            )
        )
        answer = self._answer(request)
        if answer.hang:
            await self._stop.wait()
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    def _answer(self, request: web.Request) -> Answer:
        challenge = request.query.get("hub.challenge")
        if challenge is not None:
            return self.refusal or Answer(body=challenge.encode())
        if _is_denial(request.query):
            return self.denial_answers.popleft() if self.denial_answers else Answer()
        return self._script.popleft() if self._script else self.default


def _is_denial(query: Mapping[str, str]) -> bool:
    return query.get("hub.mode") == "denied"
