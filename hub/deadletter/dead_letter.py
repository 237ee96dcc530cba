"""A dead letter: a message that failed for good, its subscription, and the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ...core.message.model import Message, Properties
from ..delivery.envelope import EXCHANGE, HOPS, ID, INTERNAL, SEAL, TOPIC, Envelope
from ..delivery.internal_headers import InternalHeaders
from ..engine.port import UnackedMessage
from ..subscriptions.active import ActiveSubscription

_TRIES: Final = re.compile(r"^\d+ (attempts?|failures?), the last: ")
OWN_HEADERS = INTERNAL | {HOPS, SEAL}
"""Headers that are not of the publisher."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter of the hub. `id` is unique in its virtual host; a message that is dead-lettered
    again gets another one, with the same `webhook_id`. `active` is its subscription, None if that
    is over. `dead_at` is wall time in seconds, None if it is unknown."""

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

    @property
    def cause(self) -> str:
        """The last reason, without how often was tried."""
        return _TRIES.sub("", self.reason)

    def without_body(self) -> DeadLetter:
        """Returns a copy for lists, which must not keep all bodies in memory."""
        return replace(self, message=replace(self.message, body=b""))


async def read_dead_letter(
    vhost: str,
    delivery: UnackedMessage,
    active_of: Callable[[str], ActiveSubscription | None],
    internal_headers: InternalHeaders,
) -> DeadLetter:
    """Returns the dead letter; one that a client has published belongs to no subscription."""
    message = delivery.message
    envelope = await internal_headers.read_in_thread(message, delivery.sequence)
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
    """Returns the properties of a message that has not failed, with the same id and origin; its age
    begins at 0."""
    envelope = dead_letter.envelope
    given = dead_letter.message.properties.headers or {}
    headers = {name: value for name, value in given.items() if name not in OWN_HEADERS}
    headers[ID] = envelope.message_id
    headers[TOPIC] = envelope.routing_key
    headers[EXCHANGE] = envelope.exchange
    expiration = envelope.expiration or None
    return replace(dead_letter.message.properties, headers=headers, expiration=expiration)
