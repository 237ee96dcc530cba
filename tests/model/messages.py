"""Messages of the model: what was published, and what a queue keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Headers = dict[str, Any]
ANY_TIME = 0
"""Of a death, where the test's clock is not the broker's."""


@dataclass(frozen=True)
class Message:
    """`keys` are the routing key and behind it those of CC and BCC."""

    exchange: str
    keys: tuple[str, ...]
    properties: Mapping[str, Any]
    body: bytes

    @property
    def headers(self) -> Headers:
        return dict(self.properties.get("headers") or {})

    @property
    def persistent(self) -> bool:
        return bool(self.properties.get("delivery_mode") == 2)

    @property
    def ttl_ms(self) -> int | None:
        text = self.properties.get("expiration")
        return None if text is None else int(text)

    @property
    def priority(self) -> int:
        return int(self.properties.get("priority") or 0)

    def with_headers(self, headers: Headers) -> Message:
        return replace(self, properties={**self.properties, "headers": headers})


def more_keys(headers: Mapping[str, Any]) -> list[str]:
    """Returns the strings in CC and BCC. Raises `ValueError` for one that is no array."""
    keys: list[str] = []
    for name in ("CC", "BCC"):
        value = headers.get(name, [])
        if not isinstance(value, list):
            raise ValueError(name)
        keys += [key for key in value if isinstance(key, str)]
    return keys


def as_received(exchange: str, key: str, properties: Mapping[str, Any], body: bytes) -> Message:
    """What the broker makes of a publish: BCC is read and taken off."""
    headers = dict(properties.get("headers") or {})
    message = Message(exchange, (key, *more_keys(headers)), properties, body)
    if "BCC" in headers:
        del headers["BCC"]
        message = message.with_headers(headers)
    return message


def mark(body: bytes, headers: Mapping[str, Any]) -> tuple[object, ...]:
    """Tells a message from all others, from its own dead letters too."""
    deaths = headers.get("x-death", [])
    return body, *((death["queue"], death["reason"], death["count"]) for death in deaths)


@dataclass(eq=False)
class Held:
    """A message in a queue; `order` says where in it."""

    message: Message
    order: int
    level: int = 0
    arrived_ms: int = 0
    deadline_ms: int | None = None
    redelivered: bool = False
    maybe_redelivered: bool = False
    """After a crash: nobody knows whether it was on its way to somebody."""
    zero_ttl: bool = False
    fresh: bool = True
    """It has just come."""
    failures: int = 0
    returns: int = 0
    burst: int = 0
    """Dead letters of one moment have the same number: who of them comes first is open."""
    order_is_open: bool = False
    """Beside it came dead letters of other queues, or what was published with it."""

    @property
    def place(self) -> tuple[int, int]:
        return -self.level, self.order

    @property
    def size(self) -> int:
        return len(self.message.body)


@dataclass(eq=False)
class Outstanding:
    """A message that somebody was given and has not settled; `tag` comes from the broker."""

    held: Held
    queue: Any
    consumer: Any = None
    tag: int = 0
    redelivered: bool = False
    unsure: bool = False
    counts: Headers = field(default_factory=dict)

    def __post_init__(self) -> None:
        """What the message was when it went out: it may come back and change."""
        self.redelivered = self.held.redelivered
        self.unsure = self.held.maybe_redelivered
        if self.queue.delivery_limit is None:
            return
        if self.held.failures:
            self.counts["x-delivery-count"] = self.held.failures
        if self.held.returns and self.queue.is_quorum:
            self.counts["x-acquired-count"] = self.held.returns


# -- dead letters (amqp.md section 5)


def dead_letter(
    message: Message,
    reason: str,
    queue: str,
    exchange: str,
    key: str | None,
    time_s: int,
    last_death: bool,
) -> Message:
    """The message as it is published anew, with its x-death brought up to date."""
    headers = message.headers
    deaths = [dict(death) for death in headers.get("x-death", [])]
    same = [death for death in deaths if (death["queue"], death["reason"]) == (queue, reason)]
    others = [death for death in deaths if (death["queue"], death["reason"]) != (queue, reason)]
    if same:
        first = {**same[0], "count": same[0]["count"] + 1}
    else:
        first = _death(message, reason, queue, time_s)
    headers["x-death"] = [first, *others]
    facts = {"reason": reason, "queue": queue, "exchange": message.exchange}
    for name, value in facts.items():
        if not deaths:
            headers.setdefault(f"x-first-death-{name}", value)
        if last_death:
            headers[f"x-last-death-{name}"] = value
    if key is not None:
        headers.pop("CC", None)
    properties = {name: value for name, value in message.properties.items() if name != "expiration"}
    keys = message.keys if key is None else (key,)
    return Message(exchange, keys, {**properties, "headers": headers}, message.body)


def _death(message: Message, reason: str, queue: str, time_s: int) -> Headers:
    cc = [key for key in message.headers.get("CC", []) if isinstance(key, str)]
    death: Headers = {
        "count": 1,
        "reason": reason,
        "queue": queue,
        "time": time_s,
        "exchange": message.exchange,
        "routing-keys": [message.keys[0], *cc],
    }
    if message.ttl_ms is not None:
        death["original-expiration"] = message.properties["expiration"]
    return death


def runs_in_circles(letter: Message, target: str) -> bool:
    """Whether a dead letter was in this queue before, with no rejection since (newest first)."""
    for death in letter.headers["x-death"]:
        if death["reason"] == "rejected":
            return False
        if death["queue"] == target:
            return True
    return False
