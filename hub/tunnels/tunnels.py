"""All tunnels: enrols labels and ends their leases.

A lease runs while no poll waits. A label whose lease has run out is unknown to requestors, but is
kept with its token for a day: client libraries go on polling and never enrol again, and their next
poll restores it. After a start all leases begin anew.

When a label is given up, the subscriptions of its URL end before anybody else can have it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..deadlines import Deadlines
from ..keyed_locks import KeyedLocks
from ..owner_rights import SubscriberRights
from ..storage.storage import Storage
from ..tasks import Tasks
from .addresses import TunnelAddresses
from .budget import ByteBudget
from .errors import EnrolmentRefused, EnrolsTooOften, NoPoll, ReleasedTunnel, UnknownTunnel
from .labels import Labels
from .registration import TunnelRegistration, digest_of, read_label, read_lease, read_token
from .settings import TunnelSettings
from .throttle import EnrolmentLimiter
from .tunnel import Tunnel

if TYPE_CHECKING:
    from .repository import TunnelRepository

log = logging.getLogger(__name__)

EndCallbacks = Callable[[Callable[[str], bool]], Awaitable[None]]


class Tunnels:
    """All tunnels, in memory, with the registrations in the database.

    `end_callbacks` ends the subscriptions whose callback has a URL for which its argument is true.
    """

    def __init__(
        self,
        storage: Storage,
        settings: TunnelSettings,
        clock: Clock,
        tasks: Tasks,
        rights: SubscriberRights,
        end_callbacks: EndCallbacks,
    ) -> None:
        self.settings = settings
        self.addresses = TunnelAddresses(settings.url)
        self.labels = Labels(settings, clock)
        self._storage = storage
        self._clock = clock
        self._tasks = tasks
        self._rights = rights
        self._end_callbacks = end_callbacks
        self.budget = ByteBudget(settings.max_bytes)
        self._throttle = EnrolmentLimiter(settings.enrolments_per_s)
        self._leases = Deadlines(clock)
        """When to look at a label again."""
        self._locks: KeyedLocks[str] = KeyedLocks()
        self.is_stopping = False

    async def start(self) -> None:
        """Restores what is stored; leases begin."""
        if self.settings.is_on and not self._storage.is_empty():
            for registration in await (await self._repository()).all():
                tunnel = self._enter(registration)
                if not registration.is_released and self._is_over(registration):
                    await self.release(tunnel)
        self._tasks.own(self._watch())

    def stop(self) -> None:
        """Ends polls, and requests that wait for one; what is in flight may be replied to."""
        self.is_stopping = True
        for tunnel in self.labels.all():
            tunnel.end_polls(None)
            tunnel.end_queue(NoPoll("the server is stopping", field="label"))

    async def enrol(
        self, name: str | None, token: str | None, lease: str | None, owner: str
    ) -> tuple[Tunnel, str, bool]:
        """Enrols a label, or begins its lease again; durable when it returns.

        Returns the tunnel, its token, and whether it is new. Raises `BadRequest`,
        `EnrolmentRefused` where the label is another's, the token differs or the owner was deleted,
        `EnrolsTooOften`, and `StorageFailed`.
        """
        label, lease_s = read_label(name), read_lease(lease)
        token = read_token(token, is_weak_allowed=self.settings.allows_weak_tokens)
        if not self._throttle.take(owner, self._clock.now_ms() / 1000):
            raise EnrolsTooOften("too many within a short time", field="name", value=label)
        wanted = TunnelRegistration(label, digest_of(token), owner, lease_s, self._clock.wall_s())
        async with self._locks.of(label):
            found = self.labels.get(label)
            if found is None:
                found, is_new = await self._enrol_new(wanted), True
            else:
                is_new = await self._enrol_again(found, wanted)
        if self._is_over(wanted):  # since the request was admitted
            await self.release(found)
            raise EnrolmentRefused(
                "was enrolled by a user who is deleted", field="name", value=label
            )
        return found, token, is_new

    async def change(self, tunnel: Tunnel, token: str | None, lease: str | None) -> str | None:
        """Changes the token or the lease of a label, durably. Returns the token if it is given.
        Raises as `enrol`."""
        if token:
            token = read_token(token, is_weak_allowed=self.settings.allows_weak_tokens)
        async with self._locks.of(tunnel.registration.label):
            found = tunnel.registration
            if found.is_released:
                raise ReleasedTunnel(found.label)
            wanted = replace(
                found,
                digest=digest_of(token) if token else found.digest,
                lease_s=read_lease(lease) if lease else found.lease_s,
            )
            await self._renew(tunnel, wanted)
        return token

    async def release(self, tunnel: Tunnel, block_s: float = 0) -> None:
        """Ends a label and the subscriptions of its URL: polls and waiting requests with
        `ReleasedTunnel`, while what is in flight finishes. For `block_s` it stays blocked. Durable
        when it returns; after `StorageFailed` it is still enrolled."""
        async with self._locks.of(tunnel.registration.label):
            found = tunnel.registration
            if found.is_released:
                if block_s:  # its application was faster
                    await self._block(tunnel, block_s)
                return
            # From here on it agrees to nothing: a subscription that is made now would be left.
            wanted = replace(found, released_at=self._clock.wall_s())
            tunnel.registration = wanted = self._blocked(wanted, block_s)
            try:
                await self._end_subscriptions(found.label)
                await (await self._repository()).put(wanted)
            except BaseException:
                tunnel.registration = found
                raise
            tunnel.is_lapsed = False
            self._remember(tunnel)
            tunnel.end_polls(ReleasedTunnel(found.label))
            tunnel.end_queue(ReleasedTunnel(found.label))

    async def block(self, tunnel: Tunnel, block_s: float) -> None:
        """Blocks a released label from now on, or ends its block with 0; durable when it
        returns."""
        async with self._locks.of(tunnel.registration.label):
            await self._block(tunnel, block_s)

    def restore(self, tunnel: Tunnel) -> None:
        """Begins the lease of a lapsed tunnel again."""
        if tunnel.is_lapsed:
            tunnel.is_lapsed = False
            tunnel.touch()
            self._leases.set(tunnel.registration.label, tunnel.registration.lease_s)

    async def end_leases(self) -> None:
        """Ends the leases that have run out, releases labels that lapsed long ago, and forgets
        those that were released long ago."""
        for label in self._leases.take_due():
            tunnel = self.labels.get(label)
            if tunnel is None:
                await self._tolerantly(self._drop(label), label)
            elif tunnel.is_lapsed:
                await self._tolerantly(self.release(tunnel), label)
            else:
                self._check_lease(tunnel)

    def forget_owner(self, owner: str) -> None:
        """Releases the labels of a deleted user."""
        for tunnel in self.labels.all():
            if owner and tunnel.registration.owner == owner:
                label = tunnel.registration.label
                self._tasks.own(self._tolerantly(self.release(tunnel), label))

    # Inside

    def _is_over(self, stored: TunnelRegistration) -> bool:
        """Returns whether the owner may have no label any more."""
        if not stored.owner:
            return not self.settings.is_open
        return self._rights.owner_refusal(stored.owner) is not None

    async def _enrol_new(self, wanted: TunnelRegistration) -> Tunnel:
        self.labels.require_unblocked(wanted)
        self.labels.require_room(wanted.owner)
        self.labels.require_free(wanted)
        before = self.labels.released(wanted.label)
        if before is not None:
            await self._hand_over(before.registration, wanted)
        await (await self._repository()).put(wanted)
        return self._enter(wanted)

    async def _enrol_again(self, found: Tunnel, wanted: TunnelRegistration) -> bool:
        """Returns whether the label was lapsed, and counts as new."""
        held, label = found.registration, wanted.label
        if held.owner != wanted.owner:
            raise EnrolmentRefused("is another user's", field="name", value=label)
        if held.digest != wanted.digest and not found.is_lapsed:
            reason = f"is enrolled with another token; free if no poll waits for {held.lease_s} s"
            raise EnrolmentRefused(reason, field="name", value=label)
        was_lapsed = found.is_lapsed
        await self._hand_over(held, wanted)
        await self._renew(found, replace(wanted, made_at=held.made_at))
        self.restore(found)
        return was_lapsed

    async def _renew(self, tunnel: Tunnel, wanted: TunnelRegistration) -> None:
        if wanted != tunnel.registration:
            await (await self._repository()).put(wanted)
            tunnel.change(wanted)
        tunnel.touch()
        self._leases.set(wanted.label, wanted.lease_s)

    async def _hand_over(self, held: TunnelRegistration, wanted: TunnelRegistration) -> None:
        """Ends subscriptions that an earlier application has left: those that were being made when
        the label was released."""
        if not held.is_same_application(wanted):
            await self._end_subscriptions(wanted.label)

    async def _end_subscriptions(self, label: str) -> None:
        await self._end_callbacks(partial(self.addresses.is_below, label))

    def _enter(self, registration: TunnelRegistration) -> Tunnel:
        tunnel = Tunnel(registration, self.settings, self.budget, self._clock)
        if registration.is_released:
            self._remember(tunnel)
        else:
            self.labels.enter(tunnel)
            self._leases.set(registration.label, registration.lease_s)
        return tunnel

    async def _block(self, tunnel: Tunnel, block_s: float) -> None:
        if self.labels.released(tunnel.registration.label) is tunnel:
            wanted = self._blocked(tunnel.registration, block_s)
            await (await self._repository()).put(wanted)
            tunnel.registration = wanted
            self._remember(tunnel)

    def _blocked(self, found: TunnelRegistration, block_s: float) -> TunnelRegistration:
        until = self._clock.wall_s() + block_s if block_s else 0.0
        return replace(found, blocked_until=until)

    def _remember(self, tunnel: Tunnel) -> None:
        """Keeps a released tunnel for a while, in place of the oldest one if there are too many."""
        self.labels.enter(tunnel)
        blocked_s = tunnel.registration.blocked_until - self._clock.wall_s()
        self._leases.set(tunnel.registration.label, max(self.settings.label_lifetime_s, blocked_s))
        excess = self.labels.excess()
        if excess is not None:
            self._tasks.own(self._tolerantly(self._drop(excess), excess))

    async def _drop(self, label: str) -> None:
        """Forgets that a label was released."""
        async with self._locks.of(label):
            if self.labels.released(label) is not None:
                await (await self._repository()).delete(label)
                self.labels.drop(label)

    async def _watch(self) -> None:
        while True:
            await self._leases.wait()
            await self.end_leases()

    def _check_lease(self, tunnel: Tunnel) -> None:
        label, lease_s = tunnel.registration.label, tunnel.registration.lease_s
        if tunnel.idle_s() < lease_s:
            self._leases.set(label, lease_s - tunnel.idle_s())
            return
        tunnel.is_lapsed = True
        tunnel.end_queue(UnknownTunnel("its lease has ended", field="label", value=label))
        self._leases.set(label, self.settings.label_lifetime_s)

    async def _tolerantly(self, work: Awaitable[None], label: str) -> None:
        """Does work that is repeated later if the database fails, which is logged."""
        try:
            await work
        except WarrenError as error:
            log.error("label '%s' can't be released: %s", label, error)
            self._leases.set(label, self.settings.label_lifetime_s)

    async def _repository(self) -> TunnelRepository:
        database = await self._storage.database()
        from .repository import TunnelRepository

        return TunnelRepository(database)
