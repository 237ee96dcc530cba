"""The subscriptions: found in memory, and changed in the database, in the engine and in memory, in
an order that survives crashes.

A row is written before anything is declared for it, and deleted after everything is undone and its
callback is notified: whatever a crash leaves has a row that says what to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from ...core.clock import Clock
from ..deadlines import Deadlines
from ..errors import BadRequest
from ..keyed_locks import KeyedLocks
from ..owner_rights import SubscriberRights
from ..settings import HubSettings
from ..storage.storage import Storage
from ..tasks import Tasks
from .active import ActiveSubscription
from .anonymous import AnonymousSubscriptions
from .attach import Attacher
from .denial import Denials
from .intent import renewed_lease_s
from .owned import SubscriptionsByOwner
from .paused import PausedCounts
from .subscription import Subscription, SubscriptionStatus

NOT_VERIFIED = "its callback has not agreed yet"


class SubscriptionStore:
    """Finds and changes subscriptions. Each change of a subscription waits for the one before it.
    Pauses, resumptions, renewals and ends are completed even if the caller is cancelled meanwhile.

    `on_resumed` is called with the key of a subscription that an operator has resumed.
    """

    def __init__(
        self,
        storage: Storage,
        attacher: Attacher,
        denials: Denials,
        clock: Clock,
        rights: SubscriberRights,
        settings: HubSettings,
        tasks: Tasks,
        on_resumed: Callable[[str], None],
    ) -> None:
        self._storage = storage
        self._attacher = attacher
        self._denials = denials
        self._clock = clock
        self._settings = settings
        self._tasks = tasks
        self._on_resumed = on_resumed
        self.leases = Deadlines(clock)
        """The end of each lease, by the id of the subscription."""
        self.owned = SubscriptionsByOwner(rights)
        self.anonymous = AnonymousSubscriptions(settings.max_per_anonymous_client)
        self.paused = PausedCounts()
        self._by_identity: dict[str, ActiveSubscription] = {}
        self._by_id: dict[str, ActiveSubscription] = {}
        self._locks: KeyedLocks[str] = KeyedLocks()

    def find(self, identity: str) -> ActiveSubscription | None:
        return self._by_identity.get(identity)

    def by_id(self, subscription_id: str) -> ActiveSubscription | None:
        return self._by_id.get(subscription_id)

    def all(self) -> list[ActiveSubscription]:
        return list(self._by_id.values())

    async def put(self, requested: Subscription) -> None:
        """Adds the subscription, or renews the one of the same identity, which becomes active.

        Raises `ChannelError` when the engine refuses; nothing is left then. After a
        `StorageFailed` a row may be left, which the next put or start takes up.
        """
        async with self._lock(requested):
            self._denials.drop(requested.identity)
            active = self.find(requested.identity)
            if active is None:
                await self._add(requested)
            else:
                await self._replace(active, replace(requested, status=SubscriptionStatus.ACTIVE))
                await self._begin_anew(active)

    async def put_inactive(self, requested: Subscription) -> None:
        """Stores a subscription without verification; an active one of the same identity is paused.

        Nothing is declared or bound for a new one: its callback has not agreed.
        """
        async with self._lock(requested):
            self._denials.drop(requested.identity)
            active = self.find(requested.identity)
            unverified = replace(
                requested, status=SubscriptionStatus.UNVERIFIED, reason=NOT_VERIFIED
            )
            if active is None:
                repository = await self._storage.repository()
                self.enter(ActiveSubscription(await repository.add(unverified)))
            elif active.subscription.status is SubscriptionStatus.UNVERIFIED:
                await self._replace(active, unverified)
            else:
                await self._replace(active, replace(requested, status=SubscriptionStatus.PAUSED))

    async def pause(self, active: ActiveSubscription, reason: str) -> None:
        """Stops deliveries until `resume`: the queue fills, and the lease goes on.

        Does nothing for one that is over or unverified. Raises `BadRequest` for a binding inside
        the broker.
        """
        if active.subscription.is_binding:
            what = "is a binding inside the broker, which can't be paused"
            raise BadRequest(what, field="subscription", value=active.subscription.id)
        await self._tasks.complete(self._pause(active, reason))

    async def resume(self, active: ActiveSubscription) -> None:
        """Resumes deliveries, and resets the failures. Does nothing for one that is over. Raises
        `BadRequest` for one whose callback has never agreed."""
        await self._tasks.complete(self._resume(active))
        self._on_resumed(active.subscription.topic)

    async def renew(self, active: ActiveSubscription, lease_seconds: str | int) -> int:
        """Gives a subscription a new lease from now on, paused or active, and returns the seconds
        granted. Raises `BadRequest` for a lease that a subscription from `/hub` can't have."""
        granted_s = renewed_lease_s(lease_seconds, active.subscription, self._settings)
        await self._tasks.complete(self._renew(active, granted_s))
        return granted_s

    async def end(self, active: ActiveSubscription, reason: str = "") -> None:
        """Takes the subscription out of the engine, then out of the database.

        With a reason its callback is notified afterwards (WebSub 5.2); the row stays until then,
        so it is notified in spite of a crash.
        """
        await self._tasks.complete(self._end(active, reason))

    async def forget(self, ended: Subscription) -> None:
        """Deletes the row of one whose callback was notified, unless it was subscribed again."""
        async with self._lock(ended):
            if self._denials.is_pending(ended.identity):
                await (await self._storage.repository()).delete(ended.id)

    def enter(self, active: ActiveSubscription) -> None:
        """Adds a stored subscription in memory."""
        subscription = active.subscription
        self._by_identity[subscription.identity] = active
        self._by_id[subscription.id] = active
        self.owned.add(active)
        self.anonymous.add(subscription)
        self.paused.add(subscription)
        self._set_lease(subscription)

    async def _pause(self, active: ActiveSubscription, reason: str) -> None:
        async with self._lock(active.subscription):
            if (
                not active.state.is_over
                and active.subscription.status is not SubscriptionStatus.UNVERIFIED
            ):
                await self._change_status(active, SubscriptionStatus.PAUSED, reason)
                await active.state.cancel()

    async def _resume(self, active: ActiveSubscription) -> None:
        async with self._lock(active.subscription):
            if active.subscription.status is SubscriptionStatus.UNVERIFIED:
                reason = "was never verified: it becomes active when it is subscribed"
                raise BadRequest(reason, field="subscription", value=active.subscription.id)
            if not active.state.is_over:
                await self._change_status(active, SubscriptionStatus.ACTIVE, "")
                await self._begin_anew(active)

    async def _renew(self, active: ActiveSubscription, lease_s: int) -> None:
        async with self._lock(active.subscription):
            if not active.state.is_over:
                expires_at = self._clock.wall_s() + lease_s
                await self._store(
                    active,
                    replace(active.subscription, lease_seconds=lease_s, expires_at=expires_at),
                )

    async def _end(self, active: ActiveSubscription, reason: str) -> None:
        async with self._lock(active.subscription):
            if active.state.is_over:
                return
            ended = ending(active.subscription, reason)
            repository = await self._storage.repository()
            await repository.mark(ended.id, ended.status, ended.reason)
            self._remove(active)
            await self._attacher.detach(active)
            if ended.reason:
                self._denials.announce(ended, self.forget)
            else:
                await repository.delete(ended.id)

    async def _add(self, requested: Subscription) -> None:
        repository = await self._storage.repository()
        requested = await repository.add(requested)
        active = ActiveSubscription(replace(requested, status=SubscriptionStatus.ACTIVE))
        try:
            await self._attacher.prepare(requested)
            await repository.mark(requested.id, SubscriptionStatus.ACTIVE)
        except Exception:
            await self._attacher.detach(active)
            await repository.delete(requested.id)
            raise
        self.enter(active)
        await self._attacher.attach(active)

    async def _replace(self, active: ActiveSubscription, requested: Subscription) -> None:
        """Changes it to what a repeated subscribe says; it keeps its id, and its queue."""
        before = active.subscription
        changed = replace(requested, id=before.id)
        await self._store(active, changed)
        prefetch = self._attacher.prefetch
        if not active.state.takes() or prefetch(before) != prefetch(changed):
            await active.state.cancel()

    async def _begin_anew(self, active: ActiveSubscription) -> None:
        """Resets its breaker: whoever makes it active believes that its callback works."""
        active.begin_anew()
        await self._attacher.resume(active)

    async def _change_status(
        self, active: ActiveSubscription, status: SubscriptionStatus, reason: str
    ) -> None:
        repository = await self._storage.repository()
        await repository.mark(active.subscription.id, status, reason)
        self._change(active, replace(active.subscription, status=status, reason=reason))

    async def _store(self, active: ActiveSubscription, changed: Subscription) -> None:
        await (await self._storage.repository()).renew(changed)
        self._change(active, changed)

    def _change(self, active: ActiveSubscription, changed: Subscription) -> None:
        """Changes lease, owner or status of a subscription, which keeps its identity and id."""
        before = active.subscription
        active.change(changed)
        self.anonymous.remove(before)
        self.anonymous.add(changed)
        self.paused.remove(before)
        self.paused.add(changed)
        if changed.owner != before.owner:
            self.owned.remove(active, before.owner)
            self.owned.add(active)
        if changed.expires_at != before.expires_at:
            self._set_lease(changed)

    def _remove(self, active: ActiveSubscription) -> None:
        subscription = active.subscription
        del self._by_identity[subscription.identity]
        del self._by_id[subscription.id]
        self.owned.remove(active, subscription.owner)
        self.anonymous.remove(subscription)
        self.paused.remove(subscription)
        self.leases.remove(subscription.id)

    def _set_lease(self, subscription: Subscription) -> None:
        """Sets the end of its lease, at most a whole lease from now: the wall clock may have been
        set back since it was stored."""
        left_s = subscription.expires_at - self._clock.wall_s()
        self.leases.set(subscription.id, min(max(left_s, 0.0), subscription.lease_seconds))

    def _lock(self, subscription: Subscription) -> asyncio.Lock:
        return self._locks.of(subscription.identity)


def ending(subscription: Subscription, reason: str) -> Subscription:
    """Returns the subscription as it is stored at its end; with a reason only if its callback is
    to be notified of it."""
    agreed = subscription.status in (
        SubscriptionStatus.ACTIVE,
        SubscriptionStatus.PAUSED,
        SubscriptionStatus.ENDING,
    )
    is_notified = subscription.sink is None and agreed
    return replace(
        subscription, status=SubscriptionStatus.ENDING, reason=reason if is_notified else ""
    )
