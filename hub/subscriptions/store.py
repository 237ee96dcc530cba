"""Changes subscriptions in the database, in the engine and in memory, in an order that survives
crashes.

A row is written before anything is declared for it and deleted after everything is taken back
and its callback has been told, so that whatever a crash leaves has a row that tells of it.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from weakref import WeakValueDictionary

from ...core.clock import Clock
from ..errors import BadRequest
from ..owner_rights import Rights
from ..storage.storage import Storage
from .active import ActiveSubscription
from .attach import Attacher
from .denial import Denials
from .index import SubscriptionIndex
from .subscription import Status, Subscription

NOT_VERIFIED = "its callback has not agreed yet"


class SubscriptionStore:
    """Each change of one subscription waits for the one before it."""

    def __init__(
        self,
        storage: Storage,
        attacher: Attacher,
        denials: Denials,
        clock: Clock,
        rights: Rights,
        max_anonymous: int,
    ) -> None:
        self._storage = storage
        self._attacher = attacher
        self._denials = denials
        self._clock = clock
        self.index = SubscriptionIndex(clock, rights, max_anonymous)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def find(self, identity: str) -> ActiveSubscription | None:
        return self.index.find(identity)

    def by_id(self, subscription_id: str) -> ActiveSubscription | None:
        return self.index.by_id(subscription_id)

    def all(self) -> list[ActiveSubscription]:
        return self.index.all()

    async def put(self, requested: Subscription) -> None:
        """Adds the subscription, or renews the one of the same identity, which becomes active.

        Raises `ChannelError` when the engine refuses; nothing is left then. After a
        `StorageFailed` a row may be left, which the next put or start takes up.
        """
        async with self._lock(requested.identity):
            self._denials.drop(requested.identity)
            active = self.find(requested.identity)
            if active is None:
                await self._add(requested)
            else:
                await self._replace(active, replace(requested, status=Status.ACTIVE))
                await self._begin_anew(active)

    async def put_inactive(self, requested: Subscription) -> None:
        """Keeps it without asking anybody; one of the same identity that serves is paused.

        Nothing is declared or bound for a new one: nobody has agreed to what would gather.
        """
        async with self._lock(requested.identity):
            self._denials.drop(requested.identity)
            active = self.find(requested.identity)
            if active is not None and active.subscription.status is not Status.UNVERIFIED:
                await self._replace(active, replace(requested, status=Status.PAUSED))
                return
            unverified = replace(requested, status=Status.UNVERIFIED, reason=NOT_VERIFIED)
            if active is not None:
                await self._replace(active, unverified)
                return
            repository = await self._storage.repository()
            self.index.enter(ActiveSubscription(await repository.add(unverified)))

    async def pause(self, active: ActiveSubscription, reason: str) -> None:
        """Delivers nothing until `resume`: messages gather, the lease goes on.

        Does nothing for one that is over. Raises `BadRequest` where the broker delivers by
        itself.
        """
        if active.subscription.is_binding:
            what = "is a binding inside the broker, which can't be paused"
            raise BadRequest(what, field="subscription", value=active.subscription.id)
        async with self._lock(active.subscription.identity):
            if not active.is_over and active.subscription.status is not Status.UNVERIFIED:
                await self._change_status(active, Status.PAUSED, reason)
                await active.cancel()

    async def resume(self, active: ActiveSubscription) -> None:
        """Delivers again, and forgets its errors. Raises `BadRequest` where the callback has
        never agreed."""
        async with self._lock(active.subscription.identity):
            if active.subscription.status is Status.UNVERIFIED:
                reason = "was never verified: it becomes active when it is subscribed"
                raise BadRequest(reason, field="subscription", value=active.subscription.id)
            if not active.is_over:
                await self._change_status(active, Status.ACTIVE, "")
                await self._begin_anew(active)

    async def renew(self, active: ActiveSubscription, lease_seconds: int) -> None:
        """Gives it a new lease from now on, paused or active; the caller has checked its limits."""
        async with self._lock(active.subscription.identity):
            if not active.is_over:
                expires_at = self._clock.wall_s() + lease_seconds
                changed = replace(
                    active.subscription, lease_seconds=lease_seconds, expires_at=expires_at
                )
                await self._store(active, changed)

    async def end(
        self, active: ActiveSubscription, reason: str = "", *, announce: bool = False
    ) -> None:
        """Takes the subscription out of the engine, then out of the database.

        With `announce` its callback is told the reason afterwards; the row stays until then, so
        that it is told in spite of a crash.
        """
        async with self._lock(active.subscription.identity):
            if active.is_over:
                return
            ended = ending(active.subscription, reason if announce else "")
            repository = await self._storage.repository()
            await repository.mark(ended.id, ended.status, ended.reason)
            self.index.remove(active)
            await self._attacher.detach(active)
            if ended.reason:
                self._denials.announce(ended, self.forget)
            else:
                await repository.delete(ended.id)

    async def forget(self, ended: Subscription) -> None:
        """Deletes the row of one whose callback was told, unless it was subscribed again."""
        async with self._lock(ended.identity):
            if self._denials.is_pending(ended.identity):
                await (await self._storage.repository()).delete(ended.id)

    async def _add(self, requested: Subscription) -> None:
        repository = await self._storage.repository()
        requested = await repository.add(requested)
        active = ActiveSubscription(replace(requested, status=Status.ACTIVE))
        try:
            await self._attacher.prepare(requested)
            await repository.mark(requested.id, Status.ACTIVE)
        except Exception:
            await self._attacher.detach(active)
            await repository.delete(requested.id)
            raise
        self.index.enter(active)
        await self._attacher.attach(active)

    async def _replace(self, active: ActiveSubscription, requested: Subscription) -> None:
        """What a repeated subscribe says replaces what was; it keeps its id, and its queue."""
        before = active.subscription
        changed = replace(requested, id=before.id)
        await self._store(active, changed)
        if not active.takes() or self._attacher.prefetch(before) != self._attacher.prefetch(
            changed
        ):
            await active.cancel()

    async def _begin_anew(self, active: ActiveSubscription) -> None:
        """Whoever asks for it believes that its callback works: no breaker holds it back."""
        active.begin_anew()
        await self._attacher.resume(active)

    async def _change_status(self, active: ActiveSubscription, status: Status, reason: str) -> None:
        repository = await self._storage.repository()
        await repository.mark(active.subscription.id, status, reason)
        self.index.change(active, replace(active.subscription, status=status, reason=reason))

    async def _store(self, active: ActiveSubscription, changed: Subscription) -> None:
        await (await self._storage.repository()).renew(changed)
        self.index.change(active, changed)

    def _lock(self, identity: str) -> asyncio.Lock:
        return self._locks.setdefault(identity, asyncio.Lock())


def ending(subscription: Subscription, reason: str) -> Subscription:
    """As it is stored at its end; with a reason only where a callback waits to hear one."""
    agreed = subscription.status in (Status.ACTIVE, Status.PAUSED, Status.ENDING)
    is_told = subscription.sink is None and agreed
    return replace(subscription, status=Status.ENDING, reason=reason if is_told else "")
