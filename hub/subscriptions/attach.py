"""Attaches subscriptions to the engine (queue, binding, consumer), and detaches them."""

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
from .sources import MissingSources
from .subscription import Subscription, SubscriptionStatus

NOT_FOUND = 404

log = logging.getLogger(__name__)

Offer = Callable[[ActiveSubscription, Delivery], None]


class Attacher:
    """Declares, binds and consumes the queues of subscriptions. `post` takes the messages for
    callbacks, `relay` those for sinks.

    Whether a queue is consumed follows from `DeliveryState.takes` alone, which is checked again
    after every wait for the engine: a subscription may be paused, suspended or ended meanwhile.
    """

    def __init__(self, engine: Engine, settings: HubSettings, post: Offer, relay: Offer) -> None:
        self._engine = engine
        self._settings = settings
        self._post = post
        self._relay = relay
        self.sources = MissingSources(engine, settings.source_poll_s, self._attach)

    async def prepare(self, subscription: Subscription) -> None:
        """Declares and binds the queue; no message is lost from here on."""
        if subscription.owns_queue:
            spec = subscription.queue_spec
            await self._engine.declare_queue(subscription.source.vhost, spec)
        await self._bind(subscription)

    async def attach(self, active: ActiveSubscription) -> None:
        """Prepares, and consumes if it is active; now, or when its source exists again.

        Does nothing for one that is attached, unverified or over.
        """
        if active.state.is_over:
            return
        try:
            await self._attach(active)
        except ChannelError as error:
            log.info("subscription %s is waiting for its source: %s", active.subscription.id, error)
            self.sources.wait(active, error.explanation)

    async def suspend(self, active: ActiveSubscription) -> None:
        """Cancels the consumer until `resume`; messages wait in the queue."""
        active.state.suspend()
        await active.state.cancel()

    async def resume(self, active: ActiveSubscription) -> None:
        """Ends a suspension; a subscription that was paused or has ended meanwhile stays so."""
        active.state.resume()
        await self.attach(active)

    async def detach(self, active: ActiveSubscription) -> None:
        """Cancels the consumer, and removes binding or queue if they exist."""
        active.state.end()
        self.sources.forget(active)
        await active.state.cancel()
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
        """Removes the binding of its queue to another exchange of its virtual host with the same
        key, if there is one."""
        subscription = active.subscription
        self.sources.leave(active, Resource(subscription.source.vhost, "x", source))
        binding = BindingSpec(source, subscription.queue, True, subscription.topic)
        try:
            await self._engine.unbind(subscription.source.vhost, binding)
        except ChannelError as error:
            if error.code != NOT_FOUND:
                raise

    def prefetch(self, subscription: Subscription) -> int:
        """Returns how many messages may be in flight; more than one are not delivered in order."""
        if subscription.sink is not None:
            return PREFETCH
        if subscription.options.strict_order:
            return 1
        options = subscription.options
        in_flight = options.in_flight or self._settings.in_flight_per_subscription
        if options.max_tps:  # no more than can begin during the slowest delivery
            return min(in_flight, max(1, int(options.max_tps * self._settings.total_timeout_s)))
        return in_flight

    async def _attach(self, active: ActiveSubscription) -> None:
        # Consumed before it is bound: messages of an earlier run are delivered even if the source
        # does not exist.
        subscription = active.subscription
        if subscription.status is SubscriptionStatus.UNVERIFIED:
            return
        if subscription.owns_queue:
            spec = subscription.queue_spec
            await self._engine.declare_queue(subscription.source.vhost, spec)
        if not subscription.is_binding:
            await self._consume(active)
        await self._bind(subscription)
        self.sources.follow(active)
        if active.state.is_over:  # ended meanwhile
            await self.detach(active)

    async def _bind(self, subscription: Subscription) -> None:
        if subscription.binds:
            await self._engine.bind(subscription.source.vhost, subscription.binding)

    async def _consume(self, active: ActiveSubscription) -> None:
        if not active.state.start_consuming():
            return
        subscription = active.subscription
        offer = self._post if subscription.sink is None else self._relay
        try:
            consumption = await self._engine.consume(
                subscription.source.vhost,
                subscription.queue,
                prefetch=1 if active.is_probed else self.prefetch(subscription),
                on_delivery=partial(offer, active),
                on_cancel=partial(self._on_cancel, active),
            )
        except BaseException:
            active.state.fail_to_consume()
            raise
        active.state.consume(consumption)
        if not active.state.takes():  # paused, suspended or ended meanwhile
            await active.state.cancel()

    async def _on_cancel(self, active: ActiveSubscription) -> None:
        await active.state.cancel()  # maybe another one by now: two would break the order
        if not active.state.is_over:
            one = active.subscription
            what = f"queue '{one.queue}' of vhost '{one.source.vhost}' is gone"
            log.warning("subscription %s is waiting for its %s", one.id, what)
            self.sources.wait(active, what)
