"""Capabilities in SQL. Every method is one committed transaction, durable when it returns."""

from __future__ import annotations

from typing import cast

from sqlalchemy import delete, select

from ..requests import Kind, Resource
from ..storage.database import Database
from ..storage.tables import CapabilityRow
from .capability import Capability


class CapabilityRepository:
    """Reads and writes the table of capabilities."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, capability: Capability) -> None:
        async with self._database.begin() as session:
            session.add(_to_row(capability))

    async def delete(self, capability_id: str) -> None:
        async with self._database.begin() as session:
            row = CapabilityRow.id == capability_id
            await session.execute(delete(CapabilityRow).where(row))

    async def all(self) -> list[Capability]:
        async with self._database.begin() as session:
            rows = await session.scalars(select(CapabilityRow).order_by(CapabilityRow.made_at))
            return [_from_row(row) for row in rows]


def _to_row(capability: Capability) -> CapabilityRow:
    return CapabilityRow(
        id=capability.id,
        digest=capability.digest,
        vhost=capability.resource.vhost,
        kind=capability.resource.kind,
        name=capability.resource.name,
        routing_key=capability.routing_key,
        owner=capability.owner,
        note=capability.note,
        made_at=capability.made_at,
        expires_at=capability.expires_at,
    )


def _from_row(row: CapabilityRow) -> Capability:
    return Capability(
        id=row.id,
        digest=row.digest,
        resource=Resource(row.vhost, cast(Kind, row.kind), row.name),
        owner=row.owner,
        made_at=row.made_at,
        expires_at=row.expires_at,
        routing_key=row.routing_key,
        note=row.note,
    )
