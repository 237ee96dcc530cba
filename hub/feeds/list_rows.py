"""Lists of feeds in SQL. Each method is one transaction, durable when it returns."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import ColumnElement, delete, select

from ..storage.database import Database
from ..storage.tables import FeedListRow
from .list_key import ListKey


class FeedListRows:
    """Reads and writes the table of lists."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keys(self) -> list[ListKey]:
        async with self._database.begin() as session:
            found = await session.execute(select(FeedListRow.vhost, FeedListRow.owner))
            return [ListKey(*row) for row in found]

    async def get(self, key: ListKey) -> str | None:
        async with self._database.begin() as session:
            return await session.scalar(select(FeedListRow.document).where(*_is(key)))

    async def put(self, key: ListKey, document: str) -> None:
        async with self._database.begin() as session:
            await session.merge(FeedListRow(vhost=key.vhost, owner=key.owner, document=document))

    async def delete(self, keys: Iterable[ListKey]) -> None:
        async with self._database.begin() as session:
            for key in keys:
                await session.execute(delete(FeedListRow).where(*_is(key)))


def _is(key: ListKey) -> tuple[ColumnElement[bool], ...]:
    return FeedListRow.vhost == key.vhost, FeedListRow.owner == key.owner
