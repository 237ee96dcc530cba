"""Fetches feeds with conditional requests, and reads them in worker processes."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..fetch.conditional import Validators, refusal_of, user_agent, validators_of
from ..fetch.page import FetchedPage, FetchFailed
from ..formats.read_feed import Candidate, ReadFeed
from ..formats.reading import NoFeed, read
from ..links.discovery import Links, discover
from ..links.feeds import feeds_of_fields
from ..settings import HubSettings
from ..workers.pool import Workers, WorkFailed, WorkRefused
from .feed import Feed
from .schedule import fresh_s

if TYPE_CHECKING:
    from ..fetch.fetcher import Fetcher

_CONTACT = "/"
_ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml;q=0.9, "
    "application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;q=0.5"
)
_MAX_LINK_CHARACTERS = 2_048
"""Longer Link fields are not read: they may have thousands of links."""
NO_LINKS = Links()


class FeedFailed(WarrenError):
    """A feed could not be fetched or read."""

    def __init__(
        self,
        reason: str,
        *,
        wait_s: float = 0.0,
        is_gone: bool = False,
        candidates: tuple[Candidate, ...] = (),
        unread: FetchedPage | None = None,
    ) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
        """How long its server does not want to be asked again."""
        self.is_gone = is_gone
        """Whether its server says that it is gone for good (410)."""
        self.candidates = candidates
        """The feeds that a page names."""
        self.unread = unread
        """What was fetched, if that could not be read."""


@dataclass(frozen=True, slots=True)
class FetchedFeed:
    """The result of a poll; `read` is None for an unchanged feed."""

    url: str
    """The URL after redirects."""
    moved_to: str
    read: ReadFeed | None = None
    body: bytes = b""
    content_type: str = ""
    digest: str = ""
    etag: str = ""
    last_modified: str = ""
    fresh_s: float = 0.0
    links: Links = NO_LINKS
    """The links of the answer's Link fields, else of the document."""


class FeedSource:
    """Fetches feeds; `fetcher` makes the client at its first use."""

    def __init__(
        self,
        fetcher: Callable[[], Awaitable[Fetcher]],
        workers: Workers,
        settings: HubSettings,
        clock: Clock,
    ) -> None:
        self._fetcher = fetcher
        self._workers = workers
        self._base_urls = settings.base_urls
        self._clock = clock

    async def fetch(self, feed: Feed, subscribers: int) -> FetchedFeed:
        """Fetches the feed, if it has changed since its last poll. Raises `FeedFailed`."""
        status = feed.status
        known = Validators(status.etag, status.last_modified)
        agent = user_agent(self._base_urls, _CONTACT, subscribers)
        headers = {"User-Agent": agent, "Accept": _ACCEPT, **known.fields()}
        page = await self._get(feed.url, headers)
        if known.is_confirmed(page):
            return self._unchanged(page, known, status.digest)
        self._require_whole(page)
        digest = hashlib.sha256(page.body).hexdigest()
        if digest == status.digest:
            return self._unchanged(page, validators_of(page), digest)
        return await self._read(page, digest, feed.request.selector)

    async def _get(self, url: str, headers: dict[str, str]) -> FetchedPage:
        try:
            return await (await self._fetcher()).get(url, headers)
        except FetchFailed as error:
            raise FeedFailed(str(error)) from error

    def _require_whole(self, page: FetchedPage) -> None:
        refusal = refusal_of(page, self._clock.wall_s())
        if refusal is not None:
            reason, wait_s, is_gone = refusal
            raise FeedFailed(reason, wait_s=wait_s, is_gone=is_gone)

    def _unchanged(self, page: FetchedPage, validators: Validators, digest: str) -> FetchedFeed:
        return FetchedFeed(
            page.url, page.moved_to, digest=digest, etag=validators.etag,
            last_modified=validators.last_modified, fresh_s=self._fresh_s(page),
        )  # fmt: skip

    async def _read(self, page: FetchedPage, digest: str, selector: str) -> FetchedFeed:
        content_type = page.first("content-type")
        try:
            found = await read(self._workers, page.url, content_type, page.body, selector)
        except NoFeed as error:
            candidates = _candidates(page, error)
            raise FeedFailed(str(error), candidates=candidates, unread=page) from error
        except (WorkFailed, WorkRefused) as error:
            raise FeedFailed(str(error), unread=page) from error
        etag, last_modified = validators_of(page)
        if not found.is_whole:  # its rest is asked for at the next poll
            digest = etag = last_modified = ""
        return FetchedFeed(
            page.url, page.moved_to, found, page.body, content_type, digest, etag, last_modified,
            self._fresh_s(page), _links(page, found),
        )  # fmt: skip

    def _fresh_s(self, page: FetchedPage) -> float:
        now_s = self._clock.wall_s()
        return fresh_s(page.first("cache-control"), page.first("expires"), now_s)


def _links(page: FetchedPage, found: ReadFeed) -> Links:
    """Returns the links of the feed: those of Link fields have precedence over the document's
    (WebSub 4)."""
    header = discover(page.url, _link_fields(page), "", b"")
    return Links(header.hubs or found.hub_urls, header.self_url or found.self_url or None)


def _candidates(page: FetchedPage, error: NoFeed) -> tuple[Candidate, ...]:
    """Returns the feeds that Link fields name, then those that the page itself names, each once."""
    named = feeds_of_fields(page.url, _link_fields(page))
    found = {one.url: Candidate(one.url, one.title, one.media_type) for one in named}
    for candidate in error.candidates:
        found.setdefault(candidate.url, candidate)
    return tuple(found.values())


def _link_fields(page: FetchedPage) -> list[str]:
    fields = page.all("link")
    return [] if sum(map(len, fields)) > _MAX_LINK_CHARACTERS else fields
