"""Group commit: changes that are added at the same time are committed in one transaction.

A commit takes as long for a hundred changes as for one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

Change = TypeVar("Change")

MAX_AT_ONCE = 200
"""Changes in a transaction: below the limits of a statement's parameters, and soon written."""


class GroupCommit(Generic[Change]):
    """Commits changes in groups by `commit`, which does all of a list or, raising, nothing.

    After an error each change of the group is tried alone, so that a faulty one does not fail the
    others; without `retries_alone` the error is raised for all of them. `start` starts the task
    that commits; when that is cancelled, so are those who wait.
    """

    def __init__(
        self,
        commit: Callable[[list[Change]], Awaitable[None]],
        *,
        retries_alone: bool = True,
        start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]] = asyncio.create_task,
    ) -> None:
        self._commit = commit
        self._start = start
        self._retries_alone = retries_alone
        self._waiting: list[tuple[Change, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def add(self, change: Change) -> None:
        """Returns when the change is durable; raises what `commit` raises for it."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, done))
        if self._task is None:
            self._task = self._start(self._run())
        await done

    async def close(self) -> None:
        """Waits until all changes are committed or have failed."""
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        group: list[tuple[Change, asyncio.Future[None]]] = []
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:MAX_AT_ONCE], self._waiting[MAX_AT_ONCE:]
                await self._commit_group(group)
        finally:
            self._task = None
            for _, done in (*group, *self._waiting):
                done.cancel()  # only a cancelled task leaves any that are not done

    async def _commit_group(self, group: list[tuple[Change, asyncio.Future[None]]]) -> None:
        error = await self._try(group)
        if error is not None and self._retries_alone and len(group) > 1:
            for one in group:
                _finish([one], await self._try([one]))
        else:
            _finish(group, error)

    async def _try(self, group: list[tuple[Change, asyncio.Future[None]]]) -> Exception | None:
        try:
            await self._commit([change for change, _ in group])
        except Exception as error:
            return error
        return None


def _finish(group: list[tuple[Change, asyncio.Future[None]]], error: Exception | None) -> None:
    """Ends the wait of those who still wait."""
    for _, done in group:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
