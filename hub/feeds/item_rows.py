"""Statements on the table of items, for sessions that store other rows too."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, and_, case, delete, func, insert, not_, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from ..storage.tables import FeedItemRow
from .stored_item import MAX_DIGESTS, OWN_IDS, Kind, KnownItem, NewItem, StoredItem

_AT_ONCE = 500
"""Ids in a statement, below the limits of its parameters."""
_row = FeedItemRow


async def read_page(
    session: AsyncSession, collection: str, before: int | None, limit: int
) -> list[StoredItem]:
    """Returns the newest items with content, or the newest whose number is below `before`; of an
    output, those that several origins have once."""
    query = select(_row).where(
        _row.collection == collection, _row.item.is_not(None), _is_first(collection)
    )
    if before is not None:
        query = query.where(_row.number < before)
    query = query.order_by(_row.number.desc()).limit(limit)
    return [_from_row(row) for row in await session.scalars(query)]


def _is_first(collection: str) -> ColumnElement[bool]:
    """Leaves out an output's item of `OWN_IDS` if there is one with the same digest that has its id
    from its message, or is older. An item of a feed, which has no origin, may have such an id."""
    has_own = and_(_row.item_id.startswith(OWN_IDS), _row.origin != "")
    alone = select(func.min(_row.number)).where(_row.collection == collection)
    alone = alone.group_by(_row.digest).having(func.min(case((has_own, 1), else_=0)) == 1)
    return or_(not_(has_own), _row.number.in_(alone))


async def read_poll(session: AsyncSession, collection: str, poll: int) -> list[StoredItem]:
    """Returns the items that a poll has found, the oldest first."""
    query = select(_row).where(
        _row.collection == collection, _row.poll == poll, _row.item.is_not(None)
    )
    return [_from_row(row) for row in await session.scalars(query.order_by(_row.number))]


async def read_digests(session: AsyncSession, collection: str) -> dict[str, str]:
    """Returns the digests of all known items by their ids."""
    query = select(_row.item_id, _row.digest).where(_row.collection == collection)
    return {row.item_id: row.digest for row in await session.execute(query)}


async def read_known(
    session: AsyncSession, collection: str, item_ids: Sequence[str]
) -> dict[str, KnownItem]:
    """Returns the digests and origins of those of the items that are known, by their ids."""
    found: dict[str, KnownItem] = {}
    query = select(_row.item_id, _row.digest, _row.origin).where(_row.collection == collection)
    for first in range(0, len(item_ids), _AT_ONCE):
        some = item_ids[first : first + _AT_ONCE]
        rows = await session.execute(query.where(_row.item_id.in_(some)))
        found.update((row.item_id, KnownItem(row.digest, row.origin)) for row in rows)
    return found


async def add_items(
    session: AsyncSession, collection: str, items: Sequence[NewItem], poll: int, at: float
) -> None:
    """Stores items, the oldest first; one whose id is stored already replaces that."""
    ids = [item.item_id for item in items]
    for first in range(0, len(ids), _AT_ONCE):
        some = ids[first : first + _AT_ONCE]
        query = delete(_row).where(_row.collection == collection, _row.item_id.in_(some))
        await session.execute(query)
    highest = select(func.max(_row.number)).where(_row.collection == collection)
    number = (await session.scalars(highest)).one() or 0
    rows = [
        {
            "collection": collection,
            "number": number + place,
            "item_id": item.item_id,
            "digest": item.digest,
            "item": item.body.decode(),
            "kind": item.kind,
            "poll": poll,
            "at": at,
            "origin": item.origin,
        }
        for place, item in enumerate(items, start=1)
    ]
    if rows:
        await session.execute(insert(_row), rows)


async def trim_items(
    session: AsyncSession, collection: str, kept: int, present: Collection[str]
) -> None:
    """Drops the content of all but the `kept` newest items, and the oldest digests.

    Those of items that are `present` in the source stay: they would be new again otherwise.
    """
    mine = _row.collection == collection
    oldest = select(_row.number).where(mine).order_by(_row.number.desc()).offset(kept - 1).limit(1)
    number = (await session.scalars(oldest)).one_or_none()
    if number is None:
        return
    bare = update(_row).where(mine, _row.number < number, _row.item.is_not(None))
    await session.execute(bare.values(item=None))
    beyond = select(_row.number, _row.item_id).where(mine).order_by(_row.number.desc())
    found = (await session.execute(beyond.offset(MAX_DIGESTS))).all()
    numbers = [row.number for row in found if row.item_id not in present]
    for first in range(0, len(numbers), _AT_ONCE):
        some = numbers[first : first + _AT_ONCE]
        await session.execute(delete(_row).where(mine, _row.number.in_(some)))


async def delete_some(session: AsyncSession, collection: str, item_ids: Sequence[str]) -> int:
    """Deletes items by their ids; returns how many there were."""
    count = 0
    for first in range(0, len(item_ids), _AT_ONCE):
        some = item_ids[first : first + _AT_ONCE]
        query = delete(_row).where(_row.collection == collection, _row.item_id.in_(some))
        count += len((await session.execute(query.returning(_row.number))).all())
    return count


async def delete_items(session: AsyncSession, collection: str) -> None:
    """Deletes a collection."""
    await session.execute(delete(_row).where(_row.collection == collection))


def _from_row(row: FeedItemRow) -> StoredItem:
    assert row.item is not None
    kind: Kind = "updated" if row.kind == "updated" else "new"
    return StoredItem(row.number, row.item_id, row.digest, row.item.encode(), kind, row.at)
