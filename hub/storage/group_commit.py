"""Commits changes that come at the same time in one transaction, for a commit takes as long for a
hundred of them as for one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Change = TypeVar("Change")

MAX_AT_ONCE = 200
"""Below what a statement may have of parameters, and soon over."""


class GroupCommit(Generic[Change]):
    """`commit` does all of a list of changes or, raising, none."""

    def __init__(self, commit: Callable[[list[Change]], Awaitable[None]]) -> None:
        self._commit = commit
        self._waiting: list[tuple[Change, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def add(self, change: Change) -> None:
        """Durable when it returns; raises what `commit` raises for this change alone."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, done))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await done

    async def close(self) -> None:
        """Returns when all that was begun is over."""
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:MAX_AT_ONCE], self._waiting[MAX_AT_ONCE:]
                if not await self._try(group) and len(group) > 1:
                    for one in group:  # what is wrong with one must not fail the others
                        await self._try([one])
        finally:
            self._task = None

    async def _try(self, group: list[tuple[Change, asyncio.Future[None]]]) -> bool:
        try:
            await self._commit([change for change, _ in group])
        except Exception as error:
            if len(group) == 1 and not group[0][1].done():
                group[0][1].set_exception(error)
            return False
        for _, done in group:
            if not done.done():
                done.set_result(None)
        return True
