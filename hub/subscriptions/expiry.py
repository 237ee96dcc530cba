"""Ends subscriptions whose lease is over, whose virtual host was deleted, or whose owner lacks the
permissions. Their callbacks are notified."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from ...core.errors import WarrenError
from ..owner_rights import SubscriberRights, refusal
from .active import ActiveSubscription
from .store import SubscriptionStore

END_AGAIN_S = 10.0  # after a failure to end a subscription
LEASE_OVER = "the lease has ended"
REMOVED = "removed by an operator"
AT_A_TIME = 200
"""Subscriptions that are checked in one iteration of the event loop."""

log = logging.getLogger(__name__)


class SubscriptionExpiry:
    """Ends subscriptions; each end is logged. A failure to end one subscription does not affect the
    others."""

    def __init__(self, store: SubscriptionStore, rights: SubscriberRights) -> None:
        self._store = store
        self._rights = rights

    async def watch_leases(self) -> None:
        """Ends each subscription at the end of its lease; runs until cancelled."""
        while True:
            await self._store.leases.wait()
            await self.expire()

    async def expire(self) -> None:
        """Ends the subscriptions whose lease is over now."""
        for subscription_id in self._store.leases.take_due():
            active = self._store.by_id(subscription_id)
            if active is not None and not await self._end(active, LEASE_OVER):
                self._store.leases.set(subscription_id, END_AGAIN_S)

    async def end_in(self, vhost: str) -> None:
        """Ends all subscriptions with their source or sink in a virtual host."""
        reason = f"the virtual host '{vhost}' was deleted"
        left = [active for active in self._store.all() if active.subscription.concerns(vhost)]
        while left := [active for active in left if not await self._end(active, reason)]:
            await asyncio.sleep(END_AGAIN_S)

    async def watch_owners(self) -> None:
        """Checks subscriptions again when permissions of their owner change; runs until
        cancelled."""
        while True:
            await self.recheck(await self._store.owned.changed())

    async def recheck(self, owners: Iterable[str]) -> None:
        """Ends the subscriptions for which these owners lack the permissions."""
        for owner in owners:
            for number, active in enumerate(self._store.owned.of(owner), 1):
                if not await self._recheck(active):
                    loop = asyncio.get_running_loop()
                    loop.call_later(END_AGAIN_S, self._store.owned.note, owner)
                elif not number % AT_A_TIME:
                    await asyncio.sleep(0)

    async def _recheck(self, active: ActiveSubscription) -> bool:
        """Returns False if the subscription has to end, and ending it failed."""
        if active.state.is_over:
            return True
        reason = refusal(self._rights, active.subscription)
        return reason is None or await self._end(active, reason)

    async def _end(self, active: ActiveSubscription, reason: str) -> bool:
        subscription_id = active.subscription.id
        log.info(
            "subscription %s for %s ends: %s", subscription_id, active.subscription.host, reason
        )
        try:
            await self._store.end(active, reason)
        except WarrenError as error:
            log.error("subscription %s can't be ended: %s", subscription_id, error)
            return False
        return True
