"""Registers feeds: checks, discovery from a page, and the first poll."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from urllib.parse import urldefrag

from msgspec.structs import replace

from ...core.clock import Clock
from ...core.counted import counted
from ...core.errors import WarrenError
from ..engine.port import Engine
from ..errors import BadRequest, CallbackRefused
from ..formats.read_feed import MAX_SELECTOR_CHARACTERS
from ..guard.guard import Guard
from ..settings import HubSettings
from .errors import FeedExists, RegistrationRefused, SeveralFeeds, TooManyFeeds, UrlRefused
from .feed import Feed, FeedRequest, FeedStatus
from .names import check_name, free_name
from .polling import PollCause, Polling
from .publishing import FeedPublisher
from .registry import FeedRegistry
from .source import FeedFailed, FeedSource, FetchedFeed

MAX_FIRST = 1_000
MIN_INTERVAL_S, MAX_INTERVAL_S = 60, 7 * 86_400


@dataclass(frozen=True, slots=True)
class FeedRegistration:
    """A request for a new feed; an empty name stands for one after the feed's title."""

    url: str
    name: str
    vhost: str
    owner: str
    request: FeedRequest


class Registrar:
    """Adds feeds to the registry; `name_taken` returns whether an output of a virtual host
    has a name."""

    def __init__(
        self,
        registry: FeedRegistry,
        polling: Polling,
        publisher: FeedPublisher,
        source: FeedSource,
        engine: Engine,
        guard: Guard,
        settings: HubSettings,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._polling = polling
        self._publisher = publisher
        self._source = source
        self._engine = engine
        self._guard = guard
        self._settings = settings
        self._clock = clock
        self.name_taken: Callable[[str, str], bool] = lambda vhost, name: False

    async def register(self, wanted: FeedRegistration) -> Feed:
        """Registers a feed after its first poll.

        If its entries can't be stored or published then, its status says why, and it is polled
        again. Raises `BadRequest`, `UrlRefused`, `RegistrationRefused`, `SeveralFeeds`,
        `FeedExists`, `TooManyFeeds`, `NotPolled` and `StorageFailed`.
        """
        wanted = self.checked(wanted)
        self.require_room(wanted.owner, 1)
        feed = self.new_feed(wanted)
        self._polling.require_room(feed)
        feed, fetched = await self._find(feed)
        title = fetched.read.head.title if fetched.read is not None else ""
        feed = replace(feed, name=wanted.name or self.free_name(feed.vhost, title, feed.url))
        async with self._polling.locks.of(feed.name):
            async with self._registry.additions:
                self._require_free(feed)
                self.require_room(wanted.owner, 1)
                await self._publisher.declare(feed.vhost)
                await self._registry.add([feed])
            try:
                with self._polling.postponing_at_failure(feed.name):
                    return await self._polling.apply(feed, fetched, PollCause.ASKED)
            except WarrenError:
                return self._registry.get(feed.name) or feed

    def checked(self, wanted: FeedRegistration) -> FeedRegistration:
        """Returns the registration with its URLs as they are stored. Raises `BadRequest` and
        `UrlRefused`."""
        if wanted.name:
            check_name(wanted.name)
        check_request(wanted.request)
        url = self.checked_url("url", wanted.url)
        hub = self.checked_url("hub", wanted.request.hub) if wanted.request.hub else ""
        request = replace(wanted.request, hub=hub)
        return FeedRegistration(url, wanted.name, wanted.vhost, wanted.owner, request)

    def checked_url(self, field: str, url: str) -> str:
        """Returns a URL as it is stored: without blanks around it, and without fragment. Raises
        `UrlRefused`."""
        url = urldefrag(url.strip()).url
        try:
            self._guard.check(url)
        except CallbackRefused as error:
            raise UrlRefused(error.reason, field=field, value=url, limit=error.limit) from error
        return url

    async def declare(self, vhost: str) -> None:
        """Declares the exchange of a virtual host. Raises `ChannelError`."""
        await self._publisher.declare(vhost)

    def new_feed(self, wanted: FeedRegistration) -> Feed:
        """Returns the feed before its first poll, which is due."""
        now_s = self._clock.wall_s()
        return Feed(
            id=uuid.uuid4().hex, name=wanted.name, vhost=wanted.vhost, owner=wanted.owner,
            url=wanted.url, request=wanted.request, next_at=now_s,
            status=FeedStatus(registered_at=now_s),
        )  # fmt: skip

    def free_name(self, vhost: str, title: str, url: str, others: Collection[str] = ()) -> str:
        """Returns a name that no feed, no output and none of the others has."""
        return free_name(title, url, lambda name: self.is_taken(vhost, name) or name in others)

    def is_taken(self, vhost: str, name: str) -> bool:
        return self._registry.get(name) is not None or self.name_taken(vhost, name)

    def require_room(self, owner: str, more: int) -> None:
        """Raises `TooManyFeeds` if the user has as many as one may have."""
        has = sum(feed.owner == owner for feed in self._registry.all())
        limit = self._settings.max_feeds_per_user
        if has + more > limit:
            raise TooManyFeeds(
                f"user '{owner}' has {counted(has, 'feed')}, {more} more would be too many: remove "
                "some, or have max_feeds_per_user raised",
                field="url", limit=str(limit),
            )  # fmt: skip

    async def _find(self, feed: Feed) -> tuple[Feed, FetchedFeed]:
        """Returns the feed at the URL, or the only one that the page there names."""
        try:
            return await self._fetch(feed)
        except FeedFailed as error:
            match error.candidates:
                case ():
                    raise _refused(feed.url, error) from error
                case (only,):
                    found = only.url
                case several:
                    raise SeveralFeeds(feed.url, several) from error
        feed = replace(feed, url=self.checked_url("url", found))
        try:
            return await self._fetch(feed)
        except FeedFailed as error:
            raise _refused(found, error) from error

    async def _fetch(self, feed: Feed) -> tuple[Feed, FetchedFeed]:
        fetched = await self._source.fetch(feed, 1)
        return replace(feed, url=fetched.moved_to or feed.url), fetched

    def _require_free(self, feed: Feed) -> None:
        """Raises `FeedExists` if the name is taken, or as `require_only`."""
        if self.is_taken(feed.vhost, feed.name):
            raise FeedExists("another feed or output has it", field="name", value=feed.name)
        self.require_only(feed)

    def require_only(self, feed: Feed) -> None:
        """Raises `FeedExists` if another feed has the same URL and selector."""
        other = self._registry.named(feed.vhost, feed.url, feed.request.selector)
        if other not in (None, feed.name):
            raise FeedExists(
                f"feed '{other}' in vhost '{feed.vhost}' is registered for it: use that one",
                field="url", value=feed.url, members={"feed": other},
            )  # fmt: skip


def check_request(request: FeedRequest) -> None:
    """Raises `BadRequest`."""
    if not 0 <= request.first <= MAX_FIRST:
        raise _out_of_range("first", request.first, f"none, or 0 to {MAX_FIRST}")
    least_s = request.min_interval_s
    if least_s and not MIN_INTERVAL_S <= least_s <= MAX_INTERVAL_S:
        raise _out_of_range("min_interval_s", least_s, f"{MIN_INTERVAL_S} to {MAX_INTERVAL_S}")
    if len(request.selector) > MAX_SELECTOR_CHARACTERS:
        raise BadRequest(
            f"has {len(request.selector)} characters", field="selector",
            limit=f"{MAX_SELECTOR_CHARACTERS} characters",
        )  # fmt: skip


def _out_of_range(field: str, value: int, limit: str) -> BadRequest:
    return BadRequest("is out of range", field=field, value=str(value), limit=limit)


def _refused(url: str, error: FeedFailed) -> RegistrationRefused:
    return RegistrationRefused(f"it can't be registered: {error}", field="url", value=url)
