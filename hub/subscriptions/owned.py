"""The subscriptions of each owner, and the owners whose permissions have changed."""

from __future__ import annotations

import asyncio

from ..owner_rights import SubscriberRights, refusal
from .active import ActiveSubscription


class SubscriptionsByOwner:
    """Watches the permissions of the owners of subscriptions."""

    def __init__(self, rights: SubscriberRights) -> None:
        self._rights = rights
        self._active_subscriptions: dict[str, dict[ActiveSubscription, None]] = {}
        self._changed: dict[str, None] = {}
        self._has_changed = asyncio.Event()

    def of(self, owner: str) -> list[ActiveSubscription]:
        return list(self._active_subscriptions.get(owner, ()))

    def add(self, active: ActiveSubscription) -> None:
        """Adds a subscription that was stored; its owner may have lost the permissions since they
        were checked."""
        owner = active.subscription.owner
        active_subscriptions = self._active_subscriptions.get(owner)
        if active_subscriptions is None:
            active_subscriptions = self._active_subscriptions[owner] = {}
            self._rights.watch(owner, self.note)
        active_subscriptions[active] = None
        if refusal(self._rights, active.subscription) is not None:
            self.note(owner)

    def remove(self, active: ActiveSubscription, owner: str) -> None:
        active_subscriptions = self._active_subscriptions[owner]
        del active_subscriptions[active]
        if not active_subscriptions:
            del self._active_subscriptions[owner]
            self._rights.unwatch(owner, self.note)

    def note(self, owner: str) -> None:
        """Notes that permissions of the owner have changed."""
        self._changed[owner] = None
        self._has_changed.set()

    async def changed(self) -> list[str]:
        """Waits for changes, and returns their owners, each once."""
        await self._has_changed.wait()
        self._has_changed.clear()
        owners, self._changed = list(self._changed), {}
        for owner in owners:
            if owner in self._active_subscriptions:
                self._rights.watch(owner, self.note)  # maybe another user of that name
        return owners
