"""Subscriptions of this hub at other hubs: requested, listed and removed by their owners.

`app` has the routes: those of owners below `/api/hub/upstreams`, and the callbacks for other hubs.
It also publishes the content, because it has the users.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from ...core.clock import Clock
from ..guard.guard import Guard
from ..lazy import Lazy
from ..owner_rights import SubscriberRights
from ..settings import HubSettings
from ..storage.storage import Storage
from ..workers.pool import Workers
from . import upstream as steps
from .callbacks import Callbacks
from .client_factories import make_client
from .registry import UpstreamRegistry
from .renewal import Renewals
from .state import UpstreamState
from .tasks import UpstreamTasks
from .upstream import Upstream, UpstreamLeases, UpstreamRequest, UpstreamStatus
from .validation import check_request


class Upstreams:
    """The upstreams of all owners; `callbacks` answers other hubs."""

    def __init__(
        self,
        storage: Storage,
        guard: Guard,
        workers: Workers,
        rights: SubscriberRights,
        settings: HubSettings,
        clock: Clock,
    ) -> None:
        self._guard = guard
        self._rights = rights
        self._clock = clock
        self._registry = UpstreamRegistry(storage)
        self._loaded: list[UpstreamState] = []
        self._client = Lazy(lambda: make_client(settings, guard, workers))
        renewals = Renewals(self._registry, self._client.get, rights, settings, clock)
        self._work = UpstreamTasks(self._registry, renewals, clock)
        self.callbacks = Callbacks(self._registry, self._work, clock)

    async def start(self) -> None:
        """Loads what is stored; callbacks are answered from then on."""
        self._loaded = await self._registry.load()

    def begin(self) -> None:
        """Starts the tasks of all loaded upstreams.

        To be called when callbacks can be reached, because hubs verify at once.
        """
        loaded, self._loaded = self._loaded, []
        for state in loaded:
            if self._rights.owner_refusal(state.upstream.owner):
                self._work.end_soon(state)
            else:
                self._work.serve(state)

    async def stop(self) -> None:
        """Cancels all tasks and closes all connections."""
        await self._work.stop()
        if self._client.made is not None:
            await self._client.made.close()

    def all(self) -> list[Upstream]:
        return [state.upstream for state in self._registry.all()]

    def get(self, vhost: str, name: str) -> Upstream | None:
        state = self._registry.named(vhost, name)
        return None if state is None else state.upstream

    async def put(
        self, vhost: str, name: str, owner: str, request: UpstreamRequest, leases: UpstreamLeases
    ) -> bool:
        """Adds or changes an upstream; returns whether it is new. Durable when it returns.

        `leases` has the secrets from the owner. An unchanged request has no effect, unless the
        upstream has failed or was denied: it is tried at once then. The caller has checked the
        owner's rights. Raises `BadRequest`, `CallbackRefused` and `StorageFailed`.
        """
        check_request(request, leases, self._guard)
        async with self._work.lock:
            return await self._put(vhost, name, owner, request, leases)

    async def _put(
        self, vhost: str, name: str, owner: str, request: UpstreamRequest, leases: UpstreamLeases
    ) -> bool:
        state = self._registry.named(vhost, name)
        if state is None:
            new = Upstream(uuid.uuid4().hex, vhost, name, owner, request, leases)
            self._work.serve(await self._registry.add(new))
            return True
        if not _is_unchanged_request(state.upstream, owner, request, leases):
            now_s = self._clock.wall_s()
            await self._work.change(
                state, lambda old: steps.changed(old, owner, request, leases, now_s)
            )
        return False

    async def remove(self, vhost: str, name: str) -> bool:
        """Removes an upstream; returns whether there was one. Its hub is informed later."""
        async with self._work.lock:
            state = self._registry.named(vhost, name)
            if state is None:
                return False
            await self._work.end(state)
            return True

    def forget_vhost(self, vhost: str) -> None:
        """Removes the upstreams of a deleted virtual host."""
        self._forget(lambda upstream: upstream.vhost == vhost)

    def forget_owner(self, owner: str) -> None:
        """Removes the upstreams of a deleted user."""
        self._forget(lambda upstream: upstream.owner == owner)

    def _forget(self, is_over: Callable[[Upstream], bool]) -> None:
        for state in self._registry.all():
            if is_over(state.upstream):
                self._work.end_soon(state)


def _is_unchanged_request(
    upstream: Upstream, owner: str, request: UpstreamRequest, leases: UpstreamLeases
) -> bool:
    old = upstream.leases
    return (
        upstream.status not in (UpstreamStatus.FAILED, UpstreamStatus.DENIED)
        and (upstream.owner, upstream.request) == (owner, request)
        and (old.given_secret, old.authorization) == (leases.given_secret, leases.authorization)
    )
