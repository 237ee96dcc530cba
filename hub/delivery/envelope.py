"""Identity, origin and failures of a message, kept in headers while it is in retry queues.

A message in a retry queue was published anew and comes back through the default exchange, so its
first exchange, key and id, its failures and the time of its next attempt travel in headers.
Publishers can write those headers too: they count only under the hub's seal
(`internal_headers.py`).
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
"""Not sealed: other hubs and relays count them too."""
_DEATHS = ("x-first-death-", "x-last-death-")
_DEATH_KEYS = ("exchange", "queue", "reason")
COPIES = {"CC": "x-hub-cc", "BCC": "x-hub-bcc"}
_ORIGINALS = {hidden: name for name, hidden in COPIES.items()}
NOTED = frozenset(
    {
        ID, TOPIC, EXCHANGE, FAILURES, NOT_BEFORE_MS, FAILED_AT_MS, ARRIVED_AT_MS, EXPIRATION,
        SUBSCRIPTION, REASON, DEAD_AT_MS,
    }
)  # fmt: skip
_EXPIRATION_TEXT = re.compile("[0-9]{1,10}")
_MAX_COUNT = 2**48
"""Of milliseconds, the year 10889. What is above it could not be counted on and stored again."""


@dataclass(slots=True)  # not frozen: one is made for each delivery, and that would cost 1 us
class Envelope:
    """`message_id` stays the same over retries; `not_before` and `failed_at`, the time of the
    first failure, are wall time in seconds. `hops` are the hubs that it has passed. `arrived_at` is
    when the message first came to its queue, in seconds of steady time, and `expiration` the
    one that its publisher gave it, in milliseconds. A dead letter knows its subscription, the
    reason, and when that was. `is_sealed` says that all that comes from notes of the hub."""

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
        """The same after one failure more."""
        return replace(self, failures=self.failures + 1, failed_at=self.failed_at or at)


def fresh(message: Message, message_id: str) -> Envelope:
    """Of a message as its publisher made it."""
    return Envelope(message_id, message.exchange, message.routing_key, hops=hops_of(message))


def believed(message: Message, message_id: str) -> Envelope:
    """Of a message whose headers are the hub's own; `message_id` is for one that names none."""
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
    """The message's properties for another round.

    Its own expiration would cut the wait short, and CC would route the way back to others'
    queues: they become headers of ours. Our delay queues leave `x-death`, for a
    broker may take a second visit to the same queue for a cycle and drop the message.
    """
    given = message.properties.headers or {}
    # What a publisher wrote there must not get our seal.
    made_up = NOTED if envelope.is_sealed else NOTED | _ORIGINALS.keys()
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
    """The message of a retry queue as it first came to its queue."""
    headers: Table = {
        _ORIGINALS.get(name, name): value
        for name, value in (message.properties.headers or {}).items()
        if name not in NOTED and name != SEAL
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
    """Those in our delay queues."""
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
