"""Stored items of feeds and outputs.

A collection is a feed (`feed_collection`) or an output (`output_collection`). Its newest items have
their content, older ones only a digest, by which a change is recognised.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ..storage.storage import Storage
from .stored_item import KnownItem, NewItem, StoredItem

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession


class ItemStore:
    """Reads and writes items; each method is one transaction. Raises `StorageFailed`.

    `kept` is how many items of a collection keep their content.
    """

    def __init__(self, storage: Storage, kept: int, clock: Clock) -> None:
        self._storage = storage
        self._kept = kept
        self._clock = clock

    async def page(
        self, collection: str, before: int | None = None, limit: int = 50
    ) -> list[StoredItem]:
        """Returns the newest items, or the newest whose number is below `before`; of an output,
        those that several origins have once."""
        async with self._session() as session:
            from .item_rows import read_page

            return await read_page(session, collection, before, limit)

    async def of_poll(self, collection: str, poll: int) -> list[StoredItem]:
        """Returns the items that a poll has found, the oldest first."""
        async with self._session() as session:
            from .item_rows import read_poll

            return await read_poll(session, collection, poll)

    async def digests(self, collection: str) -> dict[str, str]:
        """Returns the digests of all known items by their ids."""
        async with self._session() as session:
            from .item_rows import read_digests

            return await read_digests(session, collection)

    async def known(self, collection: str, item_ids: Sequence[str]) -> dict[str, KnownItem]:
        """Returns the digests and origins of those of the items that are known, by their ids."""
        async with self._session() as session:
            from .item_rows import read_known

            return await read_known(session, collection, item_ids)

    async def put(self, collection: str, items: Sequence[NewItem]) -> None:
        """Stores items, the oldest first; one whose id is stored already replaces that."""
        async with self._session() as session:
            from .item_rows import add_items, trim_items

            await add_items(session, collection, items, 0, self._clock.wall_s())
            await trim_items(session, collection, self._kept, ())

    async def remove_items(self, collection: str, item_ids: Sequence[str]) -> int:
        """Deletes items by their ids; returns how many there were."""
        async with self._session() as session:
            from .item_rows import delete_some

            return await delete_some(session, collection, item_ids)

    async def remove(self, collection: str) -> None:
        """Deletes a collection."""
        async with self._session() as session:
            from .item_rows import delete_items

            await delete_items(session, collection)

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[AsyncSession]:
        # Statements are imported within: SQLAlchemy, which they need, is loaded by then.
        async with (await self._storage.database()).begin() as session:
            yield session
