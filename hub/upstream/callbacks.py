"""Answers requests of other hubs to this hub's callbacks, by the callback's token."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from functools import partial

from ...core.clock import Clock
from . import upstream as steps
from .registry import UpstreamRegistry
from .state import UpstreamState
from .tasks import UpstreamTasks
from .upstream import Upstream, UpstreamLease, UpstreamStatus
from .validation import MAX_LEASE_S

MAX_REASON_CHARACTERS = 500

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Receiving:
    """The upstream and the lease that content at a callback belongs to."""

    upstream: Upstream
    lease: UpstreamLease
    state: UpstreamState


class Callbacks:
    """Confirms and denies leases, and finds them for content."""

    def __init__(self, registry: UpstreamRegistry, work: UpstreamTasks, clock: Clock) -> None:
        self._registry = registry
        self._work = work
        self._clock = clock

    async def confirm(self, token: str, mode: str, topic: str, lease_s: int | None) -> bool:
        """Returns whether this hub has requested that and not confirmed it yet (WebSub 5.3).

        Durable when it returns. Raises `StorageFailed`; the request must not be confirmed then.
        """
        state, lease = self._find(token)
        if state is None or lease is None or lease.topic != topic:
            return False
        if mode == "unsubscribe":
            return await self._confirm_end(state, lease)
        return mode == "subscribe" and await self._confirm_begin(state, lease, lease_s)

    async def deny(self, token: str, topic: str, reason: str) -> Upstream | None:
        """Ends a lease that its hub denies (WebSub 5.2). Returns its upstream, None for an unknown
        lease."""
        state, lease = self._find(token)
        if state is None or lease is None or lease.topic != topic:
            return None
        # PostgreSQL stores no NUL, and terminals interpret other control characters.
        shown = "".join(filter(str.isprintable, reason[:MAX_REASON_CHARACTERS])).strip()
        reason = f"the hub {lease.hub_url} has denied it: {shown or 'no reason given'}"
        await self._registry.step(state, partial(steps.denied, token=token, reason=reason))
        state.answered(token)
        return state.upstream

    def receiving(self, token: str) -> Receiving | None:
        """Returns the upstream and lease of content, None without a lease; 410 then ends the
        subscription at its hub."""
        state, lease = self._find(token)
        if state is None or lease is None or not lease.expires_at:
            return None
        is_over = lease.leave_at and lease.leave_at <= self._clock.wall_s()
        return None if is_over else Receiving(state.upstream, lease, state)

    async def refused(self, receiving: Receiving, reason: str) -> None:
        """Marks the upstream as failed, because its owner may not write the content."""
        log.warning("upstream '%s': %s", receiving.upstream.name, reason)
        await self._registry.step(receiving.state, partial(steps.refused, reason=reason))

    async def accepted(self, receiving: Receiving) -> None:
        """Ends the failure that `refused` has marked."""
        upstream = receiving.state.upstream
        if upstream.status is UpstreamStatus.FAILED and upstream.is_served(self._clock.wall_s()):
            await self._registry.step(receiving.state, steps.accepted)

    def _find(self, token: str) -> tuple[UpstreamState | None, UpstreamLease | None]:
        state = self._registry.with_token(token)
        return state, None if state is None else state.upstream.lease(token)

    async def _confirm_begin(
        self, state: UpstreamState, lease: UpstreamLease, lease_s: int | None
    ) -> bool:
        now_s, chance = self._clock.wall_s(), random.random()
        granted_s = min(max(lease_s or state.upstream.request.lease_seconds, 1), MAX_LEASE_S)

        def step(old: Upstream) -> Upstream:
            is_pending = old.leases.pending == lease
            return steps.confirmed(old, now_s, granted_s, chance) if is_pending else old

        await self._registry.step(state, step)
        current = state.upstream.leases.current
        if lease.expires_at or current is None or current.token != lease.token:
            return False
        state.answered(lease.token)
        self._work.leave_leases(state)
        return True

    async def _confirm_end(self, state: UpstreamState, lease: UpstreamLease) -> bool:
        if lease not in state.upstream.leases.leaving or lease.leave_at > self._clock.wall_s():
            return False
        await self._registry.step(state, partial(steps.without, token=lease.token))
        state.answered(lease.token)
        return True
