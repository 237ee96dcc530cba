"""Another hub and its publisher: a real HTTP server that verifies intents and sends content."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

import aiohttp
from aiohttp import web

from .http import Answer, ThreadedServer
from .process import wait_until

CHALLENGE = "ch4llenge"


@dataclass(frozen=True)
class Asked:
    """A subscribe request, and the callback's response to the verification of its intent."""

    path: str
    form: dict[str, str]
    headers: dict[str, str]
    answer: tuple[int, str, str] | None = None
    """Status, type and body; None before the verification."""

    @property
    def callback(self) -> str:
        return self.form["hub.callback"]


@dataclass
class OtherHub(ThreadedServer):
    """Verifies the intents of subscribers, and serves the pages of topics.

    A GET is answered with the page of its path, 404 without one. A POST is a subscribe request:
    it is answered by `moved`, `refusal` or 202, and after the response its intent is verified as
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
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

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
        """Returns the verified requests of a mode, when there are so many."""

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

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _response(answer: Answer) -> web.Response:
    return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


def json_feed(hub: str, topic: str) -> str:
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": []}
    return json.dumps({**feed, "feed_url": topic, "hubs": [{"type": "WebSub", "url": hub}]})
