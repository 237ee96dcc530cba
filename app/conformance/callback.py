"""A subscriber's callback: answers requests by script and records them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from . import transcript
from .exchange import Answer, Request
from .transcript import Transcript

Script = Callable[[Request], Awaitable[Answer]]
GONE = 410


async def echo(request: Request) -> Answer:
    """Confirms a verification (WebSub 5.3.1)."""
    return Answer(body=request.challenge)


async def take(_: Request) -> Answer:
    return Answer(204)


async def answer_410(_: Request) -> Answer:
    """Answers 410, which ends a subscription at some hubs."""
    return Answer(GONE)


def always(answer: Answer) -> Script:
    async def script(_: Request) -> Answer:
        return answer

    return script


class Callback:
    """A callback. `url` is its `hub.callback`; requests to it must begin with `target`."""

    def __init__(self, url: str, target: str, trace: Transcript) -> None:
        self.url = url
        self.target = target
        self.confirm: Script = echo
        self.receive: Script = take
        self.verifications: list[Request] = []
        self.denials: list[Request] = []
        self.deliveries: list[Request] = []
        self.strays: list[Request] = []
        """Other requests, such as a probe of the callback, or initial content of a topic."""
        self.known: set[bytes] = set()
        """The contents of topics at the time of the subscription."""
        self.subscribed: set[str] = set()
        """Topics that it is subscribed to, according to its own answers."""
        self._came = asyncio.Event()
        self._trace = trace

    async def answer(self, request: Request) -> Answer:
        kept, script = self._kind(request)
        kept.append(request)
        self._came.set()
        answer = await script(request)
        self._note(request, answer)
        self._trace.received(_shown(request), str(answer))
        return answer

    def _kind(self, request: Request) -> tuple[list[Request], Script]:
        if request.method == "POST" and request.body in self.known:
            return self.strays, take
        if request.method == "POST":
            return self.deliveries, self.receive
        if "hub.challenge" in request.query:
            return self.verifications, self.confirm
        if "denied" in request.query.getall("hub.mode", []):
            return self.denials, take
        return self.strays, take

    def _note(self, request: Request, answer: Answer) -> None:
        topic, is_confirmed = request.last("hub.topic"), answer.body == request.challenge
        if request.method == "POST" and answer.status == GONE:
            self.subscribed.clear()
        elif topic is not None and is_confirmed and 200 <= answer.status < 300:
            is_subscribing = request.last("hub.mode") == "subscribe"
            (self.subscribed.add if is_subscribing else self.subscribed.discard)(topic)
        self._came.set()

    async def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Returns whether the condition became true; it is checked at each request."""
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            return condition()
        return True

    async def delivered(self, count: int, timeout_s: float) -> bool:
        """Returns whether at least `count` deliveries came within the time."""
        return await self.wait(lambda: len(self.deliveries) >= count, timeout_s)

    async def released(self, timeout_s: float) -> bool:
        """Returns whether all its subscriptions ended within the time."""
        return await self.wait(lambda: not self.subscribed, timeout_s)


def _shown(request: Request) -> str:
    if request.method != "POST":
        return f"{request.method} {request.target}"
    names = ("Content-Type", "Link", "X-Hub-Signature", "webhook-id")
    fields = [f"{name}: {request.headers[name]}" for name in names if name in request.headers]
    shown = "; ".join(fields)
    return f"POST {request.target} [{shown}] {transcript.body(request.body)}"
