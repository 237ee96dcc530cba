"""A dead letter: a message that failed for good, whose it was, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...core.message.model import Message, Properties
from ..delivery.envelope import EXCHANGE, HOPS, ID, NOTED, SEAL, TOPIC, Envelope
from ..delivery.internal_headers import InternalHeaders
from ..engine.port import Taken
from ..subscriptions.active import ActiveSubscription

OWN_HEADERS = NOTED | {HOPS, SEAL}
"""What is told beside the headers that the publisher has set."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """`id` names it in its virtual host for as long as it is there; a message that dies again
    is another letter with the same `webhook_id`.

    `active` is the subscription that it was for, None when that is over. `dead_at` is wall time in
    seconds, None where nobody noted it.
    """

    id: str
    vhost: str
    subscription_id: str
    active: ActiveSubscription | None
    envelope: Envelope
    reason: str
    dead_at: float | None
    size_bytes: int
    message: Message

    @property
    def webhook_id(self) -> str:
        return self.envelope.message_id

    def without_body(self) -> DeadLetter:
        """For lists, which must not hold them all."""
        return replace(self, message=replace(self.message, body=b""))


async def read_dead_letter(
    vhost: str,
    delivery: Taken,
    active_of: Callable[[str], ActiveSubscription | None],
    internal_headers: InternalHeaders,
) -> DeadLetter:
    """One that was published there by somebody else belongs to no subscription."""
    message = delivery.message
    envelope = await internal_headers.read_aside(message, delivery.sequence)
    return DeadLetter(
        id=str(delivery.sequence),
        vhost=vhost,
        subscription_id=envelope.subscription_id,
        active=active_of(envelope.subscription_id),
        envelope=envelope,
        reason=envelope.reason,
        dead_at=envelope.dead_at or None,
        size_bytes=len(message.body),
        message=message,
    )


def replayed_properties(dead_letter: DeadLetter) -> Properties:
    """As if it had never failed, but for its id, and where it came from: its time, too, begins
    anew."""
    envelope = dead_letter.envelope
    given = dead_letter.message.properties.headers or {}
    headers = {name: value for name, value in given.items() if name not in OWN_HEADERS}
    headers[ID] = envelope.message_id
    headers[TOPIC] = envelope.routing_key
    headers[EXCHANGE] = envelope.exchange
    expiration = envelope.expiration or None
    return replace(dead_letter.message.properties, headers=headers, expiration=expiration)
