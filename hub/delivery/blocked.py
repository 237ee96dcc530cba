"""The messages that strict orders wait for, in SQL; imported only where the database is open.

Every method is one committed transaction, and raises `StorageFailed`.
"""

from __future__ import annotations

from sqlalchemy import delete, select

from ..storage.database import Database
from ..storage.tables import BlockedRow, SubscriptionRow
from .failure_state import Blocking


class BlockedTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> dict[str, Blocking]:
        """Returns the messages by the id of the subscription; deletes rows of subscriptions that do
        not exist."""
        async with self._database.begin() as session:
            known = select(SubscriptionRow.id)
            gone = BlockedRow.subscription_id.not_in(known)
            await session.execute(delete(BlockedRow).where(gone))
            rows = await session.scalars(select(BlockedRow))
            return {
                row.subscription_id: Blocking(
                    row.webhook_id, row.failures, row.not_before, row.reason
                )
                for row in rows
            }

    async def put(self, subscription_id: str, blocking: Blocking) -> None:
        row = BlockedRow(
            subscription_id=subscription_id,
            webhook_id=blocking.webhook_id,
            failures=blocking.failures,
            not_before=blocking.not_before,
            reason=blocking.reason,
        )
        async with self._database.begin() as session:
            await session.merge(row)

    async def drop(self, subscription_id: str) -> None:
        async with self._database.begin() as session:
            row = BlockedRow.subscription_id == subscription_id
            await session.execute(delete(BlockedRow).where(row))
