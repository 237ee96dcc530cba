"""The items that a feed has when it becomes a source: an output begins with the newest of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from ..feeds.feed import EXCHANGE as FEEDS_EXCHANGE
from ..feeds.items import ItemStore
from ..feeds.stored_item import StoredItem, feed_collection
from ..formats.model import decode_item
from .collecting import CollectedItem, CollectResult
from .filtering import dated_s
from .messages import CollectedMessage

FIRST_ITEMS: Final = 50
"""How many items of its feeds an output begins with: as many as a page of its documents has."""


async def first_items(
    items: ItemStore,
    feeds: Iterable[str],
    collected: Callable[[list[CollectedMessage]], Awaitable[CollectResult]],
) -> CollectResult:
    """Returns the newest of the items that `collected` selects, the oldest first. Raises
    `StorageFailed`."""
    newest: list[tuple[float, CollectedItem]] = []
    for name in feeds:
        page = await items.page(feed_collection(name), limit=FIRST_ITEMS)
        found = await collected([_message(name, one) for one in reversed(page)])
        newest += [(dated_s(decode_item(one.item), page[0].at), one) for one in found.items]
        newest = sorted(newest, key=lambda dated: dated[0])[-FIRST_ITEMS:]
    return CollectResult([one for _, one in newest], [])


def _message(feed: str, item: StoredItem) -> CollectedMessage:
    """Returns the message with which an item of a feed is published."""
    return CollectedMessage(
        item.item_id, feed, "application/json", item.body, feed, item.at, FEEDS_EXCHANGE
    )
