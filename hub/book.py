"""The book of subscriptions: what is stored, what is served, and in which order both change.

A row is written before anything is declared for it and deleted after everything is taken back,
so that whatever a crash leaves in the engine has a row that tells of it.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from weakref import WeakValueDictionary

from ..core.clock import Clock
from ..core.errors import WarrenError
from .attach import Attacher
from .leases import Leases
from .live import Live
from .storage import Storage
from .subscription import Status, Subscription

END_AGAIN_S = 10.0  # after a failure to end a lease that is over

log = logging.getLogger(__name__)


class Book:
    def __init__(self, storage: Storage, attacher: Attacher, clock: Clock) -> None:
        self._storage = storage
        self._attacher = attacher
        self._clock = clock
        self._leases = Leases(clock)
        self._lease_taken = asyncio.Event()
        self._by_identity: dict[str, Live] = {}
        self._by_id: dict[str, Live] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def find(self, identity: str) -> Live | None:
        return self._by_identity.get(identity)

    def all(self) -> list[Live]:
        return list(self._by_id.values())

    async def load(self) -> None:
        """Resumes what is active, and undoes what a crash left half done or a lease ended."""
        if self._storage.is_empty():
            return
        repository = await self._storage.repository()
        now = self._clock.wall_s()
        for subscription in await repository.all():
            live = Live(subscription)
            if subscription.status is Status.ACTIVE and subscription.expires_at > now:
                self._enter(live)
                await self._attacher.resume(live)
            else:
                await self._attacher.detach(live)
                await repository.delete(subscription.id)
        if self._attacher.waiting_count:
            count = self._attacher.waiting_count
            log.warning("%d subscriptions wait for a source that is not there", count)

    async def put(self, wanted: Subscription) -> None:
        """Adds the subscription, or renews the one of the same identity.

        Raises `ChannelError` when the engine refuses; nothing is left then. After a
        `StorageFailed` a row may be left, which the next put or start takes up.
        """
        async with self._lock(wanted.identity):
            live = self.find(wanted.identity)
            if live is None:
                await self._add(wanted)
            else:
                await self._renew(live, wanted)

    async def end(self, live: Live) -> None:
        """Takes the subscription out of the engine, then out of the database."""
        async with self._lock(live.subscription.identity):
            if live.is_over:
                return
            repository = await self._storage.repository()
            await repository.mark(live.subscription.id, Status.ENDING)
            self._remove(live)
            await self._attacher.detach(live)
            await repository.delete(live.subscription.id)

    async def end_in(self, vhost: str) -> None:
        """Ends all subscriptions that have to do with a virtual host."""
        for live in self.all():
            if not live.subscription.concerns(vhost):
                continue
            subscription_id = live.subscription.id
            log.info("subscription %s ends with the vhost '%s'", subscription_id, vhost)
            try:
                await self.end(live)
            except WarrenError as error:
                log.error("subscription %s can't be ended: %s", subscription_id, error)

    async def watch_leases(self) -> None:
        """Ends each subscription at the end of its lease; runs until cancelled."""
        while True:
            self._lease_taken.clear()
            try:
                async with asyncio.timeout(self._leases.next_s()):
                    await self._lease_taken.wait()
            except TimeoutError:
                await self.expire()

    async def expire(self) -> None:
        for subscription_id in self._leases.take_expired():
            live = self._by_id.get(subscription_id)
            if live is None:
                continue
            log.info("the lease of subscription %s is over", subscription_id)
            try:
                await self.end(live)
            except WarrenError as error:
                log.error("subscription %s can't be ended yet: %s", subscription_id, error)
                self._leases.hold_for(subscription_id, END_AGAIN_S)

    async def _add(self, wanted: Subscription) -> None:
        repository = await self._storage.repository()
        wanted = await repository.add(wanted)
        live = Live(replace(wanted, status=Status.ACTIVE))
        try:
            await self._attacher.prepare(wanted)
            await repository.mark(wanted.id, Status.ACTIVE)
        except Exception:
            await self._attacher.detach(live)
            await repository.delete(wanted.id)
            raise
        self._enter(live)
        await self._attacher.resume(live)

    async def _renew(self, live: Live, wanted: Subscription) -> None:
        renewed = replace(wanted, id=live.subscription.id, status=Status.ACTIVE)
        await (await self._storage.repository()).renew(renewed)
        live.subscription = renewed
        self._hold_lease(renewed)
        await self._attacher.resume(live)

    def _enter(self, live: Live) -> None:
        self._by_identity[live.subscription.identity] = live
        self._by_id[live.subscription.id] = live
        self._hold_lease(live.subscription)

    def _remove(self, live: Live) -> None:
        del self._by_identity[live.subscription.identity]
        del self._by_id[live.subscription.id]
        self._leases.drop(live.subscription.id)

    def _hold_lease(self, subscription: Subscription) -> None:
        self._leases.hold(subscription)
        self._lease_taken.set()

    def _lock(self, identity: str) -> asyncio.Lock:
        return self._locks.setdefault(identity, asyncio.Lock())
