"""Fetches pages, with limits of time, redirects and size.

Bodies are decoded up to the limit: 194 KB may decode to 200 MB.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urldefrag, urljoin

from ..errors import CallbackRefused, NotResolved
from ..guard.domains import owner_of
from ..guard.egress import make_dialler
from ..guard.guard import Guard
from ..guard.lookups import Purpose
from ..request_limiter import RequestLimiter
from ..sender.client import HttpClient
from ..sender.port import SendError
from ..sender.response import Response, ResponseLimits
from ..settings import HubSettings
from .decoding import ACCEPTED, DecodingFailed, decode
from .page import FetchedPage, FetchFailed, page_of

MAX_HOPS = 5
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_FOR_GOOD = frozenset((301, 308))


class Fetcher:
    """Fetches pages, a limited number at a time, in all and for each registered domain."""

    def __init__(self, settings: HubSettings, guard: Guard) -> None:
        self._settings = settings
        self._guard = guard
        self._client = client_for_pages(settings, guard)
        self._limiter = RequestLimiter(settings.fetch_concurrency, settings.fetch_per_domain)

    async def get(self, url: str, headers: Mapping[str, str]) -> FetchedPage:
        """Returns the page after at most five redirects, each vetted as the URL itself.

        Raises `FetchFailed`.
        """
        try:
            async with self._limiter.take([owner_of(self._guard.check(url).host)]):
                return await self._in_time(url, headers)
        except CallbackRefused as error:
            raise FetchFailed(f"it {error.reason}") from error

    async def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    async def _in_time(self, url: str, headers: Mapping[str, str]) -> FetchedPage:
        limit_s = self._settings.fetch_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await self._follow(url, {"Accept-Encoding": ACCEPTED, **headers})
        except TimeoutError as error:
            raise FetchFailed(f"it was not fetched within {limit_s:g} s") from error
        except (SendError, NotResolved) as error:
            raise FetchFailed(f"it can't be fetched: {error}") from error

    async def _follow(self, url: str, headers: Mapping[str, str]) -> FetchedPage:
        moved_to, is_for_good = "", True
        for _ in range(MAX_HOPS + 1):
            page = await self._get(url, headers)
            if page.status not in _REDIRECTS or not page.first("location"):
                return replace(page, moved_to=moved_to) if moved_to else page
            url = _target(url, page.first("location"))
            is_for_good = is_for_good and page.status in _FOR_GOOD
            moved_to = url if is_for_good else moved_to
        raise FetchFailed(f"too many redirects (limit {MAX_HOPS})")

    async def _get(self, url: str, headers: Mapping[str, str]) -> FetchedPage:
        self._guard.check(url)
        response = await self._client.ask("GET", url, headers, b"", self._settings.fetch_timeout_s)
        if not 200 <= response.status < 300:
            return page_of(url, response, b"")
        return page_of(url, response, await self._body(response))

    async def _body(self, response: Response) -> bytes:
        if response.broken:
            raise FetchFailed(f"it can't be fetched: {response.broken}")
        coding = ", ".join(page_of("", response, b"").all("content-encoding"))
        try:
            return await asyncio.to_thread(
                decode, response.body, coding, self._settings.fetch_max_bytes
            )
        except DecodingFailed as error:
            raise FetchFailed(f"its body {error}") from error


def client_for_pages(settings: HubSettings, guard: Guard) -> HttpClient:
    """Returns a client that writes header values as ISO 8859-1, as responses are read."""
    dialler = make_dialler(settings, guard, Purpose.FETCH)
    limits = ResponseLimits(settings.fetch_max_bytes, keeps_body=True)
    return HttpClient(guard, dialler, limits, encoding="latin-1")


def _target(url: str, location: str) -> str:
    try:
        return urldefrag(urljoin(url, location)).url
    except ValueError as error:
        raise FetchFailed(f"it redirects to what is no URL: {error}") from error
