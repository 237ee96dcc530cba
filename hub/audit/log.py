"""Writes the audit log, in groups, after the changes were answered."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..lazy import Lazy
from ..settings import HubSettings
from ..storage.storage import Storage
from ..tasks import Tasks
from .entry import AuditEntry, AuditFilter, StoredEntry

if TYPE_CHECKING:
    from .table import AuditTable

MAX_PENDING: Final = 10_000
"""Entries that wait for the database, about 1 kB each; more are lost."""
MAX_GROUP: Final = 500
TRY_AGAIN_S: Final = 1.0
STOP_WITHIN_S: Final = 1.0
READ_WITHIN_S: Final = 2.0
"""How long a reader waits for what was recorded before."""
CLEAN_AFTER_ROWS: Final = 500

log = logging.getLogger(__name__)


class AuditLog:
    """The audit log. The database is opened at the first entry.

    A database that fails changes no answer: entries wait in memory, and the log of the server says
    so, once for each outage.
    """

    def __init__(self, storage: Storage, settings: HubSettings, clock: Clock) -> None:
        self._storage = storage
        self._settings = settings
        self._clock = clock
        self._table: Lazy[AuditTable] = Lazy(self._open)
        self._pending: deque[AuditEntry] = deque()
        self._lost = 0
        self._tasks = Tasks()
        self._writer: asyncio.Task[None] | None = None
        self._is_failing = False
        self._rows_to_clean = 0

    def record(
        self, user: str, address: str, action: str, subject: str = "", *, status: int = 200,
        token: str = "", before: str = "", after: str = "",
    ) -> None:  # fmt: skip
        """Records a change or a login that happens now; it is written soon."""
        if len(self._pending) >= MAX_PENDING:
            self._lost += 1
            return
        now_s = self._clock.wall_s()
        self._pending.append(
            AuditEntry(now_s, user, address, action, subject, status, token, before, after)
        )
        if self._writer is None:
            self._writer = self._tasks.own(self._write())

    async def find(self, wanted: AuditFilter) -> list[StoredEntry]:
        """Returns entries, the newest first, with all that was recorded before the call.

        Raises `StorageFailed`.
        """
        if self._writer is not None:
            await asyncio.wait({self._writer}, timeout=READ_WITHIN_S)
        return await (await self._table.get()).find(wanted, self._oldest_s())

    async def stop(self) -> None:
        """Writes what is pending for up to a second."""
        if self._writer is not None:
            await asyncio.wait({self._writer}, timeout=STOP_WITHIN_S)
        await self._tasks.stop()
        if self._pending:
            log.error("%d entries of the audit log were not written", len(self._pending))

    async def _open(self) -> AuditTable:
        database = await self._storage.database()
        from .table import AuditTable

        return AuditTable(database)

    async def _write(self) -> None:
        """Writes all that is pending, however often the database fails."""
        try:
            while self._pending:
                try:
                    await self._write_group(await self._table.get())
                except Exception as error:  # no entry is dropped
                    self._report(error)
                    await asyncio.sleep(TRY_AGAIN_S)
                else:
                    self._is_failing = False
                    self._report_lost()
        finally:
            self._writer = None

    async def _write_group(self, table: AuditTable) -> None:
        group = list(islice(self._pending, MAX_GROUP))
        await table.add(group)
        for _ in group:
            self._pending.popleft()
        self._rows_to_clean -= len(group)
        if self._rows_to_clean <= 0:
            await table.drop_oldest(self._oldest_s(), self._settings.max_audit_rows)
            self._rows_to_clean = CLEAN_AFTER_ROWS

    def _oldest_s(self) -> float:
        return self._clock.wall_s() - self._settings.audit_retention_s

    def _report(self, error: Exception) -> None:
        if not self._is_failing:
            self._is_failing = True
            trace = None if isinstance(error, WarrenError) else error
            count = len(self._pending)
            log.error(
                "%d entries of the audit log wait for the database: %s",
                count,
                error,
                exc_info=trace,
            )

    def _report_lost(self) -> None:
        if self._lost:
            log.error(
                "%d entries of the audit log were lost: the queue of %d pending entries was full",
                self._lost, MAX_PENDING,
            )  # fmt: skip
            self._lost = 0
