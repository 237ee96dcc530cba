"""Subscriptions whose source was deleted wait until it is declared again.

Their bindings are made before that declaration is answered, so they get all messages that are
published there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

from ...core.errors import ChannelError, resource_locked
from ..engine.port import BindingSpec, Engine
from ..errors import BadRequest
from ..requests import Kind, Resource
from .active import ActiveSubscription
from .subscription import Subscription

log = logging.getLogger(__name__)


class MissingSources:
    """The subscriptions whose source was deleted, until it is declared again. `attach` binds a
    subscription to its source again, and calls `follow`; it raises if it can't."""

    def __init__(
        self, engine: Engine, poll_s: float, attach: Callable[[ActiveSubscription], Awaitable[None]]
    ) -> None:
        self._engine = engine
        self._poll_s = poll_s
        self._attach = attach
        self._waiting: dict[ActiveSubscription, None] = {}
        self._has_waiting = asyncio.Event()
        self._missing: dict[Resource, dict[ActiveSubscription, None]] = {}
        """The waiting subscriptions by each resource that they need."""
        self._came_back = asyncio.Event()
        self._bound: dict[Resource, dict[ActiveSubscription, None]] = {}
        engine.watch_deleted(self._deleted)
        engine.watch_declared(self._declared)

    @property
    def waiting_count(self) -> int:
        """The number of subscriptions that wait for their source."""
        return len(self._waiting)

    @property
    def bound_count(self) -> int:
        """The number of sources and sinks whose deletion is watched."""
        return len(self._bound)

    async def exists(self, resource: Resource) -> bool:
        if resource.kind == "x":
            return await self._engine.exchange(resource.vhost, resource.name) is not None
        return await self._engine.queue(resource.vhost, resource.name) is not None

    async def require_consumable(self, source: Resource) -> None:
        """Raises `ChannelError` 405 for an exclusive queue, `BadRequest` for a stream: a message
        that failed could only return to it as a new one, for all readers, and the position is lost
        at a pause."""
        found = await self._engine.queue(source.vhost, source.name) if source.kind == "q" else None
        if found is None:
            return
        if found.spec.exclusive:
            raise resource_locked(f"{source} is exclusive to the connection that declared it")
        if found.spec.arguments.get("x-queue-type") == "stream":
            reason = "is a stream, which can't be subscribed to: subscribe to its exchange"
            raise BadRequest(reason, field="resource", value=source.name)

    def wait(self, active: ActiveSubscription, reason: str) -> None:
        """Notes that a subscription waits for its source, which does not exist or can't be bound
        to."""
        active.state.wait_for_source(reason)
        self._waiting[active] = None
        for resource in _needs(active.subscription):
            self._missing.setdefault(resource, {})[active] = None
        self._has_waiting.set()

    def _end_wait(self, active: ActiveSubscription) -> None:
        active.state.follow_source()
        if self._waiting.pop(active, self) is self:
            return
        for resource in _needs(active.subscription):
            _drop(self._missing, resource, active)

    def follow(self, active: ActiveSubscription) -> None:
        """Ends its wait, and watches the resources that it is bound to."""
        self._end_wait(active)
        for resource in _ends(active.subscription):
            self._bound.setdefault(resource, {})[active] = None

    def forget(self, active: ActiveSubscription) -> None:
        """Ends wait and watch of a subscription that is over."""
        self._end_wait(active)
        for resource in _ends(active.subscription):
            self.leave(active, resource)

    def leave(self, active: ActiveSubscription, resource: Resource) -> None:
        """Ends the watch of one resource."""
        _drop(self._bound, resource, active)

    async def watch(self) -> None:
        """Attaches waiting subscriptions as their sources are declared; runs until cancelled."""
        while True:
            await self._has_waiting.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s):
                    await self._came_back.wait()
            self._came_back.clear()
            await self.retry()

    async def retry(self) -> None:
        """Looks up each missing source once, however many subscriptions wait for it."""
        found: dict[Resource, bool] = {}
        for active in list(self._waiting):
            source = active.subscription.source
            if source not in found:
                found[source] = await self._is_back(source)
            if found[source] and active in self._waiting:
                await self._retry(active)
            await asyncio.sleep(0)  # the engine may never wait
        if not self._waiting:
            self._has_waiting.clear()

    async def _is_back(self, source: Resource) -> bool:
        try:
            return await self.exists(source)
        except ChannelError:  # its virtual host is gone too
            return False

    async def _retry(self, active: ActiveSubscription) -> None:
        try:
            await self._attach(active)
        except ChannelError as error:
            active.state.wait_for_source(error.explanation)

    def _deleted(self, vhost: str, kind: Kind, name: str) -> Iterator[None]:
        """Lets all subscriptions that were bound to it wait; gives each the reason, in steps."""
        resource = Resource(vhost, kind, name)
        active_subscriptions = dict.fromkeys(self._bound.get(resource, ()))
        if not active_subscriptions:
            return
        self._missing.setdefault(resource, {}).update(active_subscriptions)
        self._waiting.update(active_subscriptions)
        log.warning(
            "%d subscriptions have lost their source: %s was deleted",
            len(active_subscriptions),
            resource,
        )
        for active in active_subscriptions:
            if active in self._waiting:
                self.wait(active, f"{resource} was deleted")
            yield

    def _declared(self, vhost: str, kind: Kind, name: str) -> Iterator[BindingSpec]:
        """Yields the bindings of the subscriptions that still wait."""
        active_subscriptions = tuple(self._missing.get(Resource(vhost, kind, name), ()))
        for active in active_subscriptions:
            if active in self._waiting and active.subscription.binds:
                yield active.subscription.binding
        if active_subscriptions:
            self._came_back.set()  # `retry` attaches them


def _drop(
    by_resource: dict[Resource, dict[ActiveSubscription, None]],
    resource: Resource,
    active: ActiveSubscription,
) -> None:
    """Removes the subscription from those of a resource."""
    active_subscriptions = by_resource.get(resource, {})
    active_subscriptions.pop(active, None)
    if not active_subscriptions:
        by_resource.pop(resource, None)


def _needs(subscription: Subscription) -> tuple[Resource, ...]:
    """Returns the resources that must exist."""
    return _ends(subscription) or (subscription.source,)


def _ends(subscription: Subscription) -> tuple[Resource, ...]:
    """Returns the ends of its binding, without its own queue, whose deletion cancels the
    consumer."""
    if subscription.is_binding and subscription.sink is not None:
        return subscription.source, subscription.sink
    return (subscription.source,) if subscription.owns_queue else ()
