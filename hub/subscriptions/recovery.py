"""Restores stored subscriptions at the start.

Active, paused and unverified ones are restored. Half-finished changes are undone. Subscriptions
whose lease is over, or whose owner lacks permissions, end now. Callbacks of ended subscriptions
are notified, also those that an earlier run has not notified.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..owner_rights import SubscriberRights, refusal
from .active import ActiveSubscription
from .attach import Attacher
from .denial import Denials
from .expiry import LEASE_OVER
from .store import SubscriptionStore, ending
from .subscription import Subscription, SubscriptionStatus

if TYPE_CHECKING:
    from .repository import Repository

KEPT = frozenset(
    (SubscriptionStatus.ACTIVE, SubscriptionStatus.PAUSED, SubscriptionStatus.UNVERIFIED)
)

log = logging.getLogger(__name__)


class SubscriptionRecovery:
    """Restores stored subscriptions. `now` is the wall time of the start in seconds."""

    def __init__(
        self,
        store: SubscriptionStore,
        attacher: Attacher,
        denials: Denials,
        rights: SubscriberRights,
        now: float,
    ) -> None:
        self._store = store
        self._attacher = attacher
        self._denials = denials
        self._rights = rights
        self._now = now

    async def run(self, repository: Repository) -> None:
        over: list[Subscription] = []
        for subscription in await repository.all():
            if subscription.status in KEPT:
                reason = self._reason_to_end(subscription)
                if reason is None:
                    await self._restore(subscription)
                else:
                    log.info(
                        "subscription %s for %s ends: %s",
                        subscription.id,
                        subscription.host,
                        reason,
                    )
                    over.append(ending(subscription, reason))
            else:
                over.append(subscription)
        await self._end(repository, over)
        count = self._attacher.sources.waiting_count
        if count:
            log.warning("%d subscriptions wait for a source that does not exist", count)

    def _reason_to_end(self, subscription: Subscription) -> str | None:
        if subscription.expires_at <= self._now:
            return LEASE_OVER
        return refusal(self._rights, subscription)

    async def _restore(self, subscription: Subscription) -> None:
        active = ActiveSubscription(subscription)
        self._store.enter(active)
        await self._attacher.attach(active)

    async def _end(self, repository: Repository, over: list[Subscription]) -> None:
        """Ends subscriptions, marked first: after a crash the next start ends them with the same
        reasons."""
        await repository.mark_ending({one.id: one.reason for one in over})
        for subscription in over:
            await self._attacher.detach(ActiveSubscription(subscription))
        await repository.delete_all([one.id for one in over if not one.reason])
        for subscription in over:
            if subscription.reason:
                self._denials.announce(subscription, self._store.forget)
