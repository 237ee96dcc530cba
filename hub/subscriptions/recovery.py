"""What a start does with the subscriptions that it finds stored.

What was active or paused goes on. What a crash left half done is undone. What ended meanwhile,
or may no longer be, ends now, and its callback is told, as is every callback that an earlier run
did not get to tell.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..owner_rights import Rights, refusal
from .active import ActiveSubscription
from .attach import Attacher
from .denial import Denials
from .expiry import LEASE_OVER
from .store import SubscriptionStore, ending
from .subscription import Status, Subscription

if TYPE_CHECKING:
    from .repository import Repository

KEPT = frozenset((Status.ACTIVE, Status.PAUSED, Status.UNVERIFIED))

log = logging.getLogger(__name__)


class SubscriptionRecovery:
    """One start; `now` is wall time in seconds."""

    def __init__(
        self,
        store: SubscriptionStore,
        attacher: Attacher,
        denials: Denials,
        rights: Rights,
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
                    await self._go_on(subscription)
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
            log.warning("%d subscriptions wait for a source that is not there", count)

    def _reason_to_end(self, subscription: Subscription) -> str | None:
        if subscription.expires_at <= self._now:
            return LEASE_OVER
        return refusal(self._rights, subscription)

    async def _go_on(self, subscription: Subscription) -> None:
        active = ActiveSubscription(subscription)
        self._store.index.enter(active)
        await self._attacher.attach(active)

    async def _end(self, repository: Repository, over: list[Subscription]) -> None:
        """Marked before anything is taken back: what a crash leaves of it ends at the next start,
        with the same words."""
        await repository.mark_ending({one.id: one.reason for one in over})
        for subscription in over:
            await self._attacher.detach(ActiveSubscription(subscription))
        await repository.delete_all([one.id for one in over if not one.reason])
        for subscription in over:
            if subscription.reason:
                self._denials.announce(subscription, self._store.forget)
