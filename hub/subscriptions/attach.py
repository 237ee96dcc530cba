"""Ties subscriptions to the engine: queue, binding, consumer; and unties them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from ...core.errors import ChannelError
from ..deliver.relay import PREFETCH
from ..engine.port import BindingSpec, Delivery, Engine
from ..requests import Resource
from ..settings import HubSettings
from .live import Live
from .sources import Sources
from .subscription import Status, Subscription

NOT_FOUND = 404

log = logging.getLogger(__name__)

Offer = Callable[[Live, Delivery], None]


class Attacher:
    """`post` takes the messages of callbacks, `relay` those of sinks.

    Whether a subscription is consumed follows from `Live.takes` alone, asked again after every
    wait for the engine: pausing, suspending and ending may come in between, in any order.
    """

    def __init__(self, engine: Engine, settings: HubSettings, post: Offer, relay: Offer) -> None:
        self._engine = engine
        self._settings = settings
        self._post = post
        self._relay = relay
        self._starting: set[Live] = set()
        self.sources = Sources(engine, settings.source_poll_s, self._attach)

    async def prepare(self, subscription: Subscription) -> None:
        """Declares and binds what messages gather in; no message is lost from here on."""
        if subscription.owns_queue:
            spec = subscription.queue_spec
            await self._engine.declare_queue(subscription.source.vhost, spec)
        await self._bind(subscription)

    async def attach(self, live: Live) -> None:
        """Prepares, and consumes if it takes messages; now or when the source is back.

        Repeating it does no harm. What nobody has agreed to, or is over, stays unattached.
        """
        if live.is_over:
            return
        try:
            await self._attach(live)
        except ChannelError as error:
            log.info("subscription %s waits: %s", live.subscription.id, error)
            self.sources.wait(live, error.explanation)

    async def suspend(self, live: Live) -> None:
        """Takes no more messages until `resume`; they gather. Repeating it does no harm."""
        live.is_suspended = True
        await live.cancel()

    async def resume(self, live: Live) -> None:
        """Undoes `suspend`; one that was paused or has ended meanwhile stays so."""
        live.is_suspended = False
        await self.attach(live)

    async def detach(self, live: Live) -> None:
        """Takes everything back, as far as it is there."""
        live.is_over = True
        self.sources.forget(live)
        await live.cancel()
        subscription = live.subscription
        try:
            if subscription.is_binding:
                await self._engine.unbind(subscription.source.vhost, subscription.binding)
            elif subscription.owns_queue:
                await self._engine.delete_queue(subscription.source.vhost, subscription.queue)
        except ChannelError as error:
            if error.code != NOT_FOUND:
                raise

    async def leave(self, live: Live, source: str) -> None:
        """Its queue gets nothing more from an exchange of its virtual host that it was bound to
        with the same key, if it was."""
        subscription = live.subscription
        self.sources.leave(live, Resource(subscription.source.vhost, "x", source))
        binding = BindingSpec(source, subscription.queue, True, subscription.topic)
        try:
            await self._engine.unbind(subscription.source.vhost, binding)
        except ChannelError as error:
            if error.code != NOT_FOUND:
                raise

    def prefetch(self, subscription: Subscription) -> int:
        """How many messages of it are under way at once; more than one gives up their order."""
        if subscription.sink is not None:
            return PREFETCH
        if subscription.options.strict_order:
            return 1
        options = subscription.options
        in_flight = options.in_flight or self._settings.in_flight_per_subscription
        if options.max_tps:  # more than may begin before the slowest ends would only stand in line
            return min(in_flight, max(1, int(options.max_tps * self._settings.total_timeout_s)))
        return in_flight

    async def _attach(self, live: Live) -> None:
        # Consumed before it is bound: what an earlier run left in the queue goes out even
        # while the source is gone.
        subscription = live.subscription
        if subscription.status is Status.UNVERIFIED:
            return
        if subscription.owns_queue:
            spec = subscription.queue_spec
            await self._engine.declare_queue(subscription.source.vhost, spec)
        if not subscription.is_binding:
            await self._consume(live)
        await self._bind(subscription)
        self.sources.follow(live)
        if live.is_over:  # ended meanwhile
            await self.detach(live)

    async def _bind(self, subscription: Subscription) -> None:
        if subscription.binds:
            await self._engine.bind(subscription.source.vhost, subscription.binding)

    async def _consume(self, live: Live) -> None:
        if live.consumption is not None or live in self._starting or not live.takes():
            return
        subscription = live.subscription
        offer = self._post if subscription.sink is None else self._relay
        self._starting.add(live)
        try:
            live.consumption = await self._engine.consume(
                subscription.source.vhost,
                subscription.queue,
                prefetch=1 if live.is_probed else self.prefetch(subscription),
                on_delivery=partial(offer, live),
                on_cancel=partial(self._on_cancel, live),
            )
        finally:
            self._starting.discard(live)
        if not live.takes():  # it was paused, suspended or ended meanwhile
            await live.cancel()

    async def _on_cancel(self, live: Live) -> None:
        await live.cancel()  # by now it may be another one: two would break the order
        if not live.is_over:
            one = live.subscription
            what = f"queue '{one.queue}' of vhost '{one.source.vhost}' is gone"
            log.warning("subscription %s waits: its %s", one.id, what)
            self.sources.wait(live, what)
