"""Upstreams in SQL. Every method is one committed transaction, durable when it returns."""

from __future__ import annotations

import msgspec
from sqlalchemy import delete, select

from ..keys.seal import Sealer
from ..storage.database import Database
from ..storage.tables import UpstreamRow
from .upstream import Upstream, UpstreamLeases, UpstreamRequest, UpstreamStatus


class UpstreamRepository:
    """Reads and writes the table of upstreams."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer

    async def put(self, upstream: Upstream) -> None:
        """Stores the upstream as a new row, or instead of the row with its id."""
        async with self._database.begin() as session:
            await session.merge(self._to_row(upstream))

    async def delete(self, upstream_id: str) -> None:
        async with self._database.begin() as session:
            await session.execute(delete(UpstreamRow).where(UpstreamRow.id == upstream_id))

    async def all(self) -> list[Upstream]:
        async with self._database.begin() as session:
            return [self._from_row(row) for row in await session.scalars(select(UpstreamRow))]

    def _to_row(self, upstream: Upstream) -> UpstreamRow:
        leases = msgspec.json.encode(upstream.leases).decode()
        return UpstreamRow(
            id=upstream.id,
            vhost=upstream.vhost,
            name=upstream.name,
            owner=upstream.owner,
            status=upstream.status.value,
            reason=upstream.reason,
            wish=msgspec.json.encode(upstream.request).decode(),
            lines=self._sealer.seal(leases, upstream.id),
            renew_at=upstream.renew_at,
        )

    def _from_row(self, row: UpstreamRow) -> Upstream:
        return Upstream(
            id=row.id,
            vhost=row.vhost,
            name=row.name,
            owner=row.owner,
            status=UpstreamStatus(row.status),
            reason=row.reason,
            request=msgspec.json.decode(row.wish, type=UpstreamRequest),
            leases=msgspec.json.decode(self._sealer.open(row.lines, row.id), type=UpstreamLeases),
            renew_at=row.renew_at,
        )
