"""A dead letter: a message that failed for good, whose it was, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...core.model import Message, Properties
from ..deliver.envelope import (
    ARRIVED_AT_MS,
    EXCHANGE,
    EXPIRATION,
    FAILED_AT_MS,
    FAILURES,
    HOPS,
    ID,
    NOT_BEFORE_MS,
    TOPIC,
    Envelope,
    read_envelope,
)
from ..deliver.parking import DEAD_AT_MS, REASON, SUBSCRIPTION
from ..engine.port import Taken
from ..subscriptions.live import Live

_OF_ITS_DEATH = (
    SUBSCRIPTION, REASON, DEAD_AT_MS, FAILURES, FAILED_AT_MS, NOT_BEFORE_MS, HOPS, ARRIVED_AT_MS,
    EXPIRATION,
)  # fmt: skip
OWN_HEADERS = frozenset({*_OF_ITS_DEATH, ID, TOPIC, EXCHANGE})
"""What is told beside the headers that the publisher has set."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """`id` names it in its virtual host for as long as it is there; a message that dies again
    is another letter with the same `webhook_id`.

    `live` is the subscription that it was for, None when that is over. `dead_at` is wall time in
    seconds, None where nobody noted it.
    """

    id: str
    vhost: str
    subscription_id: str
    live: Live | None
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


def read_letter(vhost: str, delivery: Taken, live_of: Callable[[str], Live | None]) -> DeadLetter:
    message = delivery.message
    headers = message.properties.headers or {}
    subscription_id, dead_at_ms = headers.get(SUBSCRIPTION), headers.get(DEAD_AT_MS)
    subscription_id = subscription_id if isinstance(subscription_id, str) else ""
    return DeadLetter(
        id=str(delivery.sequence),
        vhost=vhost,
        subscription_id=subscription_id,
        live=live_of(subscription_id),
        envelope=read_envelope(message, delivery.sequence),
        reason=str(headers.get(REASON, "")),
        dead_at=dead_at_ms / 1000 if isinstance(dead_at_ms, int) else None,
        size_bytes=len(message.body),
        message=message,
    )


def replayed_properties(letter: DeadLetter) -> Properties:
    """As if it had never failed, but for its id, and where it came from: its time, too, begins
    anew."""
    envelope = letter.envelope
    given = letter.message.properties.headers or {}
    headers = {name: value for name, value in given.items() if name not in _OF_ITS_DEATH}
    headers[ID] = envelope.message_id
    headers[TOPIC] = envelope.routing_key
    headers[EXCHANGE] = envelope.exchange
    expiration = envelope.expiration or None
    return replace(letter.message.properties, headers=headers, expiration=expiration)
