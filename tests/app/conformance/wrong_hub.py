"""A small WebSub hub, right but for the faults that a test asks for.

It answers requests here and distributes in `wrong_sending.py`. Without faults it passes every
check; what each fault breaks stands in `test_faults.py`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, quote, urlsplit

import httpx
from aiohttp import web

from tests.support.ports import free_port
from warrenmq.app.conformance.expect import normal

from .wrong_sending import Sending, Subscriber

DEFAULT_LEASE_S, LONGEST_LEASE_S = 3_600, 86_400 * 90
VERIFIED_AFTER_S = 0.01
LAST_WORDS_S = 0.5


class Refusal(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Wish:
    mode: str
    topic: str
    callback: str
    fields: dict[str, str]

    @property
    def key(self) -> tuple[str, str]:
        return self.topic, self.callback


class WrongHub:
    """Listens between entry and exit at `url`."""

    def __init__(self, *faults: str) -> None:
        self.faults = frozenset(faults)
        self.url = f"http://127.0.0.1:{free_port()}/hub"
        self._subscribers: dict[tuple[str, str], Subscriber] = {}
        self._client = httpx.AsyncClient(trust_env=False, timeout=30)
        self._sending = Sending(self.url, self.faults, self._client, self._subscribers)
        self._tasks: set[asyncio.Task[None]] = set()
        application = web.Application()
        application.router.add_post("/hub", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)

    @property
    def subscribers(self) -> int:
        return len(self._subscribers)

    def has(self, fault: str) -> bool:
        return fault in self.faults

    async def _handle(self, request: web.Request) -> web.Response:
        pairs = parse_qsl(await request.text(), keep_blank_values=True)
        fields = dict(pairs)
        try:
            if fields.get("hub.mode") == "publish":
                return self._publish(pairs)
            await self._subscribe(fields)
        except Refusal as error:
            if self.has("refuses silently"):
                return web.Response(status=400)
            return web.Response(status=400, text=str(error))
        return web.Response(status=200 if self.has("answers 200") else 202)

    # Publishers

    def _publish(self, pairs: list[tuple[str, str]]) -> web.Response:
        known = {"hub.url", "hub.topic", "hub.url[]"}
        known -= {name for name in known if self.has(f"does not know {name}")}
        urls = [url for name, value in pairs if name in known for url in self._split(value)]
        if self.has("takes one URL"):
            urls = urls[:1]
        if not urls:
            raise Refusal("hub.url is required")
        topics = {topic for topic, _ in self._subscribers}
        if self.has("wants subscribers") and not topics & set(urls):
            raise Refusal("nobody has subscribed")
        for url in dict.fromkeys(urls):
            self._own(self._sending.distribute(url))
        return web.Response(status=204)

    def _split(self, value: str) -> list[str]:
        return [value] if self.has("takes no list") else value.split(",")

    # Subscribers

    async def _subscribe(self, fields: dict[str, str]) -> None:
        wish = self._read(fields)
        if self.has("changes before it verifies"):
            await self._apply(wish, 60)
        if self.has("never subscribes"):
            return
        work = self._decide(wish)
        if self.has("verifies before it answers"):
            await work
        else:
            self._own(work)

    def _read(self, fields: dict[str, str]) -> Wish:
        mode, topic, callback = (
            fields.get(name, "") for name in ("hub.mode", "hub.topic", "hub.callback")
        )
        if not self.has("takes everything"):
            if mode not in ("subscribe", "unsubscribe"):
                raise Refusal(f"hub.mode {mode!r} is unknown")
            if not (topic.startswith("http") and callback.startswith("http")):
                raise Refusal("hub.topic and hub.callback have to be URLs")
        if self.has("refuses what it does not know") and "hub.foo" in fields:
            raise Refusal("hub.foo is unknown")
        size = len(fields.get("hub.secret", "").encode())
        if size >= 200 and not self.has("takes long secrets"):
            raise Refusal(f"hub.secret has {size} bytes; less than 200 are allowed")
        return Wish(mode, topic, self._callback(callback), fields)

    def _callback(self, callback: str) -> str:
        if self.has("tidies callbacks"):
            split = urlsplit(callback)
            return split._replace(path=split.path.replace("//", "/")).geturl()
        return callback.partition("?")[0] if self.has("drops the query") else callback

    async def _decide(self, wish: Wish) -> None:
        """Validation, verification, and what comes of them."""
        is_asked = wish.mode == "subscribe" or self.has("asks the publisher at the end")
        if is_asked and not await self._is_there(wish):
            return
        lease_s = self._lease(wish)
        if not await self._is_confirmed(wish, lease_s):
            return
        await asyncio.sleep(VERIFIED_AFTER_S)
        await self._apply(wish, lease_s)

    async def _is_there(self, wish: Wish) -> bool:
        answer = await self._client.get(wish.topic)
        named = [link.strip() for link in answer.headers.get("Link", "").split(",")]
        if answer.status_code == 200 and any(
            normal(link) == f'<{normal(wish.topic)}>; rel="self"' for link in named
        ):
            return True
        await self._deny(wish)
        return False

    async def _deny(self, wish: Wish) -> None:
        parameters = [("hub.mode", "denied"), ("hub.reason", "the topic can't be read")]
        if not self.has("denies without a topic"):
            parameters.append(("hub.topic", wish.topic))
        await self._client.get(appended(wish.callback, parameters))

    def _lease(self, wish: Wish) -> int:
        asked = wish.fields.get("hub.lease_seconds", "")
        if self.has("grants everything"):
            return int(asked) if asked.removeprefix("-").isdigit() else DEFAULT_LEASE_S
        if not asked.isdigit() or int(asked) == 0:
            return DEFAULT_LEASE_S
        return min(int(asked), LONGEST_LEASE_S)

    async def _is_confirmed(self, wish: Wish, lease_s: int) -> bool:
        challenge = "always the same" if self.has("reuses challenges") else secrets.token_hex(16)
        topic = "http://127.0.0.1/other" if self.has("names another topic") else wish.topic
        parameters = [("hub.mode", wish.mode), ("hub.topic", topic), ("hub.challenge", challenge)]
        if not self.has("tells no lease"):
            parameters.append(("hub.lease_seconds", str(lease_s)))
        if self.has("garbles tokens") and "hub.verify_token" in wish.fields:
            parameters.append(("hub.verify_token", "t"))
        is_following = self.has("follows redirects when it verifies")
        url = appended(wish.callback, parameters)
        answer = await self._client.get(url, follow_redirects=is_following)
        is_good = answer.is_success or self.has("believes every status")
        return is_good and (answer.text == challenge or self.has("believes every body"))

    async def _apply(self, wish: Wish, lease_s: int) -> None:
        if wish.mode == "unsubscribe":
            if not self.has("never ends"):
                self._subscribers.pop(wish.key, None)
            return
        if self.has("knows one topic a callback"):
            for key in [key for key in self._subscribers if key[1] == wish.callback]:
                del self._subscribers[key]
        self._subscribers[wish.key] = self._made(wish, lease_s)

    def _made(self, wish: Wish, lease_s: int) -> Subscriber:
        secret = wish.fields.get("hub.secret", "")
        if self.has("cuts secrets"):
            secret = secret[:64]
        old = self._subscribers.get(wish.key)
        copies, ends_at = 1, time.monotonic() + lease_s
        if old is not None:
            if (self.has("keeps the first secret") and secret) or (
                self.has("never clears a secret") and not secret
            ):
                secret = old.secret
            if self.has("subscribes twice"):
                copies = old.copies + 1
            if self.has("keeps the first lease"):
                ends_at = old.ends_at
        return Subscriber(wish.topic, wish.callback, secret, ends_at, copies)

    # Running

    def _own(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        port = urlsplit(self.url).port
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._tasks:  # most end by themselves, some wait for another attempt
            await asyncio.wait(self._tasks, timeout=LAST_WORDS_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._runner.cleanup()
        await self._client.aclose()


def appended(url: str, parameters: list[tuple[str, str]]) -> str:
    added = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters)
    return url + ("" if url.endswith("?") else "&" if "?" in url else "?") + added
