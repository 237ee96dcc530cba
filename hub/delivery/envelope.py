"""The identity, origin and failures of a message, kept in headers while it is in retry queues.

A message in a retry queue is a copy that returns through the default exchange, so its first
exchange, key and id, its failures and the time of its next attempt are in headers. Publishers can
write these headers too: they are read only under the hub's seal (`internal_headers.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ...core.message.model import FieldValue, Message, Properties, Table

DELAY_PREFIX = "hub.retry."

ID = "x-hub-id"
TOPIC = "x-hub-topic"
EXCHANGE = "x-hub-exchange"
FAILURES = "x-hub-failures"
NOT_BEFORE_MS = "x-hub-not-before"
FAILED_AT_MS = "x-hub-failed-at"
ARRIVED_AT_MS = "x-hub-arrived-at"
EXPIRATION = "x-hub-expiration"
SUBSCRIPTION = "x-hub-subscription"
REASON = "x-hub-reason"
DEAD_AT_MS = "x-hub-dead-at"
SEAL = "x-hub-seal"
HOPS = "x-hub-hops"
"""Not sealed: other hubs and relays count too."""
_DEATHS = ("x-first-death-", "x-last-death-")
_DEATH_KEYS = ("exchange", "queue", "reason")
COPIES = {"CC": "x-hub-cc", "BCC": "x-hub-bcc"}
_ORIGINALS = {hidden: name for name, hidden in COPIES.items()}
INTERNAL = frozenset(
    {
        ID, TOPIC, EXCHANGE, FAILURES, NOT_BEFORE_MS, FAILED_AT_MS, ARRIVED_AT_MS, EXPIRATION,
        SUBSCRIPTION, REASON, DEAD_AT_MS,
    }
)  # fmt: skip
_EXPIRATION_TEXT = re.compile("[0-9]{1,10}")
_MAX_COUNT = 2**48
"""In milliseconds, the year 10889. Larger numbers could not be incremented and stored."""


@dataclass(slots=True)  # not frozen: one is made for each delivery, and that would cost 1 us
class Envelope:
    """The hub's record of a message. `message_id` stays the same over retries; `not_before` and
    `failed_at`, the time of the first failure, are in seconds of wall time. `hops` counts the hubs
    that the message has passed. `arrived_at` is its first arrival in its queue, in seconds of
    steady time, and `expiration` that of its publisher, in milliseconds. `subscription_id`,
    `reason` and `dead_at` are set for dead letters. `is_sealed` says that all this comes from
    internal headers."""

    message_id: str
    exchange: str
    routing_key: str
    failures: int = 0
    not_before: float = 0.0
    failed_at: float = 0.0
    hops: int = 0
    arrived_at: float = 0.0
    expiration: str = ""
    subscription_id: str = ""
    reason: str = ""
    dead_at: float = 0.0
    is_sealed: bool = False

    def failed(self, at: float) -> Envelope:
        """Returns the envelope after another failure."""
        return replace(self, failures=self.failures + 1, failed_at=self.failed_at or at)


def from_publisher(message: Message, message_id: str) -> Envelope:
    """Returns the envelope of a message as it was published."""
    return Envelope(message_id, message.exchange, message.routing_key, hops=hops_of(message))


def from_internal_headers(message: Message, message_id: str) -> Envelope:
    """Returns the envelope of a message whose internal headers are valid; `message_id` is for one
    without an id there."""
    headers = message.properties.headers or {}
    return Envelope(
        _text(headers, ID, message_id),
        _text(headers, EXCHANGE, message.exchange),
        _text(headers, TOPIC, message.routing_key),
        _count(headers, FAILURES),
        _count(headers, NOT_BEFORE_MS) / 1000,
        _count(headers, FAILED_AT_MS) / 1000,
        _count(headers, HOPS),
        _count(headers, ARRIVED_AT_MS) / 1000,
        _expiration(headers),
        _text(headers, SUBSCRIPTION, ""),
        _text(headers, REASON, ""),
        _count(headers, DEAD_AT_MS) / 1000,
        is_sealed=True,
    )


def retry_properties(message: Message, envelope: Envelope) -> Properties:
    """Returns the properties for a copy in a retry queue.

    Its expiration would end the wait early, and CC would route it to other queues when it returns:
    they become internal headers. Deaths in delay queues are removed from `x-death`, for a broker
    may drop a message that dies twice in the same queue.
    """
    given = message.properties.headers or {}
    # Headers by a publisher must not get the seal.
    made_up = INTERNAL if envelope.is_sealed else INTERNAL | _ORIGINALS.keys()
    headers: Table = {
        COPIES.get(name, name): value for name, value in given.items() if name not in made_up
    }
    _forget_deaths(headers)
    headers[ID] = envelope.message_id
    headers[TOPIC] = envelope.routing_key
    headers[EXCHANGE] = envelope.exchange
    headers[FAILURES] = envelope.failures
    headers[NOT_BEFORE_MS] = int(envelope.not_before * 1000)
    if envelope.failed_at:
        headers[FAILED_AT_MS] = int(envelope.failed_at * 1000)
    if envelope.arrived_at:
        headers[ARRIVED_AT_MS] = round(envelope.arrived_at * 1000)
    expiration = message.properties.expiration or envelope.expiration
    if expiration:
        headers[EXPIRATION] = expiration
    return replace(message.properties, headers=headers, expiration=None)


def original(message: Message, envelope: Envelope) -> Message:
    """Returns the message of a retry queue as it was published."""
    headers: Table = {
        _ORIGINALS.get(name, name): value
        for name, value in (message.properties.headers or {}).items()
        if name not in INTERNAL and name != SEAL
    }
    _forget_deaths(headers)
    properties = replace(
        message.properties, headers=headers or None, expiration=envelope.expiration or None
    )
    return replace(
        message, exchange=envelope.exchange, routing_key=envelope.routing_key, properties=properties
    )


def hops_of(message: Message) -> int:
    return _count(message.properties.headers or {}, HOPS)


def _forget_deaths(headers: Table) -> None:
    """Removes the entries of delay queues from `x-death`."""
    for death in _DEATHS:
        if str(headers.get(f"{death}queue")).startswith(DELAY_PREFIX):
            for key in _DEATH_KEYS:
                headers.pop(death + key, None)
    deaths = _foreign_deaths(headers.pop("x-death", None))
    if deaths:
        headers["x-death"] = deaths


def _foreign_deaths(deaths: FieldValue) -> list[FieldValue]:
    if not isinstance(deaths, list):
        return []
    return [
        death
        for death in deaths
        if not (isinstance(death, dict) and str(death.get("queue")).startswith(DELAY_PREFIX))
    ]


def _text(headers: Table, name: str, default: str) -> str:
    value = headers.get(name)
    return value if isinstance(value, str) else default


def _expiration(headers: Table) -> str:
    value = _text(headers, EXPIRATION, "")
    return value if _EXPIRATION_TEXT.fullmatch(value) else ""


def _count(headers: Table, name: str) -> int:
    value = headers.get(name)
    return value if isinstance(value, int) and 0 < value <= _MAX_COUNT else 0
