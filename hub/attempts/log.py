"""The log of attempts, written in batches; messages are acknowledged when theirs is durable."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..lazy import Lazy
from ..settings import HubSettings
from ..storage.storage import Storage
from ..tasks import Tasks
from .attempt import Attempt, AttemptCount, AttemptFilter, StoredAttempt

if TYPE_CHECKING:
    from .published import PublishedAttempts
    from .table import AttemptTable

GATHER_S = 0.1
"""A transaction takes 2 ms however small it is, and only acknowledgements wait for it, which some
queues need soon (`hurry`)."""
MAX_BATCH = 2_000
SETTLED_AT_ONCE = 250
"""Messages that are settled in one iteration of the event loop: a few milliseconds."""
TRY_AGAIN_S = 1.0
STOP_WITHIN_S = 1.0
CLEAN_S = 60.0
CLEAN_AFTER_ROWS = 50_000
CLEAN_ROWS = 5_000  # some 10 ms
CLEANING_AFTER_ROWS = CLEAN_ROWS // 2
"""While there is something to delete: more is deleted than added."""

Settle = Callable[[Sequence[Any]], None]

log = logging.getLogger(__name__)


class AttemptLog:
    """The log of attempts, written in batches. The database is opened at the first attempt, or at
    the start if it has data."""

    def __init__(
        self,
        storage: Storage,
        settings: HubSettings,
        clock: Clock,
        published: PublishedAttempts | None = None,
    ) -> None:
        self._storage = storage
        self._settings = settings
        self._clock = clock
        self._published = published
        self._table: Lazy[AttemptTable] = Lazy(self._open)
        self._pending: deque[tuple[Attempt, Settle, Any]] = deque()
        self._arrived = asyncio.Event()
        self._is_urgent = asyncio.Event()
        self._tasks = Tasks()
        self._writer: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._is_failing = False
        self._rows_to_clean = CLEAN_AFTER_ROWS
        self._clean_at_s = 0.0

    @property
    def pending_count(self) -> int:
        """The number of attempts that are not durable yet."""
        return len(self._pending)

    def record(self, attempt: Attempt, settle: Settle, what: object) -> None:
        """Stores the attempt, then calls `settle` with `what`, together with that of consecutive
        attempts with the same `settle`."""
        self._pending.append((attempt, settle, what))
        self._arrived.set()
        self._begin()

    def hurry(self) -> None:
        """Has what is pending written without gathering more."""
        self._is_urgent.set()

    async def find(self, wanted: AttemptFilter) -> list[StoredAttempt]:
        """Returns stored attempts, the newest first. Raises `StorageFailed`."""
        return await (await self._table.get()).find(wanted)

    async def count(self, wanted: AttemptFilter) -> list[AttemptCount]:
        """Counts the newest attempts, `limit` at most. Raises `StorageFailed`."""
        return await (await self._table.get()).count(wanted)

    async def get(self, attempt_id: int) -> StoredAttempt | None:
        """Returns the attempt with its request. Raises `StorageFailed`."""
        return await (await self._table.get()).get(attempt_id)

    async def last_failures(self) -> dict[str, StoredAttempt]:
        """Returns the last attempt of each subscription where that has failed, by the
        subscription's id.

        Raises `StorageFailed`.
        """
        return await (await self._table.get()).last_failures()

    async def start(self) -> None:
        if not self._storage.is_empty():
            self._begin()  # to delete old attempts

    async def stop(self) -> None:
        """Writes pending attempts for up to a second. Messages of the others are not settled, so
        they are delivered again after the next start."""
        self._is_stopping = True
        self._arrived.set()
        if self._writer is not None:
            await asyncio.wait({self._writer}, timeout=STOP_WITHIN_S)
        await self._tasks.stop()
        if self._pending:
            log.warning(
                "%d attempts were not stored; their deliveries will be repeated", len(self._pending)
            )

    async def _open(self) -> AttemptTable:
        database = await self._storage.database()
        from .table import AttemptTable

        return AttemptTable(database, self._storage.sealer)

    def _begin(self) -> None:
        if self._writer is None and not self._is_stopping:
            self._writer = self._tasks.own(self._write())

    async def _write(self) -> None:
        """Writes until `stop`, whatever fails in the database."""
        while self._pending or not self._is_stopping:
            try:
                table = await self._table.get()
                await self._write_batch(table)
                self._is_urgent.clear()
                await self._clean(table)
            except Exception as error:  # no attempt is dropped
                self._report(error)
                await asyncio.sleep(TRY_AGAIN_S)
            else:
                self._is_failing = False
                await self._gather()

    async def _gather(self) -> None:
        """Waits until there is a batch to write, or a time to clean."""
        if not self._pending and not self._is_stopping:
            self._arrived.clear()
            try:
                async with asyncio.timeout_at(self._clean_at_s):
                    await self._arrived.wait()
            except TimeoutError:
                return
        if len(self._pending) < MAX_BATCH and not self._is_stopping:
            with suppress(TimeoutError):
                async with asyncio.timeout(GATHER_S):
                    await self._is_urgent.wait()

    async def _write_batch(self, table: AttemptTable) -> None:
        batch = list(islice(self._pending, MAX_BATCH))
        if not batch:
            return
        attempts = [attempt for attempt, _, _ in batch]
        await table.add(attempts)
        if self._published is not None:
            await self._published.publish(attempts)
        self._rows_to_clean -= len(batch)
        for at in range(0, len(batch), SETTLED_AT_ONCE):
            if at:
                await asyncio.sleep(0)
            chunk = batch[at : at + SETTLED_AT_ONCE]
            for _ in chunk:
                self._pending.popleft()
            for settle, group in groupby(chunk, itemgetter(1)):
                self._settle(settle, [what for _, _, what in group])

    def _settle(self, settle: Settle, whats: list[Any]) -> None:
        try:
            settle(whats)
        except Exception:
            log.exception("%d messages could not be settled", len(whats))

    async def _clean(self, table: AttemptTable) -> None:
        """Deletes a few old attempts, if it is time."""
        now_s = asyncio.get_running_loop().time()
        if self._rows_to_clean > 0 and now_s < self._clean_at_s:
            return
        settings = self._settings
        before_s = self._clock.wall_s() - settings.attempt_retention_s
        dropped = await table.drop_oldest(before_s, settings.max_attempt_rows, CLEAN_ROWS)
        self._rows_to_clean = CLEANING_AFTER_ROWS if dropped else CLEAN_AFTER_ROWS
        # While there is more to delete, soon: the database has one connection for all.
        is_done = dropped < CLEANING_AFTER_ROWS
        self._clean_at_s = now_s + (CLEAN_S if is_done else GATHER_S)

    def _report(self, error: Exception) -> None:
        if not self._is_failing:
            self._is_failing = True
            count = len(self._pending)
            is_known = isinstance(error, WarrenError)
            log.warning(
                "%d attempts and their acks are waiting for the database: %s", count, error,
                exc_info=None if is_known else error,
            )  # fmt: skip
