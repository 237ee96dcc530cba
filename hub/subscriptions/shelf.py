"""The subscriptions that are kept, found by identity, by id, by owner, and by the end of their
lease. Nothing here waits; the book changes it in step with what is stored."""

from __future__ import annotations

import asyncio

from ...core.clock import Clock
from ..rights import Rights
from .leases import Leases
from .live import Live
from .owned import Owned
from .paused import Paused
from .strangers import Strangers
from .subscription import Subscription


class Shelf:
    def __init__(self, clock: Clock, rights: Rights, max_of_strangers: int) -> None:
        self.leases = Leases(clock)
        self.lease_taken = asyncio.Event()
        self.owned = Owned(rights)
        self.strangers = Strangers(max_of_strangers)
        self.paused = Paused()
        self._by_identity: dict[str, Live] = {}
        self._by_id: dict[str, Live] = {}

    def find(self, identity: str) -> Live | None:
        return self._by_identity.get(identity)

    def by_id(self, subscription_id: str) -> Live | None:
        return self._by_id.get(subscription_id)

    def all(self) -> list[Live]:
        return list(self._by_id.values())

    def enter(self, live: Live) -> None:
        self._by_identity[live.subscription.identity] = live
        self._by_id[live.subscription.id] = live
        self.owned.add(live)
        self.strangers.add(live.subscription)
        self.paused.add(live.subscription)
        self._hold_lease(live.subscription)

    def change(self, live: Live, changed: Subscription) -> None:
        """Another lease, owner or status of the same identity and id."""
        before, live.subscription = live.subscription, changed
        self.strangers.remove(before)
        self.strangers.add(changed)
        self.paused.remove(before)
        self.paused.add(changed)
        if changed.owner != before.owner:
            self.owned.remove(live, before.owner)
            self.owned.add(live)
        if changed.expires_at != before.expires_at:
            self._hold_lease(changed)

    def remove(self, live: Live) -> None:
        del self._by_identity[live.subscription.identity]
        del self._by_id[live.subscription.id]
        self.owned.remove(live, live.subscription.owner)
        self.strangers.remove(live.subscription)
        self.paused.remove(live.subscription)
        self.leases.drop(live.subscription.id)

    def _hold_lease(self, subscription: Subscription) -> None:
        self.leases.hold(subscription)
        self.lease_taken.set()
