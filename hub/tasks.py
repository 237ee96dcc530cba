"""Tasks that a part of the hub owns; their errors are logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from ..core.errors import WarrenError

log = logging.getLogger(__name__)


class Tasks:
    """Logs errors that are no `WarrenError`, which the awaiting code handles."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def own(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return task

    async def complete(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs `work` to its end, also if the caller is cancelled meanwhile."""
        await asyncio.shield(self.own(work))

    async def stop(self) -> None:
        """Cancels all tasks and waits for their end."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, WarrenError):
            log.error("a task of the hub failed", exc_info=error)
