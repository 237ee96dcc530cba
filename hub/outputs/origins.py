"""Tells apart items of different origins that have the same id.

The origin of an item is where its message was published: the feed, the exchange, or the queue that
the default exchange led to. The first origin that brings an id keeps it in the output; the items of
others get an id of their own, which no message can choose.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from ..feeds.feed import EXCHANGE as FEEDS_EXCHANGE
from ..feeds.stored_item import OWN_IDS, KnownItem

_DIGEST_BYTES = 16
UNKNOWN = ""
"""The origin of items that a Warren has stored that did not record any."""


class ItemKey(NamedTuple):
    """What makes an item the same one when it is published again."""

    origin: str
    id: str
    """As the message has it, in the scope of its feed or exchange."""

    @property
    def own_id(self) -> str:
        """An id that no item of another origin has."""
        return OWN_IDS + _digest(self.origin, self.id)

    @property
    def ids(self) -> tuple[str, str]:
        """The ids that it may have in the documents."""
        return self.id, self.own_id


def origin_of(exchange: str, routing_key: str) -> str:
    """Returns the origin of a message, as a digest; also where a stream has kept the message."""
    return _digest(exchange, routing_key if exchange in (FEEDS_EXCHANGE, "") else "")


class KnownItems:
    """Items that an output has, by the ids in its documents."""

    def __init__(self, items: Mapping[str, KnownItem]) -> None:
        self._items = dict(items)

    def find(self, key: ItemKey) -> str | None:
        """Returns the id of an item in the documents, None if the output does not have the item.

        An item of unknown origin is that of the first message with its id.
        """
        if key.own_id in self._items:
            return key.own_id
        found = self._items.get(key.id)
        is_same = found is not None and found.origin in (key.origin, UNKNOWN)
        return key.id if is_same and not key.id.startswith(OWN_IDS) else None

    def put(self, key: ItemKey, digest: str) -> str | None:
        """Adds or replaces an item; returns its id in the documents, None if it has not changed."""
        item_id = self.find(key)
        if item_id is None:
            is_free = key.id not in self._items and not key.id.startswith(OWN_IDS)
            item_id = key.id if is_free else key.own_id
        elif self._items[item_id].digest == digest:
            return None
        self._items[item_id] = KnownItem(digest, key.origin)
        return item_id

    def remove(self, key: ItemKey) -> str | None:
        """Removes an item; returns the id that it had, None if it was not there."""
        item_id = self.find(key)
        if item_id is not None:
            del self._items[item_id]
        return item_id


def _digest(*parts: str) -> str:
    text = "\0".join(f"{len(part)} {part}" for part in parts).encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()
