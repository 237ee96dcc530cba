"""Publishes the entries that a poll has found.

A poll is stored before it is published: `Feed.number` and the items, in one transaction of the
database. So what a crash has left unpublished is there (`groups.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence

from ...core.counted import counted
from ...core.message.model import Properties, Table
from ..engine.own import FEEDS
from ..engine.port import Engine, SinglePublish
from .errors import NotPolled
from .feed import Feed
from .fitting import reduce_to
from .groups import EntryGroups, LoggedGroups, Messages, StoredGroups
from .items import ItemStore
from .registry import FeedRegistry
from .stored_item import NewItem, StoredItem, feed_collection

TRUNCATED = "truncated"
"""The header of a message that has only a part of its item."""
_PERSISTENT = 2
_AT_ONCE = 100
"""Between two rounds of the event loop: an entry may have some 100 kB."""
_MAX_ENTRY_ID_BYTES = 1_024
"""In the header; longer ids are in the body alone, since headers have to fit a frame."""


log = logging.getLogger(__name__)


class FeedPublisher:
    """Publishes to the exchange `hub.feeds`."""

    def __init__(self, engine: Engine, items: ItemStore, registry: FeedRegistry) -> None:
        self._engine = engine
        self._items = items
        self.groups: EntryGroups = (
            LoggedGroups(engine) if engine.has_transactions() else StoredGroups(engine, registry)
        )

    async def declare(self, vhost: str) -> None:
        """Declares the exchange, so that queues can be bound to it. Raises `ChannelError`."""
        if await self._engine.exchange(vhost, FEEDS.name) is None:
            await self._engine.declare_exchange(vhost, FEEDS)

    async def catch_up(self, feed: Feed) -> Feed:
        """Publishes what was stored and is not published. Returns and raises as `publish`."""
        if not self.groups.is_behind(feed):
            return feed
        return await self.publish(
            feed, await self._items.of_poll(feed_collection(feed.name), feed.number)
        )

    async def publish(self, feed: Feed, items: Sequence[NewItem | StoredItem]) -> Feed:
        """Publishes the items of poll `feed.number`, on disk when it returns; returns the feed as
        it is then.

        Raises `NotPolled` while memory or disk is short or a queue refuses them, `LowOnMemory`,
        `ChannelError` and `StorageFailed`.
        """
        shortage = self._engine.shortage()
        if shortage:
            raise NotPolled(f"nothing is published now: {shortage}", field="feed", value=feed.name)
        await self.declare(feed.vhost)
        return await self.groups.publish(feed, self._messages(feed, items))

    def notice(self, items: Sequence[NewItem]) -> str:
        """Returns a sentence about items that are too large for a message, "" without any."""
        limit = self._engine.max_message_bytes()
        large = [len(item.body) for item in items if len(item.body) > limit]
        if not large:
            return ""
        entries = counted(len(large), "entry was", "entries were")
        return (
            f"{entries} published without content, of up to {max(large)} bytes: a message has at "
            f"most {limit} bytes (max_message_bytes)"
        )

    async def _messages(self, feed: Feed, items: Sequence[NewItem | StoredItem]) -> Messages:
        limit = self._engine.max_message_bytes()
        for first in range(0, len(items), _AT_ONCE):
            some = items[first : first + _AT_ONCE]
            large = [item for item in some if len(item.body) > limit]
            fitted = {
                item.item_id: await asyncio.to_thread(reduce_to, item.body, limit) for item in large
            }
            made = (_message(feed, item, fitted.get(item.item_id, item.body)) for item in some)
            yield [one for one in made if one is not None]


def _message(feed: Feed, item: NewItem | StoredItem, body: bytes | None) -> SinglePublish | None:
    """Returns the message of an item; None for one that is too large for any message."""
    if body is None:
        log.warning("feed '%s': entry id exceeds the message size limit", feed.name)
        return None
    identity = "\0".join((feed.id, str(feed.number), item.item_id, item.digest)).encode()
    headers: Table = {"feed": feed.name, "kind": item.kind, "format": feed.status.format}
    if body is not item.body:
        headers[TRUNCATED] = True
    if len(item.item_id.encode()) <= _MAX_ENTRY_ID_BYTES:
        headers["entry_id"] = item.item_id
    properties = Properties(
        content_type="application/json",
        headers=headers,
        delivery_mode=_PERSISTENT,
        message_id=hashlib.sha256(identity).hexdigest()[:32],
    )
    return SinglePublish(FEEDS.name, feed.name, properties, body, is_repeatable=True)
