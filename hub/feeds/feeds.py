"""Registered feeds: added, polled, paused and removed by users; `app` checks what they may."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...core.clock import Clock
from ..client_factories import make_page_client
from ..engine.port import Engine
from ..errors import BadRequest, StorageFailed
from ..formats.model import FeedHead
from ..formats.reading import read_outlines
from ..guard.guard import Guard
from ..lazy import Lazy
from ..owner_rights import SubscriberRights
from ..settings import HubSettings
from ..storage.storage import Storage
from ..tasks import Tasks
from ..upstream.upstreams import Upstreams
from ..workers.pool import Workers, WorkFailed, WorkRefused
from .announcements import Announcement
from .cloud import CloudClient
from .errors import NoSuchFeed
from .feed import Feed, FeedRequest, FeedState
from .imports import Import, Imports
from .items import ItemStore
from .list_key import ListKey
from .lists import FeedLists
from .outcome import asked_anew
from .poller import Poller
from .polling import PollCause, Polling, TopicDocuments
from .publishing import FeedPublisher
from .push import Push
from .registration import FeedRegistration, Registrar, check_request
from .registry import FeedRegistry
from .schedule import POSTPONED_S
from .source import FeedSource

if TYPE_CHECKING:
    from ..fetch.fetcher import Fetcher


DROPPED_AT_ONCE = 100
"""Feeds of a deleted user that are removed in one transaction of the database."""

log = logging.getLogger(__name__)


class Feeds:
    """Registers, polls, pauses and removes feeds. All registered feeds. `items` has their items;
    `watch` reports each change."""

    def __init__(
        self,
        storage: Storage,
        engine: Engine,
        guard: Guard,
        settings: HubSettings,
        clock: Clock,
        make_fetcher: Callable[[HubSettings, Guard], Awaitable[Fetcher]],
        workers: Workers,
        documents: TopicDocuments,
        upstreams: Upstreams,
        rights: SubscriberRights,
        items: ItemStore,
    ) -> None:
        self._clock = clock
        self._workers = workers
        self._engine = engine
        self._guard = guard
        self._rights = rights
        self._tasks = Tasks()
        self._fetcher = Lazy(lambda: make_fetcher(settings, guard))
        self.items = items
        self.registry = FeedRegistry(storage, settings.feed_items_kept)
        self._cloud = Lazy(lambda: make_page_client(settings, guard))
        cloud = CloudClient(settings, guard, self._cloud.get)
        self._push = Push(upstreams, cloud, settings, clock)
        self._publisher = FeedPublisher(engine, self.items, self.registry)
        source = FeedSource(self._fetcher.get, workers, settings, clock)
        self._polling = Polling(
            self.registry, self.items, source, self._publisher, documents, engine, settings, clock,
            self._push, rights,
        )  # fmt: skip
        self._poller = Poller(
            self.registry, self._polling, self._publisher, settings, clock, self._tasks
        )
        self.registrar = Registrar(
            self.registry, self._polling, self._publisher, source, engine, guard, settings, clock
        )
        self.lists = FeedLists(storage)
        self._imports = Imports(
            self.registry, self.registrar, self.lists, self._poller.plan, clock, self._tasks
        )

    @property
    def outcomes(self) -> Mapping[str, int]:
        """The outcomes of polls (`Polling.outcomes`)."""
        return self._polling.outcomes

    async def start(self) -> None:
        """Reads what is stored, and begins to poll."""
        await self.registry.load()
        feeds = self.registry.all()
        gone = [feed for feed in feeds if self._is_orphan(ListKey(feed.vhost, feed.owner))]
        for first in range(0, len(gone), DROPPED_AT_ONCE):
            await self._drop(gone[first : first + DROPPED_AT_ONCE])
        await self.lists.forget(self._is_orphan)
        self._poller.load()
        self._tasks.own(self._poller.watch())

    async def stop(self) -> None:
        """Ends all polls; those that were not stored are repeated after the next start."""
        await self._tasks.stop()
        await self.registry.close()
        if self._fetcher.made is not None:
            await self._fetcher.made.close()
        if self._cloud.made is not None:
            self._cloud.made.close()

    def watch(self, changed: Callable[[Feed], None]) -> None:
        """Calls `changed` with each feed that has new items or another title, or was removed."""
        self.registry.watch(changed)

    def all(self) -> Collection[Feed]:
        return self.registry.all()

    def get(self, name: str) -> Feed | None:
        return self.registry.get(name)

    def current(self, feed: Feed) -> Feed:
        """Returns the feed with the state of push as it is now, and not at its last poll."""
        return self._push.current(feed)

    async def head(self, feed: Feed) -> FeedHead | None:
        """Returns what the feed says of itself; None before its first poll."""
        return await self.registry.head(feed)

    async def register(self, wanted: FeedRegistration) -> Feed:
        """Registers a feed after its first poll. Raises as `Registrar.register`."""
        registered: asyncio.Future[Feed] = asyncio.get_running_loop().create_future()

        async def register() -> None:
            try:
                registered.set_result(await self.registrar.register(wanted))
            except Exception as error:
                registered.set_exception(error)
                registered.exception()  # seen, also if the client has gone

        # To its end, also if the client has gone: a feed is not left without its first entries.
        await self._tasks.complete(register())
        feed = registered.result()
        self._poller.plan(feed)
        return feed

    async def poll(self, name: str) -> Feed:
        """Polls a feed now. Raises `NoSuchFeed`, and as `Polling.poll`."""
        try:
            feed = await self._polling.poll(name, PollCause.ASKED)
        except Exception:
            self._poller.plan_again(name)
            raise
        if feed is None:
            raise NoSuchFeed(name)
        self._poller.plan(feed)
        return feed

    async def pause(self, name: str) -> Feed:
        """Stops polling a feed. Raises `NoSuchFeed` and `StorageFailed`."""
        return await self._change(name, lambda feed: replace(feed, state=FeedState.PAUSED))

    async def resume(self, name: str) -> Feed:
        """Resumes polling a feed, soon. Raises `NoSuchFeed` and `StorageFailed`."""
        now_s = self._clock.wall_s()
        return await self._change(
            name,
            lambda feed: (
                feed
                if feed.state is FeedState.ACTIVE
                else replace(feed, state=FeedState.ACTIVE, next_at=now_s)
            ),
        )

    async def change(self, name: str, url: str, request: FeedRequest) -> Feed:
        """Changes the request of a feed; another URL, selector or hub is used at once.

        Raises `NoSuchFeed`, `BadRequest`, `UrlRefused`, `FeedExists` and `StorageFailed`.
        """
        feed = await self._change(name, lambda feed: self._changed(feed, url, request))
        self.registry.changed(feed)  # who may read it, perhaps
        return feed

    def _changed(self, feed: Feed, url: str, request: FeedRequest) -> Feed:
        check_request(request)
        if url != feed.url:
            url = self.registrar.checked_url("url", url)
        if request.hub and request.hub != feed.request.hub:
            request = replace(request, hub=self.registrar.checked_url("hub", request.hub))
        after = replace(feed, url=url, request=request)
        self.registrar.require_only(after)
        return asked_anew(feed, after, self._clock.wall_s())

    async def remove(self, name: str) -> None:
        """Removes a feed with its items. Raises `NoSuchFeed` and `StorageFailed`."""
        async with self._polling.locks.of(name):
            await self._drop([self._known(name)])

    async def announced(self, name: str) -> None:
        """Polls a feed soon, whose change its hub or cloud has announced. Durable when it returns.
        Raises `StorageFailed`."""
        await self._announce(name, is_push=True)

    async def push_ended(self, name: str) -> None:
        """Polls a feed soon, whose hub pushes no more: it is polled as without push from then on.
        Durable when it returns. Raises `StorageFailed`."""
        await self._announce(name, is_push=False)

    def has_url(self, url: str) -> bool:
        """Returns whether a feed with this URL is registered."""
        return any(self.registry.at(vhost, url) for vhost in self._engine.vhosts())

    async def take_ping(self, url: str) -> bool:
        """Polls the feeds with this URL soon; returns whether there are any. Raises
        `StorageFailed`."""
        feeds = [feed for vhost in self._engine.vhosts() for feed in self.registry.at(vhost, url)]
        found = [feed for feed in feeds if await self._announce(feed.name, is_push=False)]
        return bool(found)

    def with_id(self, identity: str) -> Feed | None:
        """Returns the feed with this id, which only its cloud knows."""
        return next((feed for feed in self.registry.all() if feed.id == identity), None)

    async def import_opml(self, body: bytes, vhost: str, owner: str, first: int) -> Import:
        """Begins to register the feeds of an OPML document; each is polled later.

        Raises `BadRequest` and `TooManyFeeds`.
        """
        try:
            document = await read_outlines(self._workers, body, origin=f"import:{owner}")
        except (WorkFailed, WorkRefused) as error:
            raise BadRequest(str(error), field="body") from error
        return self._imports.begin(document, vhost, owner, first)

    def imported(self, identity: str) -> Import:
        """Returns the progress of an import. Raises `NoSuchImport`."""
        return self._imports.get(identity)

    def forget_vhost(self, vhost: str) -> None:
        """Removes the feeds and lists of a deleted virtual host, soon."""
        self._tasks.own(self._forget(lambda key: key.vhost == vhost))

    def forget_owner(self, owner: str) -> None:
        """Removes the feeds and lists of a deleted user, soon."""
        self._tasks.own(self._forget(lambda key: key.owner == owner))

    def _is_orphan(self, key: ListKey) -> bool:
        """Whether owner or virtual host was deleted, and this was not stored before."""
        is_gone = key.vhost not in self._engine.vhosts()
        return is_gone or self._rights.owner_refusal(key.owner) is not None

    async def _forget(self, is_gone: Callable[[ListKey], bool]) -> None:
        feeds = [one for one in self.registry.all() if is_gone(ListKey(one.vhost, one.owner))]
        for first in range(0, len(feeds), DROPPED_AT_ONCE):
            some = feeds[first : first + DROPPED_AT_ONCE]
            while not await self._is_dropped(some):
                await asyncio.sleep(POSTPONED_S)
        while not await self._are_lists_forgotten(is_gone):
            await asyncio.sleep(POSTPONED_S)

    async def _are_lists_forgotten(self, is_gone: Callable[[ListKey], bool]) -> bool:
        """Deletes the lists of deleted users and virtual hosts; returns whether the database
        did."""
        try:
            await self.lists.forget(is_gone)
        except StorageFailed as error:
            log.error("the list of a deleted user or virtual host stays for now: %s", error)
            return False
        return True

    async def _is_dropped(self, feeds: Sequence[Feed]) -> bool:
        """Removes feeds when their polls have ended, which would bring them back; returns whether
        the database did."""
        ids = {feed.id for feed in feeds}
        async with AsyncExitStack() as locks:
            for feed in feeds:
                await locks.enter_async_context(self._polling.locks.of(feed.name))
            known = [self.registry.get(feed.name) for feed in feeds]
            try:
                await self._drop([one for one in known if one is not None and one.id in ids])
            except StorageFailed as error:
                log.error("feeds of a deleted user or virtual host not yet removed: %s", error)
                return False
        return True

    async def _drop(self, feeds: Collection[Feed]) -> None:
        await self.registry.delete(feeds)
        for feed in feeds:
            self._poller.forget(feed.name)
            self._publisher.groups.forget(feed)
            await self._push.leave(feed)

    async def _announce(self, name: str, *, is_push: bool) -> bool:
        """Returns whether the feed is polled."""
        feed = self.registry.get(name)
        if feed is None or feed.state is not FeedState.ACTIVE:
            return False
        await self.registry.announce(feed, Announcement(self._clock.wall_s(), is_push))
        self._poller.announce(feed)
        return True

    async def _change(self, name: str, step: Callable[[Feed], Feed]) -> Feed:
        async with self._polling.locks.of(name):
            feed = step(self._known(name))
            await self.registry.put(feed)
            self._poller.plan(feed)
            return feed

    def _known(self, name: str) -> Feed:
        feed = self.registry.get(name)
        if feed is None:
            raise NoSuchFeed(name)
        return feed
