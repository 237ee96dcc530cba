"""Subscriptions in memory by identity, id, owner and end of lease; `store.py` changes them together
with the rows. Nothing here waits."""

from __future__ import annotations

from ...core.clock import Clock
from ..deadlines import Deadlines
from ..owner_rights import Rights
from .active import ActiveSubscription
from .anonymous import AnonymousSubscriptions
from .owned import Owned
from .paused import Paused
from .subscription import Subscription


class SubscriptionIndex:
    def __init__(self, clock: Clock, rights: Rights, max_anonymous: int) -> None:
        self._clock = clock
        self.leases = Deadlines(clock)
        """The end of each lease, by the id of the subscription."""
        self.owned = Owned(rights)
        self.anonymous = AnonymousSubscriptions(max_anonymous)
        self.paused = Paused()
        self._by_identity: dict[str, ActiveSubscription] = {}
        self._by_id: dict[str, ActiveSubscription] = {}

    def find(self, identity: str) -> ActiveSubscription | None:
        return self._by_identity.get(identity)

    def by_id(self, subscription_id: str) -> ActiveSubscription | None:
        return self._by_id.get(subscription_id)

    def all(self) -> list[ActiveSubscription]:
        return list(self._by_id.values())

    def enter(self, active: ActiveSubscription) -> None:
        self._by_identity[active.subscription.identity] = active
        self._by_id[active.subscription.id] = active
        self.owned.add(active)
        self.anonymous.add(active.subscription)
        self.paused.add(active.subscription)
        self._set_lease(active.subscription)

    def change(self, active: ActiveSubscription, changed: Subscription) -> None:
        """Another lease, owner or status of the same identity and id."""
        before, active.subscription = active.subscription, changed
        self.anonymous.remove(before)
        self.anonymous.add(changed)
        self.paused.remove(before)
        self.paused.add(changed)
        if changed.owner != before.owner:
            self.owned.remove(active, before.owner)
            self.owned.add(active)
        if changed.expires_at != before.expires_at:
            self._set_lease(changed)

    def remove(self, active: ActiveSubscription) -> None:
        del self._by_identity[active.subscription.identity]
        del self._by_id[active.subscription.id]
        self.owned.remove(active, active.subscription.owner)
        self.anonymous.remove(active.subscription)
        self.paused.remove(active.subscription)
        self.leases.remove(active.subscription.id)

    def _set_lease(self, subscription: Subscription) -> None:
        """Sets the end of its lease, at most a whole lease from now: the wall clock may have been
        set back since it was stored."""
        left_s = subscription.expires_at - self._clock.wall_s()
        self.leases.set(subscription.id, min(max(left_s, 0.0), subscription.lease_seconds))
