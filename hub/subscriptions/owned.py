"""Which subscriptions belong to whom, and whose rights have changed."""

from __future__ import annotations

import asyncio

from ..owner_rights import Rights
from .active import ActiveSubscription


class Owned:
    """Watches the rights of everybody who owns a subscription, and of nobody else."""

    def __init__(self, rights: Rights) -> None:
        self._rights = rights
        self._active_subscriptions: dict[str, dict[ActiveSubscription, None]] = {}
        self._changed: dict[str, None] = {}
        self._has_changed = asyncio.Event()

    def of(self, owner: str) -> list[ActiveSubscription]:
        return list(self._active_subscriptions.get(owner, ()))

    def add(self, active: ActiveSubscription) -> None:
        owner = active.subscription.owner
        active_subscriptions = self._active_subscriptions.get(owner)
        if active_subscriptions is None:
            active_subscriptions = self._active_subscriptions[owner] = {}
            self._rights.watch(owner, self.note)
        active_subscriptions[active] = None

    def remove(self, active: ActiveSubscription, owner: str) -> None:
        active_subscriptions = self._active_subscriptions[owner]
        del active_subscriptions[active]
        if not active_subscriptions:
            del self._active_subscriptions[owner]
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
            if owner in self._active_subscriptions:
                self._rights.watch(owner, self.note)  # it may be another user of that name
        return owners
