"""Registrations in SQL. Every method is one committed transaction, durable when it returns."""

from __future__ import annotations

from sqlalchemy import delete, select

from ..storage.database import Database
from ..storage.tables import TunnelRow
from .registration import TunnelRegistration


class TunnelRepository:
    """Reads and writes the table of tunnels."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, found: TunnelRegistration) -> None:
        """Stores a registration, in place of an earlier one of the label."""
        row = TunnelRow(
            label=found.label,
            digest=found.digest,
            owner=found.owner,
            lease_s=found.lease_s,
            made_at=found.made_at,
            released_at=found.released_at,
            blocked_until=found.blocked_until,
        )
        async with self._database.begin() as session:
            await session.merge(row)

    async def delete(self, label: str) -> None:
        async with self._database.begin() as session:
            await session.execute(delete(TunnelRow).where(TunnelRow.label == label))

    async def all(self) -> list[TunnelRegistration]:
        async with self._database.begin() as session:
            rows = await session.scalars(select(TunnelRow).order_by(TunnelRow.made_at))
            return [_registration(row) for row in rows]


def _registration(row: TunnelRow) -> TunnelRegistration:
    return TunnelRegistration(
        row.label, row.digest, row.owner, row.lease_s, row.made_at, row.released_at,
        row.blocked_until,
    )  # fmt: skip
