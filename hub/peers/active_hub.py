"""The row that says which hub is active. Only the session with the lock writes it."""

from __future__ import annotations

from dataclasses import dataclass

import asyncpg

from ..storage.database import Database
from ..storage.tables import ActiveHubRow

_PLACE = 1


@dataclass(frozen=True, slots=True)
class ActiveHub:
    """A hub that is active, or was until it ended; without an id it has stopped by itself."""

    id: str
    address: str
    key_print: str


async def read(session: asyncpg.Connection) -> ActiveHub | None:
    """Returns what a session without the lock sees; None also before a newer Warren has made the
    table."""
    if await session.fetchval("SELECT to_regclass('active_hub')") is None:
        return None
    row = await session.fetchrow("SELECT hub, address, key_print FROM active_hub")
    return None if row is None else ActiveHub(*row)


async def load(database: Database) -> ActiveHub | None:
    """Raises `StorageFailed`."""
    async with database.begin() as session:
        row = await session.get(ActiveHubRow, _PLACE)
        return None if row is None else ActiveHub(row.hub, row.address, row.key_print)


async def store(database: Database, active: ActiveHub) -> None:
    """Raises `StorageFailed`."""
    row = ActiveHubRow(
        place=_PLACE, hub=active.id, address=active.address, key_print=active.key_print
    )
    async with database.begin() as session:
        await session.merge(row)
