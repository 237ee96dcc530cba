"""Asks a callback whether it wants what somebody asked for in its name (WebSub 5.3).

The name is resolved once and the vetted address dialled; the `Host` header and TLS name stay
those of the URL. No redirect is followed, no environment proxy used, nothing kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
from collections.abc import AsyncIterator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from weakref import WeakValueDictionary

import httpx

from .addresses import Address
from .errors import VerificationFailed
from .guard import Endpoint, Guard
from .intent import Intent, append_query
from .sender.bounded_backend import BoundedTransport
from .settings import HubSettings

USER_AGENT = "Warren"
CHALLENGE_BYTES = 32
TURNS_PER_ORIGIN = 10  # of all turns, so that no target can hold all of them
_FIELD = "hub.callback"


class Verifier:
    """Each question has a new challenge, which only that answer can carry."""

    def __init__(self, settings: HubSettings, guard: Guard) -> None:
        self._settings = settings
        self._guard = guard
        self.turns = Turns(settings.verify_concurrency, TURNS_PER_ORIGIN)
        self._client = _client(settings)

    async def verify(self, mode: str, intent: Intent) -> None:
        """Returns if the callback echoes the challenge with a 2xx; else `VerificationFailed`.

        Raises `CallbackRefused` when its name resolves to an address that is not sent to.
        """
        callback, challenge = intent.callback, secrets.token_urlsafe(CHALLENGE_BYTES)
        status, body = await self._ask(callback, question(mode, intent, challenge))
        if not 200 <= status < 300:
            raise _failed(callback, f"the callback answered {status}")
        if body != challenge.encode():
            raise _failed(callback, "the callback did not answer with the challenge")

    async def close(self) -> None:
        await self._client.aclose()

    async def _ask(self, callback: str, url: str) -> tuple[int, bytes]:
        endpoint = self._guard.check(url)
        late = "too many verifications at once; it did not get its turn in time"
        try:
            async with asyncio.timeout(self._settings.verify_timeout_s):
                async with self.turns.take(origin(endpoint)):
                    late = "the callback did not answer in time"
                    return await self._get(url, endpoint)
        except TimeoutError as error:
            raise _failed(callback, late, f"{self._settings.verify_timeout_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise _failed(callback, f"the callback can't be asked: {error!r}") from error

    async def _get(self, url: str, endpoint: Endpoint) -> tuple[int, bytes]:
        if endpoint.literal is not None:
            return await self._get_from(url, endpoint.host, endpoint.literal)
        addresses = await self._guard.resolve(endpoint.host, endpoint.port)
        for address in addresses[:-1]:
            try:
                return await self._get_from(url, endpoint.host, address)
            except httpx.ConnectError:
                continue  # the next address of the same name
        return await self._get_from(url, endpoint.host, addresses[-1])

    async def _get_from(self, url: str, host: str, address: Address) -> tuple[int, bytes]:
        target = httpx.URL(url)
        request = self._client.build_request(
            "GET",
            target.copy_with(host=str(address)),
            headers={"Host": target.netloc.decode("ascii")},
            extensions={"sni_hostname": host},
        )
        answer = await self._client.send(request, stream=True)
        try:
            return answer.status_code, await self._read(answer)
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
    parameters = [("hub.mode", mode), ("hub.topic", intent.topic), ("hub.challenge", challenge)]
    if mode == "subscribe":
        parameters.append(("hub.lease_seconds", str(intent.lease_seconds)))
    if intent.verify_token is not None:
        parameters.append(("hub.verify_token", intent.verify_token))
    return append_query(intent.callback, *parameters)


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
