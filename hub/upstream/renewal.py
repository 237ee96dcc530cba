"""Keeps upstreams subscribed: discovery, request, renewal in time, and leaving.

Two kinds of tasks run for an upstream: `keep` until it is removed, and `leave` for each lease that
is replaced or ended. Both use stored wall times, so a start does what became due before it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..errors import StorageFailed
from ..owner_rights import SubscriberRights
from ..settings import HubSettings
from . import upstream as steps
from .location import TopicLocation, UpstreamFailed
from .registry import UpstreamRegistry
from .state import UpstreamState
from .upstream import Upstream, UpstreamLease, UpstreamStatus

if TYPE_CHECKING:
    from .client import HubClient

TOKEN_BYTES = 32
SECRET_BYTES = 32  # 43 characters, below WebSub's 200 bytes
MAX_SLEEP_S = 3_600.0
"""How late a clock that was set forward is noticed at most."""
MAX_RETRY_S = 3_600.0
UNEXPECTED = "an unexpected error; the log has it"
_SPREAD = 0.2

log = logging.getLogger(__name__)


class NoAnswer(WarrenError):
    """The hub has accepted a request, but not verified it in time."""


class NotPermitted(WarrenError):
    """The owner may not write to the sink any more."""


class Renewals:
    """Requests and renews leases; `client` makes the HTTP client at its first use."""

    def __init__(
        self,
        registry: UpstreamRegistry,
        client: Callable[[], Awaitable[HubClient]],
        rights: SubscriberRights,
        settings: HubSettings,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._client = client
        self._rights = rights
        self._settings = settings
        self._clock = clock

    async def keep_subscribed(self, state: UpstreamState) -> None:
        """Subscribes and renews until the hub denies it; retries after other failures."""
        failures = 0
        while True:
            await self._until(state.upstream.renew_at)
            if state.upstream.status is UpstreamStatus.DENIED:
                return
            try:
                await self._subscribe(state)
                failures = 0
            except WarrenError as error:
                failures += 1
                await self._note(state, str(error))
                await asyncio.sleep(self._again_s(failures))
            except Exception:
                failures += 1
                log.exception("upstream '%s' failed unexpectedly", state.upstream.name)
                await self._note(state, UNEXPECTED)
                await asyncio.sleep(self._again_s(failures))

    async def unsubscribe(self, state: UpstreamState, lease: UpstreamLease) -> None:
        """Unsubscribes a lease at its hub; retries until the hub confirms it or the lease ends."""
        failures = 0
        await self._until(lease.leave_at)
        while state.upstream.lease(lease.token) and self._clock.wall_s() < lease.expires_at:
            try:
                await self._ask(state, "unsubscribe", lease)
            except WarrenError as error:
                failures += 1
                log.warning("upstream '%s': unsubscribing failed: %s", state.upstream.name, error)
                left_s = max(0.0, lease.expires_at - self._clock.wall_s())
                await asyncio.sleep(min(self._again_s(failures), left_s))
        await self._store(self._forget, state, lease)

    async def finish(self, state: UpstreamState) -> None:
        """Deletes an ended upstream that has no lease left."""
        await self._store(self._registry.drop, state)

    async def _subscribe(self, state: UpstreamState) -> None:
        refusal = self._refusal(state.upstream)
        if refusal is not None:
            raise NotPermitted(refusal)
        await self._registry.step(state, lambda old: steps.discovering(old, self._clock.wall_s()))
        client = await self._client()
        upstream = state.upstream
        lease = _lease_for(upstream, await self._locate(client, upstream))
        # Stored before the request, because the hub may verify it at once.
        await self._registry.step(state, lambda old: steps.asking(old, lease, self._clock.wall_s()))
        await self._ask(state, "subscribe", lease)

    async def _locate(self, client: HubClient, upstream: Upstream) -> TopicLocation:
        """Returns the hub that the topic names now, the current one if discovery fails."""
        try:
            return await client.find_hub(upstream.request, upstream.leases.authorization)
        except UpstreamFailed as error:
            current = upstream.leases.current
            if current is None:
                raise
            log.warning(
                "upstream '%s': discovery failed, renewing at the current hub: %s",
                upstream.name,
                error,
            )
            return TopicLocation(current.hub_url, current.topic)

    def _refusal(self, upstream: Upstream) -> str | None:
        return self._rights.write_refusal(
            upstream.owner, upstream.sink, upstream.request.routing_key
        )

    async def _ask(self, state: UpstreamState, mode: str, lease: UpstreamLease) -> None:
        """Sends a request and waits until the hub verifies or denies it. Raises `WarrenError`."""
        answer = state.answer_to(lease)
        client = await self._client()
        await client.ask(mode, state.upstream, lease)
        limit_s = self._settings.upstream_answer_s
        try:
            async with asyncio.timeout(limit_s):
                await answer.wait()
        except TimeoutError as error:
            reason = f"the hub {lease.hub_url} accepted and did not ask back within {limit_s:g} s"
            raise NoAnswer(reason) from error
        finally:
            state.answers.pop(lease.token, None)

    async def _forget(self, state: UpstreamState, lease: UpstreamLease) -> None:
        await self._registry.step(state, partial(steps.without, token=lease.token))
        if state.upstream.status is UpstreamStatus.ENDING and not state.upstream.leases.all():
            await self._registry.drop(state)

    async def _store(self, work: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Repeats the work until it is stored, else a row of an ended lease would stay for ever."""
        failures = 0
        while True:
            try:
                await work(*arguments)
                return
            except StorageFailed:
                failures += 1
                await asyncio.sleep(self._again_s(failures))

    async def _note(self, state: UpstreamState, reason: str) -> None:
        """Records a failure."""
        if reason != state.upstream.reason:
            log.warning("upstream '%s': %s", state.upstream.name, reason)
        try:
            await self._registry.step(
                state, lambda old: steps.failed(old, self._clock.wall_s(), reason)
            )
        except StorageFailed as failure:
            log.warning("upstream '%s': %s", state.upstream.name, failure)

    async def _until(self, wall_s: float) -> None:
        while (left_s := wall_s - self._clock.wall_s()) > 0:
            await asyncio.sleep(min(left_s, MAX_SLEEP_S))

    def _again_s(self, failures: int) -> float:
        return retry_s(self._settings.upstream_again_s, failures, random.random())


def retry_s(first_s: float, failures: int, chance: float) -> float:
    """Returns the wait after so many failures: it doubles, and `chance` in [0, 1) varies it."""
    wait_s = first_s * float(1 << min(failures - 1, 20))
    return min(wait_s, MAX_RETRY_S) * (1 + _SPREAD * (2 * chance - 1))


def _lease_for(upstream: Upstream, location: TopicLocation) -> UpstreamLease:
    """Returns the pending lease if it is for this topic and hub, else a new one.

    To the hub a repeated request is the same subscription then.
    """
    pending = upstream.leases.pending
    if pending is not None and (pending.hub_url, pending.topic) == (
        location.hub_url,
        location.topic,
    ):
        return pending
    secret = None
    if upstream.request.is_signed:
        secret = upstream.leases.given_secret or secrets.token_urlsafe(SECRET_BYTES)
    return UpstreamLease(
        secrets.token_urlsafe(TOKEN_BYTES), location.hub_url, location.topic, secret
    )
