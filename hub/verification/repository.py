"""Pending verifications in SQL. Each method is one committed transaction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy import delete, select

from ..keys.seal import Sealer
from ..requests import Mode, SubscribeRequest
from ..storage.database import Database
from ..storage.tables import VerificationRow


class PendingVerification(msgspec.Struct, frozen=True):
    """An accepted request; `asked_at` is wall time in seconds, and only sorts them."""

    id: str
    mode: Mode
    request: SubscribeRequest
    asked_at: float


class VerificationRepository:
    """Reads and writes the table of pending verifications."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer

    async def change(
        self, added: Sequence[PendingVerification], deleted: Sequence[PendingVerification]
    ) -> None:
        """Adds some and deletes others, or nothing after an error."""
        ids = [pending.id for pending in deleted]
        async with self._database.begin() as session:
            session.add_all([self._to_row(pending) for pending in added])
            if ids:
                await session.execute(delete(VerificationRow).where(VerificationRow.id.in_(ids)))

    async def all(self) -> list[PendingVerification]:
        """Returns all, the oldest first."""
        async with self._database.begin() as session:
            order = (VerificationRow.asked_at, VerificationRow.id)
            rows = (await session.scalars(select(VerificationRow).order_by(*order))).all()
            return [self._from_row(row) for row in rows]

    def _to_row(self, pending: PendingVerification) -> VerificationRow:
        sealed = self._sealer.seal(msgspec.json.encode(pending).decode(), pending.id)
        return VerificationRow(id=pending.id, request=sealed, asked_at=pending.asked_at)

    def _from_row(self, row: VerificationRow) -> PendingVerification:
        return msgspec.json.decode(self._sealer.open(row.request, row.id), type=PendingVerification)
