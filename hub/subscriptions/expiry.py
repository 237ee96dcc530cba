"""Ends subscriptions whose time is over, whose virtual host is gone, or whose owner may no longer
have them. Their callbacks are told why."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from ...core.errors import WarrenError
from ..owner_rights import Rights, refusal
from .active import ActiveSubscription
from .store import SubscriptionStore

END_AGAIN_S = 10.0  # after a failure to end a lease that is over
LEASE_OVER = "the lease has ended"
REMOVED = "removed by an operator"
AT_A_TIME = 200
"""Subscriptions that are looked at before others have their turn."""

log = logging.getLogger(__name__)


class Expiry:
    """Every end is logged; one that fails leaves the others alone."""

    def __init__(self, store: SubscriptionStore, rights: Rights) -> None:
        self._store = store
        self._index = store.index
        self._rights = rights

    async def watch_leases(self) -> None:
        """Ends each subscription at the end of its lease; runs until cancelled."""
        while True:
            await self._index.leases.wait()
            await self.expire()

    async def expire(self) -> None:
        for subscription_id in self._index.leases.take_due():
            active = self._index.by_id(subscription_id)
            if active is not None and not await self._end(active, LEASE_OVER):
                self._index.leases.set(subscription_id, END_AGAIN_S)

    async def end_in(self, vhost: str) -> None:
        """Ends all subscriptions that have to do with a virtual host."""
        reason = f"the virtual host '{vhost}' was deleted"
        left = [active for active in self._index.all() if active.subscription.concerns(vhost)]
        while left := [active for active in left if not await self._end(active, reason)]:
            await asyncio.sleep(END_AGAIN_S)

    async def watch_owners(self) -> None:
        """Looks at subscriptions again whose owner's rights have changed; until cancelled."""
        while True:
            await self.recheck(await self._index.owned.changed())

    async def recheck(self, owners: Iterable[str]) -> None:
        """Ends what these owners may no longer have."""
        for owner in owners:
            for number, active in enumerate(self._index.owned.of(owner), 1):
                reason = None if active.is_over else refusal(self._rights, active.subscription)
                if reason is not None and not await self._end(active, reason):
                    loop = asyncio.get_running_loop()
                    loop.call_later(END_AGAIN_S, self._index.owned.note, owner)
                elif not number % AT_A_TIME:
                    await asyncio.sleep(0)

    async def _end(self, active: ActiveSubscription, reason: str) -> bool:
        subscription_id = active.subscription.id
        log.info(
            "subscription %s for %s ends: %s", subscription_id, active.subscription.host, reason
        )
        try:
            await self._store.end(active, reason, announce=True)
        except WarrenError as error:
            log.error("subscription %s can't be ended: %s", subscription_id, error)
            return False
        return True
