"""A subscriber's callback: confirms and receives by script, and keeps what came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from . import transcript
from .exchange import Answer, Request
from .transcript import Transcript

Script = Callable[[Request], Awaitable[Answer]]
GONE = 410


async def echo(request: Request) -> Answer:
    """Confirms what is asked (WebSub 5.3.1)."""
    return Answer(body=request.challenge)


async def take(_: Request) -> Answer:
    return Answer(204)


async def gone(_: Request) -> Answer:
    """Ends a subscription in hubs that know this answer."""
    return Answer(GONE)


def always(answer: Answer) -> Script:
    async def script(_: Request) -> Answer:
        return answer

    return script


class Callback:
    """`url` is used as `hub.callback`; `target` is what requests to it have to begin with."""

    def __init__(self, url: str, target: str, trace: Transcript) -> None:
        self.url = url
        self.target = target
        self.confirm: Script = echo
        self.receive: Script = take
        self.verifications: list[Request] = []
        self.denials: list[Request] = []
        self.deliveries: list[Request] = []
        self.strays: list[Request] = []
        """What is none of these; a hub that looks whether anybody is there does no harm, nor one
        that sends what is there when it is subscribed to."""
        self.known: set[bytes] = set()
        """What topics held when it was subscribed to them."""
        self.held: set[str] = set()
        """Topics that it is subscribed to, for all it has answered."""
        self._came = asyncio.Event()
        self._trace = trace

    async def answer(self, request: Request) -> Answer:
        kept, script = self._kind(request)
        kept.append(request)
        self._came.set()
        answer = await script(request)
        self._note(request, answer)
        self._trace.was_asked(_shown(request), str(answer))
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
            self.held.clear()
        elif topic is not None and is_confirmed and 200 <= answer.status < 300:
            is_held = request.last("hub.mode") == "subscribe"
            (self.held.add if is_held else self.held.discard)(topic)
        self._came.set()

    async def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Whether it came true, looked at whenever something comes."""
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            return condition()
        return True

    async def delivered(self, count: int, timeout_s: float) -> bool:
        """Whether so many deliveries have come by then."""
        return await self.wait(lambda: len(self.deliveries) >= count, timeout_s)

    async def released(self, timeout_s: float) -> bool:
        """Whether its subscriptions have ended by then."""
        return await self.wait(lambda: not self.held, timeout_s)


def _shown(request: Request) -> str:
    if request.method != "POST":
        return f"{request.method} {request.target}"
    names = ("Content-Type", "Link", "X-Hub-Signature", "webhook-id")
    fields = [f"{name}: {request.headers[name]}" for name in names if name in request.headers]
    shown = "; ".join(fields)
    return f"POST {request.target} [{shown}] {transcript.body(request.body)}"
