"""Feeds in SQL. Each method is one transaction, durable when it returns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

import msgspec
from sqlalchemy import Table, bindparam, delete, insert, select, update

from ..formats.model import FeedHead
from ..storage.database import Database
from ..storage.tables import FeedRow
from .feed import Feed, FeedRequest, FeedState, FeedStatus
from .item_rows import add_items, delete_items, trim_items
from .stored_item import NewItem, feed_collection

_table = cast(Table, FeedRow.__table__)
_encode = msgspec.json.encode


class FeedRepository:
    """Reads and writes feeds, with their items."""

    def __init__(self, database: Database, kept: int) -> None:
        self._database = database
        self._kept = kept

    async def all(self) -> list[Feed]:
        async with self._database.begin() as session:
            query = select(*(column for column in _table.c if column.name != "head"))
            return [_from_row(row._mapping) for row in await session.execute(query)]

    async def head(self, feed_id: str) -> FeedHead | None:
        """Returns what the feed says of itself; None before its first poll."""
        async with self._database.begin() as session:
            found = await session.scalar(select(FeedRow.head).where(FeedRow.id == feed_id))
            return msgspec.json.decode(found, type=FeedHead) if found else None

    async def add(self, feeds: Sequence[Feed]) -> None:
        """Stores new feeds, all or none."""
        async with self._database.begin() as session:
            await session.execute(
                insert(FeedRow), [{**_to_row(feed), "head": ""} for feed in feeds]
            )

    async def put(self, feeds: Sequence[Feed]) -> None:
        """Stores changed feeds; a deleted one stays deleted."""
        rows = [_to_row(feed) for feed in feeds]
        for row in rows:
            row["the_id"] = row.pop("id")
        values: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "the_id"}
        query = update(_table).where(_table.c.id == bindparam("the_id")).values(values)
        async with self._database.begin() as session:
            await (await session.connection()).execute(query, rows)

    async def put_changes(
        self,
        feed: Feed,
        head: FeedHead,
        items: Sequence[NewItem],
        known: Sequence[NewItem],
        present: Collection[str],
        at: float,
    ) -> None:
        """Stores a poll that found something, with its items, the oldest first.

        `known` are items that are stored without a message, before the others; `present` are the
        ids in the document.
        """
        collection = feed_collection(feed.name)
        row = {**_to_row(feed), "head": _encode(head).decode()}
        async with self._database.begin() as session:
            done = await session.execute(
                update(FeedRow).where(FeedRow.id == feed.id).values(row).returning(FeedRow.id)
            )
            if done.scalar() is None:
                return  # removed meanwhile
            await add_items(session, collection, known, 0, at)
            await add_items(session, collection, items, feed.number, at)
            await trim_items(session, collection, max(self._kept, len(items)), present)

    async def set_next(self, feed_id: str, at: float) -> None:
        """Stores when a feed is polled next, and nothing else of it."""
        async with self._database.begin() as session:
            row = update(FeedRow).where(FeedRow.id == feed_id)
            await session.execute(row.values(next_at=at))

    async def delete(self, feeds: Collection[Feed]) -> None:
        """Deletes feeds with their items."""
        async with self._database.begin() as session:
            for feed in feeds:
                await session.execute(delete(FeedRow).where(FeedRow.id == feed.id))
                await delete_items(session, feed_collection(feed.name))


def _to_row(feed: Feed) -> dict[str, Any]:
    return {
        "id": feed.id,
        "name": feed.name,
        "vhost": feed.vhost,
        "owner": feed.owner,
        "url": feed.url,
        "request": _encode(feed.request).decode(),
        "state": feed.state.value,
        "number": feed.number,
        "next_at": feed.next_at,
        "status": _encode(feed.status).decode(),
    }


def _from_row(row: Any) -> Feed:
    return Feed(
        id=row["id"],
        name=row["name"],
        vhost=row["vhost"],
        owner=row["owner"],
        url=row["url"],
        request=msgspec.json.decode(row["request"], type=FeedRequest),
        state=FeedState(row["state"]),
        number=row["number"],
        next_at=row["next_at"],
        status=msgspec.json.decode(row["status"], type=FeedStatus),
    )
