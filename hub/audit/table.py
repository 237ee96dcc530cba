"""The audit log in SQL; imported only where the database is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from sqlalchemy import delete, insert, or_, select

from ..storage.database import Database
from ..storage.tables import AuditRow
from .entry import AuditEntry, AuditFilter, StoredEntry

REFUSALS: Final = (401, 403)
_CHARACTERS = {"user": 255, "address": 255, "action": 16, "subject": 2_000, "token": 200}


class AuditTable:
    """The table of the audit log. Every method is one transaction, and raises `StorageFailed`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, entries: Sequence[AuditEntry]) -> None:
        async with self._database.begin() as session:
            await session.execute(insert(AuditRow), [_values(entry) for entry in entries])

    async def find(self, wanted: AuditFilter, since_s: float) -> list[StoredEntry]:
        """Returns those from `since_s` on, the newest first."""
        found = select(AuditRow).where(AuditRow.at >= since_s)
        for column, value in (
            (AuditRow.user, wanted.user),
            (AuditRow.address, wanted.address),
            (AuditRow.action, wanted.action),
        ):
            if value is not None:
                found = found.where(column == value)
        if wanted.subject is not None:
            found = found.where(AuditRow.subject.startswith(wanted.subject, autoescape=True))
        if wanted.before is not None:
            found = found.where(AuditRow.id < wanted.before)
        async with self._database.begin() as session:
            rows = await session.scalars(found.order_by(AuditRow.id.desc()).limit(wanted.limit))
            return [StoredEntry(row.id, _entry(row)) for row in rows]

    async def drop_oldest(self, before_s: float, keep_rows: int) -> None:
        """Drops entries from before a time, and the oldest of too many. Refusals have a tenth of
        the rows: guesses and refused requests in masses must not drive out what was changed."""
        refused = AuditRow.status.in_(REFUSALS)
        async with self._database.begin() as session:
            for kind, keep in ((refused, keep_rows // 10), (~refused, keep_rows)):
                ids = select(AuditRow.id).where(kind).order_by(AuditRow.id.desc())
                newest_dropped = ids.offset(keep).limit(1).scalar_subquery()
                is_due = or_(AuditRow.at < before_s, AuditRow.id <= newest_dropped)
                await session.execute(delete(AuditRow).where(kind, is_due))


def _values(entry: AuditEntry) -> dict[str, object]:
    """Returns the columns, without what a database refuses: clients choose some of the texts, and
    one row that fails would hold up all the others."""
    values = asdict(entry)
    for name, characters in _CHARACTERS.items():
        text = values[name][:characters].encode(errors="replace").decode()
        values[name] = text.replace("\0", "\ufffd")
    return values


def _entry(row: AuditRow) -> AuditEntry:
    return AuditEntry(
        row.at, row.user, row.address, row.action, row.subject, row.status, row.token, row.before,
        row.after,
    )  # fmt: skip
