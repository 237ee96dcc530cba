"""HTTP to strangers' URLs, each request dialled at an address that the guard has vetted.

The name is resolved once; the `Host` header and the name for TLS stay those of the URL. No
redirect is followed, no environment proxy used, no cookie and no connection kept.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from ..guard.addresses import Address
from ..guard.guard import Endpoint, Guard
from ..sender.bounded_backend import BoundedTransport

_FRAMING_SHARE = 8  # chunk sizes may take an eighth of what the body does


class Pinned:
    """Connections that take an answer of at most about `max_body_bytes`."""

    def __init__(self, guard: Guard, max_body_bytes: int, connect_timeout_s: float) -> None:
        self._guard = guard
        max_bytes = max_body_bytes + max_body_bytes // _FRAMING_SHARE
        self._client = httpx.AsyncClient(
            follow_redirects=False,
            trust_env=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=httpx.Timeout(None, connect=connect_timeout_s),
            # With the system's authorities, as for deliveries.
            transport=BoundedTransport(max_bytes, ssl.create_default_context()),
        )

    @contextlib.asynccontextmanager
    async def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> AsyncIterator[httpx.Response]:
        """An answer whose body is still to be read (`aiter_raw`).

        Values of headers are sent as ISO 8859-1. Raises `CallbackRefused` for a URL that the
        guard refuses, and httpx's errors; whoever calls sees to the time it takes.
        """
        endpoint = self._guard.check(url)
        response = await self._send(method, url, endpoint, headers, content)
        try:
            yield response
        finally:
            await response.aclose()

    async def close(self) -> None:
        await self._client.aclose()

    async def _send(
        self,
        method: str,
        url: str,
        endpoint: Endpoint,
        headers: Mapping[str, str],
        content: bytes | None,
    ) -> httpx.Response:
        addresses = await self._addresses(endpoint)
        for address in addresses[:-1]:
            try:
                return await self._send_to(address, method, url, endpoint, headers, content)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # the next address of the same name
        return await self._send_to(addresses[-1], method, url, endpoint, headers, content)

    async def _addresses(self, endpoint: Endpoint) -> list[Address]:
        if endpoint.literal is not None:
            return [endpoint.literal]
        return await self._guard.resolve(endpoint.host, endpoint.port)

    async def _send_to(
        self,
        address: Address,
        method: str,
        url: str,
        endpoint: Endpoint,
        headers: Mapping[str, str],
        content: bytes | None,
    ) -> httpx.Response:
        target = httpx.URL(url)
        request = self._client.build_request(
            method,
            target.copy_with(host=str(address)),
            headers=[(b"Host", target.netloc), *_encoded(headers)],
            content=content,
            extensions={"sni_hostname": endpoint.host},
        )
        return await self._client.send(request, stream=True)


def _encoded(headers: Mapping[str, str]) -> Iterator[tuple[bytes, bytes]]:
    for name, value in headers.items():
        yield name.encode("ascii"), value.encode("latin-1")
