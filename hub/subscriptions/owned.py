"""Which subscriptions belong to whom, and whose rights have changed."""

from __future__ import annotations

import asyncio

from ..rights import Rights
from .live import Live


class Owned:
    """Watches the rights of everybody who owns a subscription, and of nobody else."""

    def __init__(self, rights: Rights) -> None:
        self._rights = rights
        self._lives: dict[str, dict[Live, None]] = {}
        self._changed: dict[str, None] = {}
        self._has_changed = asyncio.Event()

    def of(self, owner: str) -> list[Live]:
        return list(self._lives.get(owner, ()))

    def add(self, live: Live) -> None:
        owner = live.subscription.owner
        lives = self._lives.get(owner)
        if lives is None:
            lives = self._lives[owner] = {}
            self._rights.watch(owner, self.note)
        lives[live] = None

    def remove(self, live: Live, owner: str) -> None:
        lives = self._lives[owner]
        del lives[live]
        if not lives:
            del self._lives[owner]
            self._rights.unwatch(owner)

    def note(self, owner: str) -> None:
        """The owner's rights have changed, maybe as one of many changes in a row."""
        self._changed[owner] = None
        self._has_changed.set()

    async def changed(self) -> list[str]:
        """Waits for changes, and gives whose rights they were about; each once."""
        await self._has_changed.wait()
        self._has_changed.clear()
        owners, self._changed = list(self._changed), {}
        for owner in owners:
            if owner in self._lives:
                self._rights.watch(owner, self.note)  # it may be another user of that name
        return owners
