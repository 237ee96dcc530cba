"""How the small hub of `wrong_hub.py` distributes what has changed."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from warrenmq.app.conformance.expect import normal

TRIES = 3
PAUSE_S = 0.2
LONG_PAUSE_S = 1.5
_OWN_TITLE = re.compile(rb"<title>Conformance</title>")


@dataclass(frozen=True, slots=True)
class Subscriber:
    topic: str
    callback: str
    secret: str
    ends_at: float
    copies: int

    @property
    def key(self) -> tuple[str, str]:
        return self.topic, self.callback


@dataclass(frozen=True, slots=True)
class Content:
    type: str
    body: bytes


class Sending:
    """`subscribers` are the hub's own, as they are when something is sent."""

    def __init__(
        self,
        hub: str,
        faults: frozenset[str],
        client: httpx.AsyncClient,
        subscribers: dict[tuple[str, str], Subscriber],
    ) -> None:
        self._hub = hub
        self._faults = faults
        self._client = client
        self._subscribers = subscribers
        self._seen: dict[str, Content] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._secret = ""
        self._count = 0

    def _has(self, fault: str) -> bool:
        return fault in self._faults

    async def distribute(self, url: str) -> None:
        turn = self._locks.setdefault(normal(url), asyncio.Lock())
        if turn.locked() and self._has("forgets pings while it fetches"):
            return
        async with turn:
            answer = await self._client.get(url)
            content = Content(answer.headers["Content-Type"], answer.content)
            if self._has("forgets pings while it fetches"):
                await asyncio.sleep(LONG_PAUSE_S)
            before = self._seen.get(url)
            self._seen[url] = content
            if content == before and not self._has("sends what has not changed"):
                return
            found = [one for one in self._subscribers.values() if self._is_wanted(one, url)]
            content = self._spoilt(content, before)
            if self._has("sends one after the other"):
                for one in found:
                    await self._send(one, content)
                return
        await asyncio.gather(
            *(self._send(one, content) for one in found for _ in range(one.copies))
        )

    def _is_wanted(self, one: Subscriber, url: str) -> bool:
        if one.ends_at < time.monotonic() and not self._has("ignores the end of leases"):
            return False
        if self._has("compares topics as they are spelled"):
            return one.topic == url
        return normal(one.topic) == normal(url)

    def _spoilt(self, content: Content, before: Content | None) -> Content:
        body, kind = content.body, content.type
        if self._has("trims bodies"):
            body = body.strip()
        if self._has("reformats JSON") and "json" in kind:
            body = body.replace(b" ", b"")
        if self._has("thinks that all is text"):
            body = body.decode(errors="replace").encode()
        if self._has("cuts large bodies"):
            body = body[:100_000]
        if self._has("sends additions") and before and body.startswith(before.body):
            body = body[len(before.body) :]
        if self._has("drops what is the feed's own"):
            body = _OWN_TITLE.sub(b"", body)
        if self._has("changes entries"):
            body = body.replace(b"urn:example:1", b"urn:other:1")
        if self._has("drops the newest entry"):
            body = re.sub(rb"<(entry|item)>.*?</\1>\n", b"", body, count=1, flags=re.DOTALL)
        if self._has("drops parameters of types"):
            kind = kind.partition(";")[0]
        if self._has("sends no body"):
            body = b""
        return Content(kind, body)

    async def _send(self, one: Subscriber, content: Content) -> None:
        self._count += 1
        identity = f"m{self._count}"
        for _ in range(1 if self._has("never tries again") else TRIES):
            pause_s = await self._attempt(one, content, identity)
            if pause_s is None:
                return
            if self._has("ends what fails"):
                self._subscribers.pop(one.key, None)
                return
            await asyncio.sleep(pause_s)

    async def _attempt(self, one: Subscriber, content: Content, identity: str) -> float | None:
        """None when it is over, else how long to wait."""
        if self._has("names each attempt anew"):
            self._count += 1
            identity = f"m{self._count}"
        headers = self._headers(one, content) | {"webhook-id": identity}
        try:
            answer = await self._client.post(
                one.callback,
                content=content.body,
                headers=headers,
                follow_redirects=self._has("follows redirects when it sends"),
            )
        except httpx.HTTPError:
            return PAUSE_S
        if answer.status_code == 410 and not self._has("goes on after 410"):
            self._subscribers.pop(one.key, None)
            return None
        is_taken = answer.is_success
        if self._has("takes 200 alone for success"):
            is_taken = answer.status_code == 200
        return None if is_taken else self._pause(answer.headers)

    def _pause(self, headers: Mapping[str, str]) -> float:
        if self._has("does not wait as asked"):
            return PAUSE_S
        if self._has("sends one after the other"):
            return LONG_PAUSE_S
        return float(headers.get("Retry-After", PAUSE_S))

    def _headers(self, one: Subscriber, content: Content) -> dict[str, str]:
        headers = {"Content-Type": content.type} | self._links(one)
        secret = one.secret or ("some" if self._has("signs without a secret") else "")
        if self._has("signs everything with one secret"):
            self._secret = secret = self._secret or secret
        if secret and not self._has("signs nothing"):
            headers["X-Hub-Signature"] = self._signature(secret, content.body)
        return headers

    def _links(self, one: Subscriber) -> dict[str, str]:
        hub, itself = f'<{self._hub}>; rel="hub"', f'<{one.topic}>; rel="self"'
        if self._has("does not name itself"):
            return {"Link": itself}
        if self._has("does not name the topic"):
            return {"Link": hub}
        if self._has("sends two Link headers"):
            return {"Link": hub, "link": itself}
        return {"Link": f"{hub}, {itself}"}

    def _signature(self, secret: str, body: bytes) -> str:
        method = "sha1" if self._has("signs with SHA-1") else "sha256"
        if self._has("signs with MD5"):
            method = "md5"
        signed = body + b" " if self._has("signs something else") else body
        return f"{method}={hmac.digest(secret.encode(), signed, method).hex()}"
