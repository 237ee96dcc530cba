"""One poll: fetch, compare, store, publish.

Stored before it is published (see `publishing.py`), so that a crash or a full disk between the two
neither loses an entry nor publishes one twice.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Protocol

from msgspec.structs import replace

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..engine.port import Engine
from ..keyed_locks import KeyedLocks
from ..owner_rights import SubscriberRights
from ..requests import Resource
from ..settings import HubSettings
from . import outcome
from .changes import Changes, find_changes, first_changes, is_known_source
from .errors import NotPolled
from .feed import EXCHANGE, Feed, FeedState
from .items import ItemStore
from .publishing import FeedPublisher
from .push import Push
from .registry import FeedRegistry
from .source import FeedFailed, FeedSource, FetchedFeed
from .stored_item import feed_collection

MOVED = "it has moved to {url}, where feed '{name}' is registered already"

OWN_ERROR = "an error of this program, see its log"

log = logging.getLogger(__name__)


class TopicDocuments(Protocol):
    """Distributes whole documents by the URLs of feeds (`topics.Topics`)."""

    async def subscribers(self, url: str) -> int: ...
    async def publish_content(self, url: str, body: bytes, content_type: str) -> None: ...
    async def fetch_soon(self, urls: list[str]) -> None: ...


class PollCause(Enum):
    SCHEDULED = "scheduled"
    ASKED = "asked"
    """Requested by a user: a feed that is paused or gone is polled too."""
    PINGED = "pinged"
    """Its publisher has told this hub."""
    PUSHED = "pushed"
    """The hub or cloud that it names has told this one."""


class Polling:
    """Polls feeds, each once at a time."""

    def __init__(
        self,
        registry: FeedRegistry,
        items: ItemStore,
        source: FeedSource,
        publisher: FeedPublisher,
        documents: TopicDocuments,
        engine: Engine,
        settings: HubSettings,
        clock: Clock,
        push: Push,
        rights: SubscriberRights,
    ) -> None:
        self._registry = registry
        self._items = items
        self._source = source
        self._publisher = publisher
        self._documents = documents
        self._engine = engine
        self._min_interval_s = settings.feed_min_interval_s
        self._clock = clock
        self._push = push
        self._rights = rights
        self.outcomes: Counter[str] = Counter()
        """How many polls were `changed`, `unchanged` or `failed`, and the new or changed `entries`,
        since the start."""
        self.locks: KeyedLocks[str] = KeyedLocks()
        """Held by name while a feed is polled or changed."""

    async def poll(self, name: str, cause: PollCause) -> Feed | None:
        """Polls a feed; returns it as it is then, None if it was removed.

        Raises as `postponing_at_failure`; a failure of the feed itself is in the feed's status.
        """
        async with self.locks.of(name):
            feed = self._registry.get(name)
            if feed is None or (
                cause is not PollCause.ASKED and feed.state is not FeedState.ACTIVE
            ):
                return feed
            with self.postponing_at_failure(name):
                return await self._poll(feed, cause)

    @contextmanager
    def postponing_at_failure(self, name: str) -> Iterator[None]:
        """Postpones the poll of a feed if it could not be stored or published, and notes why.

        Raises `NotPolled`, `StorageFailed`, `ChannelError` and `LowOnMemory`.
        """
        try:
            yield
        except WarrenError as error:
            self._postpone(name, str(error))
            raise
        except Exception:
            self._postpone(name, OWN_ERROR)
            raise

    def _postpone(self, name: str, reason: str) -> None:
        feed = self._registry.get(name)
        if feed is None:
            return
        if reason != feed.status.local_failure:
            log.warning("feed '%s': poll postponed: %s", name, reason)
        self._registry.set_in_memory(outcome.postponed(feed, reason, self._clock.wall_s()))

    async def _poll(self, feed: Feed, cause: PollCause) -> Feed:
        if cause is PollCause.PUSHED:
            feed = self._push.announced(feed)
        self.require_room(feed)
        feed = await self._publisher.catch_up(feed)
        try:
            self._require_permission(feed)
            fetched = await self._source.fetch(feed, await self._subscribers(feed))
        except FeedFailed as error:
            return await self._failed(feed, error)
        return await self.apply(feed, fetched, cause)

    async def apply(self, feed: Feed, fetched: FetchedFeed, cause: PollCause) -> Feed:
        """Stores and publishes what was fetched; the caller holds the lock. Raises as
        `postponing_at_failure`."""
        other = self._other_at(feed, fetched.moved_to)
        if other is not None:
            return await self._merged(feed, fetched.moved_to, other)
        moved = replace(feed, url=fetched.moved_to or feed.url)
        is_scheduled = cause is PollCause.SCHEDULED
        now_s, chance = self._clock.wall_s(), random.random()
        if fetched.read is None:
            after = await self._push.after_poll(moved, fetched, 0, is_scheduled=is_scheduled)
            after = outcome.unchanged(after, fetched, now_s, self._min_interval_s, chance)
            await self._registry.put(after)
            self.outcomes["unchanged"] += 1
            return after
        changes = await self._changes(feed, fetched)
        after = await self._push.after_poll(
            moved, fetched, len(changes.items), is_scheduled=is_scheduled
        )
        notice = self._publisher.notice(changes.items)
        after = outcome.changed(
            after, fetched, fetched.read, changes, notice, now_s, self._min_interval_s, chance
        )
        await self._offer(feed, fetched.content_type, fetched.body)
        await self._store(after, fetched, changes, now_s)
        self.outcomes["changed" if changes.items else "unchanged"] += 1
        self.outcomes["entries"] += len(changes.items)
        return self._registry.get(feed.name) or after

    async def _store(
        self, feed: Feed, fetched: FetchedFeed, changes: Changes, now_s: float
    ) -> None:
        assert fetched.read is not None
        if changes.items:
            feed = self._publisher.groups.numbered(feed)
        present = {one.item.id for one in fetched.read.items}
        await self._registry.put_changes(
            feed, fetched.read.head, changes.items, changes.silent, present, now_s
        )
        self._registry.changed(feed)  # documents have what is stored, however long messages wait
        if changes.items:
            await self._publisher.publish(feed, changes.items)

    async def _changes(self, feed: Feed, fetched: FetchedFeed) -> Changes:
        """Returns the changes to publish. Of a feed's first document at a URL, as many entries are
        published as were asked for, unless some are known from another URL."""
        assert fetched.read is not None
        found = fetched.read.items
        known: dict[str, str] = {}
        if feed.status.checked_at:
            known = await self._items.digests(feed_collection(feed.name))
        if feed.status.succeeded_at or is_known_source(found, known):
            return find_changes(found, known)
        return first_changes(found, feed.request.first)

    async def _failed(self, feed: Feed, error: FeedFailed) -> Feed:
        if error.is_gone or not feed.status.failures:
            log.warning("feed '%s' failed: %s", feed.name, error)
        self.outcomes["failed"] += 1
        if error.unread is not None and error.unread.body:
            await self._offer(feed, error.unread.first("content-type"), error.unread.body)
        after = outcome.failed(feed, error, self._clock.wall_s(), random.random())
        await self._registry.put(after)
        return after

    def _other_at(self, feed: Feed, url: str) -> str | None:
        """Returns the name of another feed that is registered for the URL."""
        other = self._registry.named(feed.vhost, url, feed.request.selector)
        return None if other == feed.name else other

    async def _merged(self, feed: Feed, url: str, other: str) -> Feed:
        """Stops a feed whose URL has become that of another one."""
        status = replace(feed.status, error=MOVED.format(url=url, name=other))
        after = replace(feed, state=FeedState.GONE, status=status, next_at=0.0)
        await self._registry.put(after)
        return after

    async def _subscribers(self, feed: Feed) -> int:
        """Returns how many queues get its entries or documents, as its server is told."""
        await self._publisher.declare(feed.vhost)
        queues = await self._engine.route_count(feed.vhost, EXCHANGE, feed.name)
        return queues + await self._documents.subscribers(feed.url)

    async def _offer(self, feed: Feed, content_type: str, body: bytes) -> None:
        """Distributes the document to subscribers of the feed's URL; it is fetched for them later
        if that fails."""
        try:
            await self._documents.publish_content(feed.url, body, content_type)
        except WarrenError as error:
            log.warning("the document of feed '%s' is distributed later: %s", feed.name, error)
            await self._documents.fetch_soon([feed.url])

    def _require_permission(self, feed: Feed) -> None:
        """Raises `FeedFailed` if the feed's owner may not publish its entries any more."""
        exchange = Resource(feed.vhost, "x", EXCHANGE)
        reason = self._rights.write_refusal(feed.owner, exchange, feed.name)
        if reason is not None:
            raise FeedFailed(reason)

    def require_room(self, feed: Feed) -> None:
        """Raises `NotPolled` during an alarm."""
        shortage = self._engine.shortage()
        if shortage:
            raise NotPolled(
                f"while {shortage} no feed is polled; it is tried again", field="feed",
                value=feed.name,
            )  # fmt: skip
