"""Another hub and its publisher: a real HTTP server that asks back and sends content."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlencode

import aiohttp
from aiohttp import web

from .http import START_TIMEOUT_S, Answer, stop_accepting
from .process import wait_until

CHALLENGE = "ch4llenge"


@dataclass(frozen=True)
class Asked:
    """One request to be subscribed, and what the callback answered when it was asked back."""

    path: str
    form: dict[str, str]
    headers: dict[str, str]
    answer: tuple[int, str, str] | None = None
    """Status, type and body; None if it was not asked."""

    @property
    def callback(self) -> str:
        return self.form["hub.callback"]


@dataclass
class OtherHub:
    """Listens on a free loopback port between entry and exit.

    A GET is answered with the page of its path, 404 without one. A POST asks to be subscribed:
    it is answered by `moved`, `refusal` or 202, and after the answer the callback is asked back as
    `question` changes it; with `asks_back` False it never is.
    """

    pages: dict[str, Answer] = field(default_factory=dict)
    moved: dict[str, Answer] = field(default_factory=dict)
    refusal: Answer | None = None
    asks_back: bool = True
    lease_seconds: int | None = 1_000
    question: Callable[[dict[str, str]], dict[str, str]] = lambda given: given
    asked: list[Asked] = field(default_factory=list)
    fetched: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        """Without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def links(self, topic: str = "/topic", hub: str = "/hub") -> dict[str, str]:
        return {"Link": f'<{self.url}{hub}>; rel="hub", <{self.url}{topic}>; rel="self"'}

    def page(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        status: int = 200,
        body: str = "",
    ) -> str:
        """Serves it; gives its URL."""
        self.pages[path] = Answer(status, headers or {}, body.encode())
        return self.url + path

    def wait(self, count: int, mode: str = "subscribe") -> list[Asked]:
        """Those of a mode that were asked back, when there are so many."""

        def found() -> list[Asked]:
            return [
                one
                for one in self.asked
                if one.form["hub.mode"] == mode and (one.answer or not self.asks_back)
            ]

        wait_until(lambda: len(found()) >= count, 20.0, f"{mode} {count} at the other hub")
        return found()

    async def _handle(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        if request.method == "GET":
            self.fetched.append((request.path_qs, headers))
            return _response(self.pages.get(request.path_qs, Answer(404)))
        if request.path in self.moved:
            return _response(self.moved[request.path])
        form = dict(parse_qsl((await request.read()).decode(), strict_parsing=True))
        asked = Asked(request.path, form, headers)
        self.asked.append(asked)
        if self.refusal is not None:
            return _response(self.refusal)
        if self.asks_back:
            task = asyncio.create_task(self._ask_back(asked))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return web.Response(status=202)

    async def _ask_back(self, asked: Asked) -> None:
        given = {name: asked.form[name] for name in ("hub.mode", "hub.topic")}
        given["hub.challenge"] = CHALLENGE
        if self.lease_seconds is not None and given["hub.mode"] == "subscribe":
            given["hub.lease_seconds"] = str(self.lease_seconds)
        url = f"{asked.callback}?{urlencode(self.question(given))}"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            answer = (response.status, response.content_type, await response.text())
        self.asked[self.asked.index(asked)] = Asked(asked.path, asked.form, asked.headers, answer)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            listening = socket.create_server(("127.0.0.1", 0))
            await web.SockSite(runner, listening).start()
            self.port = listening.getsockname()[1]
            self._started.set()
            await self._stop.wait()
            await stop_accepting(listening)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await runner.cleanup()

    def __enter__(self) -> Self:
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            raise RuntimeError("the other hub did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


def _response(answer: Answer) -> web.Response:
    return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


def json_feed(hub: str, topic: str) -> str:
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": []}
    return json.dumps({**feed, "feed_url": topic, "hubs": [{"type": "WebSub", "url": hub}]})
