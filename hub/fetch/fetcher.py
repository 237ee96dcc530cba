"""Gets pages, following redirects, within bounds of time, hops and bytes.

httpx would inflate 194 KB to 200 MB, so bodies are taken raw and decoded under a cap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urldefrag, urljoin

import httpx

from ..errors import CallbackRefused
from ..guard.guard import Guard
from ..settings import HubSettings
from ..verification.verify import Turns, origin
from .decoding import ACCEPTED, DecodingFailed, decode
from .page import FetchFailed, Page
from .pinned import Pinned

MAX_HOPS = 5
_REDIRECTS = frozenset((301, 302, 303, 307, 308))


class Fetcher:
    """So many fetches at once, and fewer of them from each host; others wait for their turn."""

    def __init__(self, settings: HubSettings, guard: Guard) -> None:
        self._settings = settings
        self._guard = guard
        self._pinned = Pinned(guard, settings.fetch_max_bytes, settings.connect_timeout_s)
        self._turns = Turns(settings.fetch_concurrency, settings.fetch_per_host)

    async def get(self, url: str, headers: Mapping[str, str]) -> Page:
        """What is there after at most five redirects, each vetted as the URL itself.

        Raises `FetchFailed`.
        """
        try:
            async with self._turns.take(origin(self._guard.check(url))):
                return await self._in_time(url, headers)
        except CallbackRefused as error:
            raise FetchFailed(f"it {error.reason}") from error

    async def close(self) -> None:
        await self._pinned.close()

    async def _in_time(self, url: str, headers: Mapping[str, str]) -> Page:
        limit_s = self._settings.fetch_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await self._follow(url, {"Accept-Encoding": ACCEPTED, **headers})
        except TimeoutError as error:
            raise FetchFailed(f"it was not fetched within {limit_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise FetchFailed(f"it can't be fetched: {error!r}") from error

    async def _follow(self, url: str, headers: Mapping[str, str]) -> Page:
        for _ in range(MAX_HOPS + 1):
            page = await self._get(url, headers)
            if page.status not in _REDIRECTS or not page.first("location"):
                return page
            url = _target(url, page.first("location"))
        raise FetchFailed(f"it redirects more than {MAX_HOPS} times")

    async def _get(self, url: str, headers: Mapping[str, str]) -> Page:
        async with self._pinned.send("GET", url, headers) as response:
            fields = tuple(
                (name.decode("latin-1").lower(), value.decode("latin-1"))
                for name, value in response.headers.raw
            )
            page = Page(url, response.status_code, fields)
            if not response.is_success:
                return page
            return Page(url, page.status, fields, await self._body(page, response))

    async def _body(self, page: Page, response: httpx.Response) -> bytes:
        limit = self._settings.fetch_max_bytes
        pieces, length = [], 0
        async for piece in response.aiter_raw():
            pieces.append(piece)
            length += len(piece)
            if length > limit:
                raise FetchFailed(f"its body is longer than {limit} bytes")
        coding = ", ".join(page.all("content-encoding"))
        try:
            return await asyncio.to_thread(decode, b"".join(pieces), coding, limit)
        except DecodingFailed as error:
            raise FetchFailed(f"its body {error}") from error


def _target(url: str, location: str) -> str:
    try:
        return urldefrag(urljoin(url, location)).url
    except ValueError as error:
        raise FetchFailed(f"it redirects to what is no URL: {error}") from error
