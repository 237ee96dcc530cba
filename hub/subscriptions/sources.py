"""Sources that are gone: who waits for them, and how it is noticed that they are back.

A queue or exchange that is deleted and declared again is the same one to those who follow it: their
bindings are made in the step that makes it, so they miss nothing that is published there.
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


class Sources:
    """`attach` ties a subscription to its source once more, and ends in `follow`; it raises while
    that can't be."""

    def __init__(
        self, engine: Engine, poll_s: float, attach: Callable[[ActiveSubscription], Awaitable[None]]
    ) -> None:
        self._engine = engine
        self._poll_s = poll_s
        self._attach = attach
        self._waiting: dict[ActiveSubscription, None] = {}
        self._has_waiting = asyncio.Event()
        self._missed: dict[Resource, dict[ActiveSubscription, None]] = {}
        """Who waits, by each resource that may be what is not there."""
        self._came_back = asyncio.Event()
        self._bound: dict[Resource, dict[ActiveSubscription, None]] = {}
        engine.watch_deleted(self._deleted)
        engine.watch_declared(self._declared)

    @property
    def waiting_count(self) -> int:
        """Subscriptions that wait for their source."""
        return len(self._waiting)

    @property
    def bound_count(self) -> int:
        """Sources and sinks whose end would be noticed."""
        return len(self._bound)

    async def exists(self, resource: Resource) -> bool:
        if resource.kind == "x":
            return await self._engine.exchange(resource.vhost, resource.name) is not None
        return await self._engine.queue(resource.vhost, resource.name) is not None

    async def require_consumable(self, source: Resource) -> None:
        """Raises `ChannelError` 405 for a queue that is another connection's alone, `BadRequest`
        for a stream: a message that failed could only come back to it as a new one, for all of its
        readers, and there is no place to go on from after a pause."""
        found = await self._engine.queue(source.vhost, source.name) if source.kind == "q" else None
        if found is None:
            return
        if found.spec.exclusive:
            raise resource_locked(f"{source} is exclusive to the connection that declared it")
        if found.spec.arguments.get("x-queue-type") == "stream":
            reason = "is a stream, which can't be subscribed to: subscribe to its exchange"
            raise BadRequest(reason, field="resource", value=source.name)

    def wait(self, active: ActiveSubscription, reason: str) -> None:
        """Its source is not there now, or can't be bound to."""
        active.waits_for = reason
        self._waiting[active] = None
        for resource in _needs(active.subscription):
            self._missed.setdefault(resource, {})[active] = None
        self._has_waiting.set()

    def _waits_no_more(self, active: ActiveSubscription) -> None:
        active.waits_for = ""
        if self._waiting.pop(active, self) is self:
            return
        for resource in _needs(active.subscription):
            _drop(self._missed, resource, active)

    def follow(self, active: ActiveSubscription) -> None:
        """It is bound: when what it is bound to goes, it waits."""
        self._waits_no_more(active)
        for resource in _ends(active.subscription):
            self._bound.setdefault(resource, {})[active] = None

    def forget(self, active: ActiveSubscription) -> None:
        """It is over."""
        self._waits_no_more(active)
        for resource in _ends(active.subscription):
            self.leave(active, resource)

    def leave(self, active: ActiveSubscription, resource: Resource) -> None:
        """It is bound there no longer."""
        _drop(self._bound, resource, active)

    async def watch(self) -> None:
        """Attaches what waits, as sources come back; runs until cancelled."""
        while True:
            await self._has_waiting.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s):
                    await self._came_back.wait()
            self._came_back.clear()
            await self.retry()

    async def retry(self) -> None:
        """Looks once for each source that is missed, however many wait for it."""
        found: dict[Resource, bool] = {}
        for active in list(self._waiting):
            source = active.subscription.source
            if source not in found:
                found[source] = await self._is_back(source)
            if found[source] and active in self._waiting:
                await self._retry(active)
            await asyncio.sleep(0)  # the engine need not wait for anything, and others do
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
            active.waits_for = error.explanation

    def _deleted(self, vhost: str, kind: Kind, name: str) -> Iterator[None]:
        """Bindings are gone with it: another one of that name has to be bound anew. In the first
        step all of them wait for it, then each is given the reason."""
        resource = Resource(vhost, kind, name)
        active_subscriptions = dict.fromkeys(self._bound.get(resource, ()))
        if not active_subscriptions:
            return
        self._missed.setdefault(resource, {}).update(active_subscriptions)
        self._waiting.update(active_subscriptions)
        log.warning(
            "%d subscriptions are suspended: %s was deleted", len(active_subscriptions), resource
        )
        for active in active_subscriptions:
            if active in self._waiting:
                self.wait(active, f"{resource} was deleted")
            yield

    def _declared(self, vhost: str, kind: Kind, name: str) -> Iterator[BindingSpec]:
        """Gives the bindings of those that are still waiting as it is asked for them."""
        active_subscriptions = tuple(self._missed.get(Resource(vhost, kind, name), ()))
        for active in active_subscriptions:
            if active in self._waiting and active.subscription.binds:
                yield active.subscription.binding
        if active_subscriptions:
            self._came_back.set()  # what else there is to do for them can wait


def _drop(
    places: dict[Resource, dict[ActiveSubscription, None]],
    resource: Resource,
    active: ActiveSubscription,
) -> None:
    """No place is kept without anybody in it."""
    active_subscriptions = places.get(resource, {})
    active_subscriptions.pop(active, None)
    if not active_subscriptions:
        places.pop(resource, None)


def _needs(subscription: Subscription) -> tuple[Resource, ...]:
    """What has to be there for it."""
    return _ends(subscription) or (subscription.source,)


def _ends(subscription: Subscription) -> tuple[Resource, ...]:
    """What bindings are made between, but for its own queue, whose consumer is told of its end."""
    if subscription.is_binding and subscription.sink is not None:
        return subscription.source, subscription.sink
    return (subscription.source,) if subscription.owns_queue else ()
