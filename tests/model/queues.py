"""Queues, consumers and channels of the model: lists, and what they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .messages import Held, Message, Outstanding
from .operations import Publish, Seat

QUORUM_LIMIT = 20
QUORUM_LEVELS = 31


@dataclass(eq=False)
class Consumer:
    seat: Seat
    tag: str
    queue: Queue
    no_ack: bool
    exclusive: bool
    limit: int
    priority: int
    arguments: Mapping[str, Any]


@dataclass(eq=False)
class Channel:
    """`outstanding` is in the order of delivery."""

    seat: Seat
    confirms: bool = False
    published: int = 0
    limit: int = 0
    limit_taken: int = 0
    next_limit: int = 0
    last_queue: str = ""
    delivered: int = 0
    outstanding: list[Outstanding] = field(default_factory=list)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    transaction: Transaction | None = None

    def given(self) -> list[Outstanding]:
        """All that was not settled, or not for good: a transaction may end without a commit."""
        in_doubt = self.transaction.settled() if self.transaction else []
        return sorted(self.outstanding + in_doubt, key=lambda entry: entry.tag)

    def has_room(self, consumer: Consumer) -> bool:
        """Within the consumer's own limit and the channel's, which basic.get does not use up, nor
        who acks nothing: that one waits for the channel's all the same."""
        given = self.given()
        own = sum(entry.consumer is consumer for entry in given)
        whole = sum(entry.consumer is not None for entry in given)
        return (consumer.no_ack or not consumer.limit or own < consumer.limit) and (
            not self.limit or self.limit_taken + whole < self.limit
        )


@dataclass
class Transaction:
    """What waits for the commit."""

    publishes: list[tuple[Message, list[str], Publish]] = field(default_factory=list)
    settlements: list[tuple[str, list[Outstanding]]] = field(default_factory=list)

    def settled(self) -> list[Outstanding]:
        return [entry for _, entries in self.settlements for entry in entries]


@dataclass(eq=False)
class Queue:
    name: str
    durable: bool
    exclusive: bool
    auto_delete: bool
    arguments: dict[str, Any]
    owner: int | None = None
    used_ms: int = 0
    ready: list[Held] = field(default_factory=list)
    consumers: list[Consumer] = field(default_factory=list)
    was_read: bool = False
    policy: Mapping[str, Any] = field(default_factory=dict)
    active: Consumer | None = None

    def rule(self, name: str) -> Any:
        """What argument and policy say together: the smaller number, else the argument's."""
        own, other = self.arguments.get(f"x-{name}"), self.policy.get(name)
        if own is None or other is None:
            return other if own is None else own
        return min(own, other) if isinstance(own, int) else own

    @property
    def overflow(self) -> str:
        return str(self.rule("overflow") or "drop-head")

    @property
    def is_quorum(self) -> bool:
        return bool(self.arguments.get("x-queue-type") == "quorum")

    @property
    def levels(self) -> int:
        return QUORUM_LEVELS if self.is_quorum else int(self.arguments.get("x-max-priority", 0))

    @property
    def delivery_limit(self) -> int | None:
        """How often a message may come back; -1 for as often as it likes."""
        limit = self.rule("delivery-limit")
        return QUORUM_LIMIT if limit is None and self.is_quorum else limit

    def put(self, held: Held) -> None:
        self.ready.append(held)
        self.ready.sort(key=lambda held: held.place)

    def is_over(self, more: int = 0, more_bytes: int = 0) -> bool:
        """Whether it would hold more than it may."""
        count, size = self.rule("max-length"), self.rule("max-length-bytes")
        held = sum(held.size for held in self.ready)
        return (count is not None and len(self.ready) + more > count) or (
            size is not None and held + more_bytes > size
        )

    def takers(self, by_priority: bool) -> list[Consumer]:
        """Consumers that messages may go to by right, whether they have room or not."""
        if not self.arguments.get("x-single-active-consumer"):
            return self.consumers
        if self.active not in self.consumers:
            line = self.consumers
            if by_priority:
                line = sorted(line, key=lambda consumer: -consumer.priority)
            self.active = line[0] if line else None
        return [self.active] if self.active else []
