"""All registered feeds in memory, by name and by URL; changes are stored first."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from ..formats.model import FeedHead
from ..lazy import Lazy
from ..storage.group_commit import GroupCommit
from ..storage.storage import Storage
from .announcements import Announcement, Announcements
from .feed import Feed
from .stored_item import NewItem

if TYPE_CHECKING:
    from .repository import FeedRepository


class FeedRegistry:
    """Changes the row and the value of a feed together. Raises `StorageFailed`.

    `kept` is how many items of a feed keep their content; `announcements` are those that wait for
    a poll.
    """

    def __init__(self, storage: Storage, kept: int) -> None:
        self._storage = storage
        self._kept = kept
        self._rows: Lazy[FeedRepository] = Lazy(self._open)
        self._by_name: dict[str, Feed] = {}
        self._names: dict[tuple[str, str], str] = {}
        """The names of feeds without a selector, by virtual host and URL."""
        self._selecting: dict[tuple[str, str], dict[str, str]] = {}
        """By virtual host and URL, those that have a selector, by that."""
        self._watchers: list[Callable[[Feed], None]] = []
        self._puts: GroupCommit[Feed] = GroupCommit(self._put_all)
        self.announcements = Announcements()
        self.additions = asyncio.Lock()
        """Held from the choice of names and URLs that are free until the feeds are added, or an
        output is, which has no feed's name."""

    async def load(self) -> None:
        """Reads all that are stored."""
        if not self._storage.is_empty():
            for feed in await (await self._rows.get()).all():
                self._show(feed)

    async def close(self) -> None:
        """Waits until all changes are stored."""
        await self._puts.close()

    def watch(self, changed: Callable[[Feed], None]) -> None:
        """Calls `changed` with each feed that was added, changed or removed, or has new items."""
        self._watchers.append(changed)

    def __len__(self) -> int:
        return len(self._by_name)

    def all(self) -> Collection[Feed]:
        return self._by_name.values()

    def get(self, name: str) -> Feed | None:
        return self._by_name.get(name)

    def named(self, vhost: str, url: str, selector: str) -> str | None:
        """Returns the name of the feed with this URL and selector, "" for none."""
        place = vhost, url_key(url)
        if selector:
            return self._selecting.get(place, {}).get(selector)
        return self._names.get(place)

    def at(self, vhost: str, url: str) -> list[Feed]:
        """Returns the feeds with this URL, first the one without a selector."""
        place = vhost, url_key(url)
        names = [self._names.get(place), *self._selecting.get(place, {}).values()]
        return [self._by_name[name] for name in names if name is not None]

    async def head(self, feed: Feed) -> FeedHead | None:
        return await (await self._rows.get()).head(feed.id)

    async def add(self, feeds: Sequence[Feed]) -> None:
        """Adds new feeds, all or none."""
        await (await self._rows.get()).add(feeds)
        for feed in feeds:
            self._show(feed)

    async def put(self, feed: Feed) -> None:
        """Stores a changed feed, together with others."""
        feed = self.announcements.due(feed)
        await self._puts.add(feed)
        if feed.name in self._by_name:
            self._show(feed)

    async def put_changes(
        self,
        feed: Feed,
        head: FeedHead,
        items: Sequence[NewItem],
        known: Sequence[NewItem],
        present: Collection[str],
        at: float,
    ) -> None:
        """Stores a poll (`FeedRepository.put_changes`)."""
        rows = await self._rows.get()
        feed = self.announcements.due(feed)
        await rows.put_changes(feed, head, items, known, present, at)
        if feed.name in self._by_name:
            self._show(feed)

    async def announce(self, feed: Feed, announcement: Announcement) -> None:
        """Notes that a feed's change was announced. Durable when it returns, also while the feed is
        polled: no other column of its row is written."""
        if self.announcements.add(feed.name, announcement):
            try:
                await (await self._rows.get()).set_next(feed.id, announcement.at)
            except BaseException:
                self.announcements.take(feed.name)
                raise

    def set_in_memory(self, feed: Feed) -> None:
        """Shows a feed whose poll could not be stored or published as it is, in memory alone."""
        if feed.name in self._by_name:
            self._show(feed)

    async def delete(self, feeds: Collection[Feed]) -> None:
        await (await self._rows.get()).delete(feeds)
        for feed in feeds:
            self._by_name.pop(feed.name, None)
            self._forget_url(feed)
            self.announcements.take(feed.name)
            self.changed(feed)

    def changed(self, feed: Feed) -> None:
        """Tells those who watch that a feed has new items or other readers, or is gone."""
        for watcher in self._watchers:
            watcher(feed)

    def _show(self, feed: Feed) -> None:
        old = self._by_name.get(feed.name)
        selector = feed.request.selector
        if old is not None and (old.url, old.request.selector) != (feed.url, selector):
            self._forget_url(old)
        self._by_name[feed.name] = feed
        place = feed.vhost, url_key(feed.url)
        if selector:
            self._selecting.setdefault(place, {}).setdefault(selector, feed.name)
        else:
            self._names.setdefault(place, feed.name)

    def _forget_url(self, feed: Feed) -> None:
        place, selector = (feed.vhost, url_key(feed.url)), feed.request.selector
        if self.named(feed.vhost, feed.url, selector) != feed.name:
            return
        if not selector:
            del self._names[place]
            return
        del self._selecting[place][selector]
        if not self._selecting[place]:
            del self._selecting[place]

    async def _put_all(self, feeds: list[Feed]) -> None:
        await (await self._rows.get()).put(feeds)

    async def _open(self) -> FeedRepository:
        database = await self._storage.database()
        await asyncio.to_thread(importlib.import_module, f"{__package__}.repository")
        from .repository import FeedRepository

        return FeedRepository(database, self._kept)


def url_key(url: str) -> str:
    """Returns the URL with scheme and host in lower case: others are equal (RFC 3986 6.2.2.1)."""
    try:
        split = urlsplit(url)
    except ValueError:
        return url  # what is pinged may be no URL
    key = urlunsplit(split._replace(netloc=split.netloc.lower(), path=split.path or "/"))
    return url if key == url else key
