"""Asks a callback whether it wants what somebody asked for in its name (WebSub 5.3).

The name is resolved once and the vetted address dialled; the `Host` header and TLS name stay
those of the URL. No redirect is followed, no environment proxy used, nothing kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from weakref import WeakValueDictionary

import httpx

from ..errors import VerificationFailed
from ..guard.addresses import Address
from ..guard.guard import Endpoint, Guard
from ..sender.bounded_backend import BoundedTransport
from ..settings import HubSettings
from ..subscriptions.intent import Intent, append_query

USER_AGENT = "Warren"
CHALLENGE_BYTES = 32
TURNS_PER_ORIGIN = 10  # of all turns, so that no target can hold all of them
_FIELD = "hub.callback"


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    took_s: float


class Verifier:
    """Each question has a new challenge, which only that answer can carry."""

    def __init__(self, settings: HubSettings, guard: Guard) -> None:
        self._settings = settings
        self._guard = guard
        self.turns = Turns(settings.verify_concurrency, TURNS_PER_ORIGIN)
        # Apart, so that those who wait for an answer don't stand behind those who don't.
        self.patient_turns = Turns(settings.verify_concurrency, TURNS_PER_ORIGIN)
        self._client = _client(settings)

    async def verify(self, mode: str, intent: Intent, *, is_patient: bool = False) -> float:
        """How many seconds ago the callback was asked which has echoed the challenge with a 2xx.

        Raises `VerificationFailed` for any other answer, and `CallbackRefused` when its name
        resolves to an address that is not sent to. Who is patient waits for a turn as long as
        it takes; for others the wait is part of `verify_timeout_s`.
        """
        challenge = secrets.token_urlsafe(CHALLENGE_BYTES)
        url = question(mode, intent, challenge)
        answer = await self._ask(intent.callback, url, intent.basic_auth, is_patient)
        if not 200 <= answer.status < 300:
            raise _failed(intent.callback, f"the callback answered {answer.status}")
        if answer.body != challenge.encode():
            raise _failed(intent.callback, "the callback did not answer with the challenge")
        return answer.took_s

    async def tell(self, callback: str, url: str, basic_auth: str | None = None) -> int:
        """The status that a URL of the callback answers, which is got for what it tells.

        Raises as `verify`; waits for its turn as long as it takes.
        """
        return (await self._ask(callback, url, basic_auth, is_patient=True)).status

    async def close(self) -> None:
        await self._client.aclose()

    async def _ask(
        self, callback: str, url: str, basic_auth: str | None = None, is_patient: bool = False
    ) -> _Answer:
        endpoint = self._guard.check(callback)
        turns = self.patient_turns if is_patient else self.turns
        limit_s, loop = self._settings.verify_timeout_s, asyncio.get_running_loop()
        late = "too many verifications at once; it did not get its turn in time"
        try:
            async with asyncio.timeout(None if is_patient else limit_s) as bound:
                async with turns.take(origin(endpoint)):
                    late = "the callback did not answer in time"
                    if is_patient:
                        bound.reschedule(loop.time() + limit_s)
                    return await self._get(url, endpoint, basic_auth)
        except TimeoutError as error:
            raise _failed(callback, late, f"{limit_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise _failed(callback, f"the callback can't be asked: {error!r}") from error

    async def _get(self, url: str, endpoint: Endpoint, basic_auth: str | None) -> _Answer:
        if endpoint.literal is not None:
            return await self._get_from(url, endpoint.host, endpoint.literal, basic_auth)
        addresses = await self._guard.resolve(endpoint.host, endpoint.port)
        for address in addresses[:-1]:
            try:
                return await self._get_from(url, endpoint.host, address, basic_auth)
            except httpx.ConnectError:
                continue  # the next address of the same name
        return await self._get_from(url, endpoint.host, addresses[-1], basic_auth)

    async def _get_from(
        self, url: str, host: str, address: Address, basic_auth: str | None
    ) -> _Answer:
        target, loop = httpx.URL(url), asyncio.get_running_loop()
        headers = {"Host": target.netloc.decode("ascii")}
        if basic_auth is not None:
            headers["Authorization"] = f"Basic {basic_auth}"
        request = self._client.build_request(
            "GET",
            target.copy_with(host=str(address)),
            headers=headers,
            # The path and query as they are given (WebSub 5.1), which httpx would tidy up.
            extensions={"sni_hostname": host, "target": _path_of(url).encode("ascii")},
        )
        asked_at = loop.time()
        answer = await self._client.send(request, stream=True)
        try:
            body = await self._read(answer)
            return _Answer(answer.status_code, body, loop.time() - asked_at)
        finally:
            await answer.aclose()

    async def _read(self, answer: httpx.Response) -> bytes:
        """The body as sent, cut a little after the length of any challenge."""
        body = b""
        async for chunk in answer.aiter_raw():
            body += chunk
            if len(body) > self._settings.max_response_bytes:
                break
        return body


class Turns:
    """Turns to ask: so many at once, and fewer of them for each origin."""

    def __init__(self, total: int, per_origin: int) -> None:
        self._total = asyncio.Semaphore(total)
        self._per_origin = per_origin
        # Each is kept by those who wait for it or hold it.
        self._origins: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @contextlib.asynccontextmanager
    async def take(self, origin: str) -> AsyncIterator[None]:
        """A turn, when there is one; who waits for those of its origin holds none of the rest."""
        own = self._origins.setdefault(origin, asyncio.Semaphore(self._per_origin))
        async with own, self._total:
            yield


def origin(endpoint: Endpoint) -> str:
    """What has turns of its own (RFC 6454 4)."""
    return f"{endpoint.scheme}://{endpoint.host}:{endpoint.port}"


def question(mode: str, intent: Intent, challenge: str) -> str:
    """The URL to get: the callback's own query, then ours (WebSub 5.3.1)."""
    parameters = [
        ("hub.mode", mode),
        ("hub.topic", intent.shown_topic),
        ("hub.challenge", challenge),
    ]
    if mode == "subscribe":
        parameters.append(("hub.lease_seconds", str(intent.lease_seconds)))
    if intent.verify_token is not None:
        parameters.append(("hub.verify_token", intent.verify_token))
    return append_query(intent.callback, *parameters)


def _path_of(url: str) -> str:
    """Path and query, to the octet."""
    authority_and_rest = url.partition("://")[2]
    begin = re.search("[/?]", authority_and_rest)
    path = authority_and_rest[begin.start() :] if begin else "/"
    return path if path.startswith("/") else f"/{path}"


def _client(settings: HubSettings) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        follow_redirects=False,
        trust_env=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
        timeout=settings.verify_timeout_s,
        # With the system's authorities, as for deliveries.
        transport=BoundedTransport(settings.max_response_bytes, ssl.create_default_context()),
    )


def _failed(callback: str, reason: str, limit: str | None = None) -> VerificationFailed:
    return VerificationFailed(reason, field=_FIELD, value=callback, limit=limit)
