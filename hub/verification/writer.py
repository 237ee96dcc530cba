"""Writes pending verifications: all that wait are one transaction, for a commit takes as long for
a hundred as for one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ..tasks import Tasks

if TYPE_CHECKING:
    from .repository import PendingVerification, VerificationRepository

MAX_AT_ONCE = 200
"""Below what a statement may have of parameters, and soon over."""


class _Change:
    """To be added, or deleted; `done` is set when that is durable."""

    __slots__ = ("done", "is_over", "pending")

    def __init__(self, pending: PendingVerification, is_over: bool) -> None:
        self.pending = pending
        self.is_over = is_over
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(self, error: Exception | None) -> None:
        """Unless nobody waits for it any more."""
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class VerificationWriter:
    """`rows` opens the database at the first use."""

    def __init__(self, rows: Callable[[], Awaitable[VerificationRepository]], tasks: Tasks) -> None:
        self._rows = rows
        self._tasks = tasks
        self._waiting: list[_Change] = []
        self._is_writing = False

    async def add(self, pending: PendingVerification) -> None:
        """Durable when it returns; raises `StorageFailed`."""
        await self._write(_Change(pending, is_over=False))

    async def delete(self, pending: PendingVerification) -> None:
        """As `add`."""
        await self._write(_Change(pending, is_over=True))

    async def _write(self, change: _Change) -> None:
        self._waiting.append(change)
        if not self._is_writing:
            self._is_writing = True
            self._tasks.own(self._write_all())
        await change.done

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                changes = self._waiting[:MAX_AT_ONCE]
                del self._waiting[:MAX_AT_ONCE]
                await self._commit(changes)
        finally:
            self._is_writing = False
            for change in self._waiting:  # some are left only where the hub stops
                change.done.cancel()

    async def _commit(self, changes: list[_Change]) -> None:
        try:
            added = [change.pending for change in changes if not change.is_over]
            over = [change.pending for change in changes if change.is_over]
            await (await self._rows()).change(added, over)
        except Exception as error:  # for each of those who wait
            for change in changes:
                change.tell(error)
        else:
            for change in changes:
                change.tell(None)
        finally:
            for change in changes:
                change.done.cancel()  # where the hub stops; else it is done
