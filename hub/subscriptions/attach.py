"""Ties subscriptions to the engine: queue, binding, consumer; and unties them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from ...core.errors import ChannelError
from ..delivery.relay import PREFETCH
from ..engine.port import BindingSpec, Delivery, Engine
from ..requests import Resource
from ..settings import HubSettings
from .active import ActiveSubscription
from .sources import Sources
from .subscription import Status, Subscription

NOT_FOUND = 404

log = logging.getLogger(__name__)

Offer = Callable[[ActiveSubscription, Delivery], None]


class Attacher:
    """`post` takes the messages of callbacks, `relay` those of sinks.

    Whether a subscription is consumed follows from `ActiveSubscription.takes` alone, asked again
    after every wait for the engine: pausing, suspending and ending may come in between, in any
    order.
    """

    def __init__(self, engine: Engine, settings: HubSettings, post: Offer, relay: Offer) -> None:
        self._engine = engine
        self._settings = settings
        self._post = post
        self._relay = relay
        self._starting: set[ActiveSubscription] = set()
        self.sources = Sources(engine, settings.source_poll_s, self._attach)

    async def prepare(self, subscription: Subscription) -> None:
        """Declares and binds what messages gather in; no message is lost from here on."""
        if subscription.owns_queue:
            spec = subscription.queue_spec
            await self._engine.declare_queue(subscription.source.vhost, spec)
        await self._bind(subscription)

    async def attach(self, active: ActiveSubscription) -> None:
        """Prepares, and consumes if it takes messages; now or when the source is back.

        Repeating it does no harm. What nobody has agreed to, or is over, stays unattached.
        """
        if active.is_over:
            return
        try:
            await self._attach(active)
        except ChannelError as error:
            log.info("subscription %s waits: %s", active.subscription.id, error)
            self.sources.wait(active, error.explanation)

    async def suspend(self, active: ActiveSubscription) -> None:
        """Takes no more messages until `resume`; they gather. Repeating it does no harm."""
        active.is_suspended = True
        await active.cancel()

    async def resume(self, active: ActiveSubscription) -> None:
        """Undoes `suspend`; one that was paused or has ended meanwhile stays so."""
        active.is_suspended = False
        await self.attach(active)

    async def detach(self, active: ActiveSubscription) -> None:
        """Takes everything back, as far as it is there."""
        active.is_over = True
        self.sources.forget(active)
        await active.cancel()
        subscription = active.subscription
        try:
            if subscription.is_binding:
                await self._engine.unbind(subscription.source.vhost, subscription.binding)
            elif subscription.owns_queue:
                await self._engine.delete_queue(subscription.source.vhost, subscription.queue)
        except ChannelError as error:
            if error.code != NOT_FOUND:
                raise

    async def leave(self, active: ActiveSubscription, source: str) -> None:
        """Its queue gets nothing more from an exchange of its virtual host that it was bound to
        with the same key, if it was."""
        subscription = active.subscription
        self.sources.leave(active, Resource(subscription.source.vhost, "x", source))
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

    async def _attach(self, active: ActiveSubscription) -> None:
        # Consumed before it is bound: what an earlier run left in the queue goes out even
        # while the source is gone.
        subscription = active.subscription
        if subscription.status is Status.UNVERIFIED:
            return
        if subscription.owns_queue:
            spec = subscription.queue_spec
            await self._engine.declare_queue(subscription.source.vhost, spec)
        if not subscription.is_binding:
            await self._consume(active)
        await self._bind(subscription)
        self.sources.follow(active)
        if active.is_over:  # ended meanwhile
            await self.detach(active)

    async def _bind(self, subscription: Subscription) -> None:
        if subscription.binds:
            await self._engine.bind(subscription.source.vhost, subscription.binding)

    async def _consume(self, active: ActiveSubscription) -> None:
        if active.consumption is not None or active in self._starting or not active.takes():
            return
        subscription = active.subscription
        offer = self._post if subscription.sink is None else self._relay
        self._starting.add(active)
        try:
            active.consumption = await self._engine.consume(
                subscription.source.vhost,
                subscription.queue,
                prefetch=1 if active.is_probed else self.prefetch(subscription),
                on_delivery=partial(offer, active),
                on_cancel=partial(self._on_cancel, active),
            )
        finally:
            self._starting.discard(active)
        if not active.takes():  # it was paused, suspended or ended meanwhile
            await active.cancel()

    async def _on_cancel(self, active: ActiveSubscription) -> None:
        await active.cancel()  # by now it may be another one: two would break the order
        if not active.is_over:
            one = active.subscription
            what = f"queue '{one.queue}' of vhost '{one.source.vhost}' is gone"
            log.warning("subscription %s waits: its %s", one.id, what)
            self.sources.wait(active, what)
