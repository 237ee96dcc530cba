"""Ends or pauses the subscriptions of callbacks that fail for good."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ...core.errors import WarrenError
from .active import ActiveSubscription
from .store import SubscriptionStore

AT_A_TIME = 200
"""Subscriptions that are looked at in one iteration of the event loop."""

log = logging.getLogger(__name__)


class FailedCallbacks:
    """Ends or pauses subscriptions when deliveries find that their callbacks accept no more."""

    def __init__(self, subscriptions: SubscriptionStore) -> None:
        self._subscriptions = subscriptions

    async def callback_gone(self, active: ActiveSubscription) -> None:
        """Ends a subscription whose callback has answered 410."""
        found = active.subscription
        log.warning("subscription %s ends: its callback at %s is gone (410)", found.id, found.host)
        await self._subscriptions.end(active)

    async def host_gone(self, is_there: Callable[[str], bool]) -> None:
        """Ends the subscriptions whose callbacks were at a host, as `is_there` says of a URL.

        Nobody is notified: whoever has the host next never subscribed. Raises `StorageFailed`.
        """
        for number, active in enumerate(self._subscriptions.all(), 1):
            found = active.subscription
            if is_there(found.callback):
                log.warning("subscription %s ends: %s has no application", found.id, found.host)
                await self._subscriptions.end(active)
            elif not number % AT_A_TIME:
                await asyncio.sleep(0)

    async def attempts_exhausted(self, active: ActiveSubscription, reason: str) -> None:
        """Pauses a subscription; one that can't be stored goes on as before."""
        log.warning("subscription %s is paused: %s", active.subscription.id, reason)
        try:
            await self._subscriptions.pause(active, reason)
        except WarrenError as error:
            log.error("subscription %s can't be paused: %s", active.subscription.id, error)
