"""What a message is to its subscriber, however often it has been parked on the way.

A parked message is published anew and comes back through the default exchange, so its first
exchange, key and id, its failures and the time before which it must wait travel in headers.
Publishers can write those headers too: one of a wrong type counts as absent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...core.model import FieldValue, Message, Properties, Table

DELAY_PREFIX = "hub.retry."

ID = "x-hub-id"
TOPIC = "x-hub-topic"
"""Also where an engine without direct publishing to a queue puts the key of a post to it."""
EXCHANGE = "x-hub-exchange"
FAILURES = "x-hub-failures"
NOT_BEFORE_MS = "x-hub-not-before"
HOPS = "x-hub-hops"
_FIRST_DEATH = ("x-first-death-exchange", "x-first-death-queue", "x-first-death-reason")
_COPIES = {"CC": "x-hub-cc", "BCC": "x-hub-bcc"}


@dataclass(frozen=True, slots=True)
class Envelope:
    """`message_id` stays the same over retries; `not_before` is wall time in seconds."""

    message_id: str
    exchange: str
    routing_key: str
    failures: int = 0
    not_before: float = 0.0


def read_envelope(message: Message, sequence: int) -> Envelope:
    headers = message.properties.headers
    fresh_id = f"msg_{sequence}"
    if not headers or (ID not in headers and TOPIC not in headers):
        return Envelope(fresh_id, message.exchange, message.routing_key)
    return Envelope(
        _text(headers, ID, fresh_id),
        _text(headers, EXCHANGE, message.exchange),
        _text(headers, TOPIC, message.routing_key),
        _count(headers, FAILURES),
        _count(headers, NOT_BEFORE_MS) / 1000,
    )


def parked_properties(message: Message, envelope: Envelope) -> Properties:
    """The message's properties for another round.

    Its own expiration would cut the wait short, and CC would route the way back to strangers'
    queues: the first is dropped, the second renamed. Our delay queues leave `x-death`, for a
    broker may take a second visit to the same queue for a cycle and drop the message.
    """
    headers: Table = {
        _COPIES.get(name, name): value for name, value in (message.properties.headers or {}).items()
    }
    if str(headers.get("x-first-death-queue")).startswith(DELAY_PREFIX):
        for name in _FIRST_DEATH:
            headers.pop(name, None)
    deaths = _foreign_deaths(headers.pop("x-death", None))
    if deaths:
        headers["x-death"] = deaths
    headers[ID] = envelope.message_id
    headers[TOPIC] = envelope.routing_key
    headers[EXCHANGE] = envelope.exchange
    headers[FAILURES] = envelope.failures
    headers[NOT_BEFORE_MS] = int(envelope.not_before * 1000)
    return replace(message.properties, headers=headers, expiration=None)


def hops_of(message: Message) -> int:
    return _count(message.properties.headers or {}, HOPS)


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


def _count(headers: Table, name: str) -> int:
    value = headers.get(name)
    return value if isinstance(value, int) and value > 0 else 0
