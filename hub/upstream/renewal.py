"""Keeps upstreams subscribed: discovery, request, renewal in time, and leaving.

Two sorts of work run for an upstream, as tasks: `keep`, as long as it is wanted, and `leave` for
each line that is over. Both go by wall time that is stored, so what fell due while the process
was down is done at its start.
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
from ..owner_rights import Rights
from ..settings import HubSettings
from . import upstream as steps
from .location import TopicLocation, UpstreamFailed
from .registry import UpstreamRegistry
from .state import UpstreamState
from .upstream import Status, Upstream, UpstreamLease

if TYPE_CHECKING:
    from .client import HubClient

TOKEN_BYTES = 32
SECRET_BYTES = 32  # 43 characters, below WebSub's 200 bytes
MAX_SLEEP_S = 3_600.0  # a clock that is set forward is noticed within this time
MAX_AGAIN_S = 3_600.0
UNFORESEEN = "an error that was not foreseen; the log has it"
_SPREAD = 0.2

log = logging.getLogger(__name__)


class NoAnswer(WarrenError):
    """The hub has accepted a request, and has not asked back in time."""


class NotPermitted(WarrenError):
    """The owner may not write to the sink any more."""


class Renewals:
    """`client` makes what asks other hubs, at its first use."""

    def __init__(
        self,
        registry: UpstreamRegistry,
        client: Callable[[], Awaitable[HubClient]],
        rights: Rights,
        settings: HubSettings,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._client = client
        self._rights = rights
        self._settings = settings
        self._clock = clock

    async def keep(self, state: UpstreamState) -> None:
        """Subscribes and renews until it is denied; other failures are tried again."""
        failures = 0
        while True:
            await self._until(state.upstream.renew_at)
            if state.upstream.status is Status.DENIED:
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
                log.exception("upstream '%s' failed unforeseen", state.upstream.name)
                await self._note(state, UNFORESEEN)
                await asyncio.sleep(self._again_s(failures))

    async def leave(self, state: UpstreamState, lease: UpstreamLease) -> None:
        """Tells the hub that a line is over, until the hub knows or its lease is over."""
        failures = 0
        await self._until(lease.leave_at)
        while state.upstream.lease(lease.token) and self._clock.wall_s() < lease.expires_at:
            try:
                await self._ask(state, "unsubscribe", lease)
            except WarrenError as error:
                failures += 1
                log.warning("upstream '%s' can't leave its hub: %s", state.upstream.name, error)
                left_s = max(0.0, lease.expires_at - self._clock.wall_s())
                await asyncio.sleep(min(self._again_s(failures), left_s))
        await self._stored(self._forget, state, lease)

    async def finish(self, state: UpstreamState) -> None:
        """Takes the row of what is over, and has nobody to be told, out of the database."""
        await self._stored(self._registry.drop, state)

    async def _subscribe(self, state: UpstreamState) -> None:
        refusal = self._refusal(state.upstream)
        if refusal is not None:
            raise NotPermitted(refusal)
        await self._registry.step(state, lambda old: steps.discovering(old, self._clock.wall_s()))
        client = await self._client()
        upstream = state.upstream
        lease = _lease_for(upstream, await self._place(client, upstream))
        # Stored before the hub is asked, for it may ask back at once.
        await self._registry.step(state, lambda old: steps.asking(old, lease, self._clock.wall_s()))
        await self._ask(state, "subscribe", lease)

    async def _place(self, client: HubClient, upstream: Upstream) -> TopicLocation:
        """A topic that has moved is followed; one that can't be asked now is where it was."""
        try:
            return await client.find_hub(upstream.request, upstream.leases.authorization)
        except UpstreamFailed as error:
            current = upstream.leases.current
            if current is None:
                raise
            log.warning("upstream '%s' is renewed where it was: %s", upstream.name, error)
            return TopicLocation(current.hub_url, current.topic)

    def _refusal(self, upstream: Upstream) -> str | None:
        return self._rights.refuse_write(
            upstream.owner, upstream.sink, upstream.request.routing_key
        )

    async def _ask(self, state: UpstreamState, mode: str, lease: UpstreamLease) -> None:
        """Returns when the hub has asked back; raises `WarrenError` otherwise."""
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
        if state.upstream.status is Status.ENDING and not state.upstream.leases.all():
            await self._registry.drop(state)

    async def _stored(self, work: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Until it is: a row that tells of what is over would be left for ever."""
        failures = 0
        while True:
            try:
                await work(*arguments)
                return
            except StorageFailed:
                failures += 1
                await asyncio.sleep(self._again_s(failures))

    async def _note(self, state: UpstreamState, reason: str) -> None:
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
        base_s = self._settings.upstream_again_s * float(1 << min(failures - 1, 20))
        return min(base_s, MAX_AGAIN_S) * (1 + _SPREAD * (2 * random.random() - 1))


def _lease_for(upstream: Upstream, location: TopicLocation) -> UpstreamLease:
    """The pending line where it fits, so that a request that is repeated is the same one to the
    hub; else a new one."""
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
