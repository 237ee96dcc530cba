"""Ties subscriptions to the engine: queue, binding, consumer; and unties them.

A subscription whose source is gone stays, looks for it now and then, and goes on when it is
back: a queue that is deleted and declared again is the same source to those who follow it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from ..core.errors import ChannelError
from .deliver.relay import PREFETCH
from .engine.port import BindingSpec, Delivery, Engine, QueueSpec
from .live import Live
from .requests import Resource
from .settings import HubSettings
from .subscription import Subscription

NOT_FOUND = 404

log = logging.getLogger(__name__)

Offer = Callable[[Live, Delivery], None]


class Attacher:
    """`post` takes the messages of callbacks, `relay` those of sinks."""

    def __init__(self, engine: Engine, settings: HubSettings, post: Offer, relay: Offer) -> None:
        self._engine = engine
        self._settings = settings
        self._post = post
        self._relay = relay
        self._waiting: dict[Live, None] = {}
        self._has_waiting = asyncio.Event()

    @property
    def waiting_count(self) -> int:
        """Subscriptions whose source is gone."""
        return len(self._waiting)

    async def exists(self, resource: Resource) -> bool:
        if resource.kind == "x":
            return await self._engine.exchange(resource.vhost, resource.name) is not None
        return await self._engine.queue(resource.vhost, resource.name) is not None

    async def prepare(self, subscription: Subscription) -> None:
        """Declares and binds what messages gather in; no message is lost from here on."""
        if subscription.owns_queue:
            spec = QueueSpec(subscription.queue)
            await self._engine.declare_queue(subscription.source.vhost, spec)
        await self._bind(subscription)

    async def resume(self, live: Live) -> None:
        """Prepares and consumes, now or when the source is back. Repeating it does no harm."""
        try:
            await self._attach(live)
        except ChannelError as error:
            log.info("subscription %s waits: %s", live.subscription.id, error)
            self._wait(live)

    async def detach(self, live: Live) -> None:
        """Takes everything back, as far as it is there."""
        live.is_over = True
        self._waiting.pop(live, None)
        await live.cancel()
        subscription = live.subscription
        try:
            if subscription.is_binding:
                await self._engine.unbind(subscription.source.vhost, _binding(subscription))
            elif subscription.owns_queue:
                await self._engine.delete_queue(subscription.source.vhost, subscription.queue)
        except ChannelError as error:
            if error.code != NOT_FOUND:
                raise

    async def watch(self) -> None:
        """Resumes what waits, as sources come back; runs until cancelled."""
        while True:
            await self._has_waiting.wait()
            await asyncio.sleep(self._settings.source_poll_s)
            await self.retry_waiting()

    async def retry_waiting(self) -> None:
        """Looks once for each source that is missed, however many wait for it."""
        found: dict[Resource, bool] = {}
        for live in list(self._waiting):
            source = live.subscription.source
            if source not in found:
                found[source] = await self._is_back(source)
            if found[source]:
                await self._retry(live)
        if not self._waiting:
            self._has_waiting.clear()

    async def _is_back(self, source: Resource) -> bool:
        try:
            return await self.exists(source)
        except ChannelError:  # its virtual host is gone too
            return False

    async def _retry(self, live: Live) -> None:
        try:
            await self._attach(live)
        except ChannelError as error:
            log.debug("subscription %s still waits: %s", live.subscription.id, error)
        else:
            self._waiting.pop(live, None)

    async def _attach(self, live: Live) -> None:
        # Consumed before it is bound: what an earlier run left in the queue goes out even
        # while the source is gone.
        subscription = live.subscription
        if subscription.owns_queue:
            spec = QueueSpec(subscription.queue)
            await self._engine.declare_queue(subscription.source.vhost, spec)
        if live.consumption is None and not subscription.is_binding:
            await self._consume(live)
        await self._bind(subscription)
        if live.is_over:  # ended meanwhile
            await self.detach(live)

    async def _bind(self, subscription: Subscription) -> None:
        if subscription.is_binding or subscription.owns_queue:
            await self._engine.bind(subscription.source.vhost, _binding(subscription))

    async def _consume(self, live: Live) -> None:
        subscription = live.subscription
        offer = self._post if subscription.sink is None else self._relay
        in_flight = self._settings.in_flight_per_subscription
        live.consumption = await self._engine.consume(
            subscription.source.vhost,
            subscription.queue,
            prefetch=in_flight if subscription.sink is None else PREFETCH,
            on_delivery=partial(offer, live),
            on_cancel=partial(self._on_cancel, live),
        )

    async def _on_cancel(self, live: Live) -> None:
        live.consumption = None
        if not live.is_over:
            log.warning("subscription %s has lost its queue and waits", live.subscription.id)
            self._wait(live)

    def _wait(self, live: Live) -> None:
        self._waiting[live] = None
        self._has_waiting.set()


def _binding(subscription: Subscription) -> BindingSpec:
    source, sink = subscription.source.name, subscription.sink
    if subscription.is_binding and sink is not None:
        return BindingSpec(source, sink.name, sink.kind == "q", subscription.topic)
    return BindingSpec(source, subscription.queue, True, subscription.topic)
