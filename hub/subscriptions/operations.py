"""What operators and owners do to subscriptions beside subscribing. Rights are for the routes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ..settings import HubSettings
from ..tasks import Tasks
from ..topics.topics import Topics
from .active import ActiveSubscription
from .expiry import REMOVED
from .intent import grant_lease, read_lease
from .store import SubscriptionStore
from .subscription import Subscription


class Operations:
    """What was begun goes on to its end, also where the client hangs up."""

    def __init__(
        self, store: SubscriptionStore, topics: Topics, settings: HubSettings, tasks: Tasks
    ) -> None:
        self._store = store
        self._topics = topics
        self._settings = settings
        self._tasks = tasks

    def all(self) -> list[Subscription]:
        return [active.subscription for active in self._store.all()]

    def active_subscriptions(self) -> list[ActiveSubscription]:
        return self._store.all()

    def find(self, identity: str) -> ActiveSubscription | None:
        return self._store.find(identity)

    def by_id(self, subscription_id: str) -> ActiveSubscription | None:
        return self._store.by_id(subscription_id)

    async def pause(self, active: ActiveSubscription, reason: str) -> None:
        """Raises `BadRequest` for a binding inside the broker."""
        await self._carry(self._store.pause(active, reason))

    async def resume(self, active: ActiveSubscription) -> None:
        """Raises `BadRequest` for one whose callback has never agreed."""
        await self._carry(self._store.resume(active))
        self._topics.resumed(active.subscription.topic)

    async def renew(self, active: ActiveSubscription, lease_seconds: str | int) -> int:
        """Gives the seconds that were granted, from now on, by the rule of the place where it was
        subscribed: `/hub` raises `BadRequest` for what is out of its bounds."""
        requested, subscription = str(lease_seconds), active.subscription
        if subscription.is_websub:
            is_anonymous = subscription.is_anonymous
            granted = read_lease(requested, self._settings, is_anonymous=is_anonymous)
        else:
            granted = grant_lease(requested, self._settings)
        await self._carry(self._store.renew(active, granted))
        return granted

    async def end(self, active: ActiveSubscription, reason: str = REMOVED) -> None:
        """Without asking its callback, which is told the reason (WebSub 5.2)."""
        await self._carry(self._store.end(active, reason, announce=True))

    async def _carry(self, work: Coroutine[Any, Any, None]) -> None:
        await asyncio.shield(self._tasks.own(work))
