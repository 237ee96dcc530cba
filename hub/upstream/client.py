"""The requests of this hub as a subscriber: discovery, subscribe and unsubscribe.

The guard vets the address of every request.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import urlencode, urljoin

from ..errors import CallbackRefused, NotResolved
from ..fetch.fetcher import Fetcher, client_for_pages
from ..fetch.page import FetchedPage, FetchFailed, page_of
from ..guard.callback_url import Endpoint, read_callback
from ..guard.domains import owner_of
from ..guard.guard import Guard
from ..links.remote import find_links
from ..request_limiter import RequestLimiter
from ..sender.port import SendError
from ..settings import HubSettings
from ..workers.pool import Workers, WorkFailed
from .location import TopicLocation, UpstreamFailed
from .upstream import Upstream, UpstreamLease, UpstreamRequest

MAX_MOVES = 5
_MOVED = frozenset((307, 308))
_SHOWN_BYTES = 200
"""How much of a hub's answer is shown as its reason."""
_NOT_SHOWN = re.compile(r"[^!-~]+")
_FORM = "application/x-www-form-urlencoded"
_ADVICE = {401: ": 'username' and 'password' are missing or wrong"}

Result = TypeVar("Result")


class HubClient:
    """Sends requests to topics and to other hubs."""

    def __init__(self, settings: HubSettings, guard: Guard, workers: Workers) -> None:
        self._settings = settings
        self._workers = workers
        self._guard = guard
        self._fetcher = Fetcher(settings, guard)
        self._client = client_for_pages(settings, guard)
        self._limiter = RequestLimiter(settings.fetch_concurrency, settings.fetch_per_domain)

    async def find_hub(self, request: UpstreamRequest, authorization: str | None) -> TopicLocation:
        """Returns a topic's hub (WebSub 4): Link fields before the document, https before http.

        Raises `UpstreamFailed`.
        """
        if request.hub:
            return TopicLocation(request.hub, request.url)
        page = await self._page(request.url, authorization)
        if not 200 <= page.status < 300:
            advice = _ADVICE.get(page.status, "")
            raise UpstreamFailed(f"the topic {page.url} answered {page.status}{advice}")
        try:
            links = await find_links(self._workers, page)
        except WorkFailed as error:
            raise UpstreamFailed(f"the topic {page.url}: {error}") from error
        if not links.hubs:
            raise UpstreamFailed(f"the topic {page.url} names no hub: give one as 'hub'")
        return TopicLocation(links.hubs[0], links.self_url or page.url)

    async def ask(self, mode: str, upstream: Upstream, lease: UpstreamLease) -> None:
        """Sends a request; returns when the hub has accepted it, before or after it verifies it.

        Raises `UpstreamFailed`.
        """
        form = {
            "hub.mode": mode,
            "hub.topic": lease.topic,
            "hub.callback": upstream.callback(lease),
            "hub.verify": "async",  # PubSubHubbub 0.3 requires it
        }
        if mode == "subscribe":
            form["hub.lease_seconds"] = str(upstream.request.lease_seconds)
            if lease.secret is not None:
                form["hub.secret"] = lease.secret
        what = f"the hub {lease.hub_url}"
        try:
            headers, content = self._headers(upstream, lease), urlencode(form).encode()
            await self._in_time(what, self._post(lease.hub_url, headers, content))
        except UpstreamFailed as error:
            # The hub may have repeated what was sent.
            raise UpstreamFailed(_without(str(error), lease.token, lease.secret)) from error

    async def close(self) -> None:
        """Closes all connections."""
        await self._fetcher.close()
        self._client.close()

    def _headers(self, upstream: Upstream, lease: UpstreamLease) -> dict[str, str]:
        """Returns the headers, with credentials for the origin of the topic or the configured hub.

        Any other hub that a page names does not get them.
        """
        headers = {"Content-Type": _FORM}
        trusted = upstream.request.hub or upstream.request.url
        if upstream.leases.authorization is not None and _is_same_origin(lease.hub_url, trusted):
            headers["Authorization"] = upstream.leases.authorization
        return headers

    async def _post(self, url: str, headers: dict[str, str], form: bytes) -> None:
        async with self._limiter.take([owner_of(self._guard.check(url).host)]):
            await self._follow(url, headers, form)

    async def _follow(self, url: str, headers: dict[str, str], form: bytes) -> None:
        """Follows redirects (WebSub 5.1), to another origin without credentials."""
        for _ in range(MAX_MOVES + 1):
            self._guard.check(url)
            limit_s = self._settings.fetch_timeout_s
            response = await self._client.ask("POST", url, headers, form, limit_s)
            status, location = response.status, page_of(url, response, b"").first("location")
            if 200 <= status < 300:
                return
            if status not in _MOVED or not location:
                reason = _beginning(response.body)
                raise UpstreamFailed(f"the hub {url} answered {status}{reason and ': ' + reason}")
            moved = _target(url, location)
            if url.startswith("https:") and not moved.startswith("https:"):
                raise UpstreamFailed(
                    f"the hub {url} has moved to {moved[:_SHOWN_BYTES]}, without TLS"
                )
            if not _is_same_origin(moved, url):
                headers = {name: headers[name] for name in headers if name != "Authorization"}
            url = moved
        raise UpstreamFailed(f"too many hub redirects (limit {MAX_MOVES}), last {url}")

    async def _page(self, url: str, authorization: str | None) -> FetchedPage:
        try:
            if authorization is None:
                return await self._fetcher.get(url, {})
            return await self._in_time(f"the topic {url}", self._get_once(url, authorization))
        except (FetchFailed, ValueError) as error:
            raise UpstreamFailed(f"the topic {url}: {error}") from error

    async def _get_once(self, url: str, authorization: str) -> FetchedPage:
        """Returns the answer without following a redirect, which could lead the password
        elsewhere."""
        headers = {"Authorization": authorization, "Accept-Encoding": "identity"}
        self._guard.check(url)
        response = await self._client.ask("GET", url, headers, b"", self._settings.fetch_timeout_s)
        if response.broken:
            raise FetchFailed(f"it can't be fetched: {response.broken}")
        return page_of(url, response, response.body)

    async def _in_time(self, what: str, work: Coroutine[Any, Any, Result]) -> Result:
        limit_s = self._settings.fetch_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await work
        except TimeoutError as error:
            raise UpstreamFailed(f"{what} did not answer within {limit_s:g} s") from error
        except CallbackRefused as error:
            raise UpstreamFailed(f"{what}: {error.value} {error.reason}") from error
        except (SendError, NotResolved, ValueError) as error:
            # ValueError: the Location is no URL.
            raise UpstreamFailed(f"{what} can't be asked: {error}") from error


def _is_same_origin(url: str, other: str) -> bool:
    return _origin(read_callback(url)) == _origin(read_callback(other))


def _origin(endpoint: Endpoint) -> tuple[str, str, int]:
    """Returns the origin of a URL (RFC 6454 4)."""
    return endpoint.scheme, endpoint.host, endpoint.port


def _target(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError as error:
        raise UpstreamFailed(f"the hub {url} has moved to what is no URL: {error}") from error


def _without(text: str, *secrets: str | None) -> str:
    """Returns the text with the secrets replaced."""
    for secret in filter(None, secrets):
        text = text.replace(secret, "...")
    return text


def _beginning(body: bytes) -> str:
    """Returns the printable beginning of an answer."""
    return _NOT_SHOWN.sub(" ", body[:_SHOWN_BYTES].decode("latin-1")).strip()
