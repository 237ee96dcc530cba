"""Republishes dead letters to the queues of their subscriptions."""

from __future__ import annotations

from dataclasses import replace

from ...core.errors import ChannelError
from ...core.message.model import Properties
from ..delivery.internal_headers import InternalHeaders
from ..engine.port import Engine, PublishOutcome
from ..subscriptions.active import ActiveSubscription
from ..subscriptions.subscription import SubscriptionStatus
from .dead_letter import DeadLetter, replayed_properties

DEDUPLICATION_HEADER = "x-deduplication-header"
"""The queue argument that names the header with the id, and the default name of that header."""


class Replays:
    def __init__(self, engine: Engine, internal_headers: InternalHeaders) -> None:
        self._engine = engine
        self._internal_headers = internal_headers

    async def publish(self, dead_letter: DeadLetter) -> str | None:
        """Publishes a copy. Returns None once it is confirmed and the dead letter may be acked,
        else the reason why not."""
        active = dead_letter.active
        reason = _refusal(active)
        if active is None or reason is not None:
            return reason
        message, queue = dead_letter.message, active.subscription.queue
        properties = await self._properties(dead_letter, queue)
        properties = await self._internal_headers.sealed(properties, message.body)
        key = dead_letter.envelope.routing_key
        try:
            outcome = await self._engine.publish(
                None, dead_letter.vhost, "", key, properties, message.body, queue=queue
            )
        except ChannelError as error:
            return error.explanation
        if outcome is not PublishOutcome.ROUTED:
            return f"queue '{queue}' did not take it: {outcome.value}"
        return None

    async def _properties(self, dead_letter: DeadLetter, queue: str) -> Properties:
        """Returns the properties without the id by which the queue would drop it as a duplicate."""
        properties = replayed_properties(dead_letter)
        found = await self._engine.queue(dead_letter.vhost, queue)
        arguments = {} if found is None else found.spec.arguments
        if not arguments.get("x-message-deduplication") or not properties.headers:
            return properties
        name = arguments.get(DEDUPLICATION_HEADER, DEDUPLICATION_HEADER)
        headers = {key: value for key, value in properties.headers.items() if key != name}
        return replace(properties, headers=headers)


def _refusal(active: ActiveSubscription | None) -> str | None:
    if active is None:
        return "its subscription is over"
    if active.subscription.status is not SubscriptionStatus.ACTIVE:
        return f"its subscription is {active.subscription.status.value}, resume it first"
    return None
