"""Publishes the entries that a poll has found, exactly once.

A poll is stored before it is published: `Feed.number` and the items, in one transaction of the
database. The messages are one transaction of the engine's log, in the feed's series, with that
number. What a crash has left unpublished is in the database, and the log tells whether it is.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Sequence

from ...core.counted import counted
from ...core.errors import QueueFull
from ...core.message.model import Properties, Row, Table
from ...core.wire import properties as wire
from ..engine.own import FEEDS
from ..engine.port import Engine
from .errors import NotPolled
from .feed import Feed
from .fitting import reduce_to
from .items import ItemStore
from .stored_item import NewItem, StoredItem, feed_collection

MAX_BYTES = 256 * 1024 * 1024
"""The limit of the messages of one poll: more than a document of the largest size can have."""
TRUNCATED = "truncated"
"""The header of a message that has only a part of its item."""
_PERSISTENT = 2
_ROWS_AT_ONCE = 100
"""Between two rounds of the event loop: an entry may have some 100 kB."""
_MAX_ENTRY_ID_BYTES = 1_024
"""In the header; longer ids are in the body alone, since headers have to fit a frame."""


log = logging.getLogger(__name__)


class FeedPublisher:
    """Publishes to the exchange `hub.feeds`."""

    def __init__(self, engine: Engine, items: ItemStore) -> None:
        self._engine = engine
        self._items = items

    async def declare(self, vhost: str) -> None:
        """Declares the exchange, so that queues can be bound to it. Raises `ChannelError`."""
        if await self._engine.exchange(vhost, FEEDS.name) is None:
            await self._engine.declare_exchange(vhost, FEEDS)

    def is_behind(self, feed: Feed) -> bool:
        """Returns whether the last poll was stored and is not published. Raises `ChannelError`."""
        return self._last(feed) < feed.number

    def next_number(self, feed: Feed) -> int:
        """Returns the number of the next poll to publish. Raises `ChannelError`."""
        return max(feed.number, self._last(feed)) + 1

    async def catch_up(self, feed: Feed) -> None:
        """Publishes what was stored and is not published. Raises as `publish`."""
        if self.is_behind(feed):
            found = await self._items.of_poll(feed_collection(feed.name), feed.number)
            await self.publish(feed, found)

    async def publish(self, feed: Feed, items: Sequence[NewItem | StoredItem]) -> None:
        """Publishes the items of poll `feed.number`, on disk when it returns.

        Raises `NotPolled` while memory or disk is short or a queue refuses them, `LowOnMemory`,
        `ChannelError` and `StorageFailed`.
        """
        shortage = self._engine.shortage()
        if shortage:
            raise NotPolled(f"nothing is published now: {shortage}", field="feed", value=feed.name)
        await self.declare(feed.vhost)
        try:
            outcome = await self._engine.transactions(feed.vhost).publish(
                None, FEEDS.name, self._rows(feed, items), feed.series, feed.number,
                max_bytes=MAX_BYTES,
            )  # fmt: skip
        except QueueFull as error:
            raise NotPolled(str(error), field="feed", value=feed.name) from error
        if not outcome.is_durable:
            raise NotPolled("the disk is full", field="feed", value=feed.name)

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

    def forget(self, feed: Feed) -> None:
        """Forgets the series of a removed feed."""
        if feed.vhost in self._engine.vhosts():
            self._engine.transactions(feed.vhost).forget(feed.series)

    def _last(self, feed: Feed) -> int:
        last = self._engine.transactions(feed.vhost).last(feed.series)
        return 0 if last is None else last.number

    async def _rows(
        self, feed: Feed, items: Sequence[NewItem | StoredItem]
    ) -> AsyncIterator[Sequence[Row]]:
        limit = self._engine.max_message_bytes()
        for first in range(0, len(items), _ROWS_AT_ONCE):
            some = items[first : first + _ROWS_AT_ONCE]
            large = [item for item in some if len(item.body) > limit]
            fitted = {
                item.item_id: await asyncio.to_thread(reduce_to, item.body, limit) for item in large
            }
            rows = (_row(feed, item, fitted.get(item.item_id, item.body)) for item in some)
            yield [row for row in rows if row is not None]


def _row(feed: Feed, item: NewItem | StoredItem, body: bytes | None) -> Row | None:
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
    return feed.name.encode(), wire.encode(properties), body
