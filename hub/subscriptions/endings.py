"""Ends subscriptions whose time is over, whose virtual host is gone, or whose owner may no longer
have them. Their callbacks are told why."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from ...core.errors import WarrenError
from ..rights import Rights, refusal
from .book import Book
from .live import Live

END_AGAIN_S = 10.0  # after a failure to end a lease that is over
LEASE_OVER = "the lease has ended"
REMOVED = "removed by an operator"
AT_A_TIME = 200
"""Subscriptions that are looked at before others have their turn."""

log = logging.getLogger(__name__)


class Endings:
    """Every end is logged; one that fails leaves the others alone."""

    def __init__(self, book: Book, rights: Rights) -> None:
        self._book = book
        self._shelf = book.shelf
        self._rights = rights

    async def watch_leases(self) -> None:
        """Ends each subscription at the end of its lease; runs until cancelled."""
        shelf = self._shelf
        while True:
            shelf.lease_taken.clear()
            try:
                async with asyncio.timeout(shelf.leases.next_s()):
                    await shelf.lease_taken.wait()
            except TimeoutError:
                await self.expire()

    async def expire(self) -> None:
        for subscription_id in self._shelf.leases.take_expired():
            live = self._shelf.by_id(subscription_id)
            if live is not None and not await self._end(live, LEASE_OVER):
                self._shelf.leases.hold_for(subscription_id, END_AGAIN_S)

    async def end_in(self, vhost: str) -> None:
        """Ends all subscriptions that have to do with a virtual host."""
        reason = f"the virtual host '{vhost}' was deleted"
        left = [live for live in self._shelf.all() if live.subscription.concerns(vhost)]
        while left := [live for live in left if not await self._end(live, reason)]:
            await asyncio.sleep(END_AGAIN_S)

    async def watch_owners(self) -> None:
        """Looks at subscriptions again whose owner's rights have changed; until cancelled."""
        while True:
            await self.recheck(await self._shelf.owned.changed())

    async def recheck(self, owners: Iterable[str]) -> None:
        """Ends what these owners may no longer have."""
        for owner in owners:
            for number, live in enumerate(self._shelf.owned.of(owner), 1):
                reason = None if live.is_over else refusal(self._rights, live.subscription)
                if reason is not None and not await self._end(live, reason):
                    loop = asyncio.get_running_loop()
                    loop.call_later(END_AGAIN_S, self._shelf.owned.note, owner)
                elif not number % AT_A_TIME:
                    await asyncio.sleep(0)

    async def _end(self, live: Live, reason: str) -> bool:
        subscription_id = live.subscription.id
        log.info("subscription %s for %s ends: %s", subscription_id, live.subscription.host, reason)
        try:
            await self._book.end(live, reason, announce=True)
        except WarrenError as error:
            log.error("subscription %s can't be ended: %s", subscription_id, error)
            return False
        return True
