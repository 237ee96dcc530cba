"""A delivery of a consumer, on the channel by which it came."""

from __future__ import annotations

import time
from typing import Protocol

from ....core.message.model import Message
from .settlements import ChannelSettlements


class DeliveryConsumer(Protocol):
    """What a delivery tells its consumer."""

    def released(self) -> None: ...
    def settled(self, delivery: AmqpDelivery) -> None: ...
    def requeue(self, delivery: AmqpDelivery) -> None: ...


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class AmqpDelivery:
    """Implements `Delivery`."""

    __slots__ = (
        "_consumer", "_is_held", "_received_ms", "message", "sequence", "settlements", "tag",
        "was_delivered",
    )  # fmt: skip

    def __init__(
        self,
        consumer: DeliveryConsumer,
        settlements: ChannelSettlements,
        tag: int,
        message: Message,
        number: int,
    ) -> None:
        self._consumer = consumer
        self._is_held = False
        self._received_ms = _now_ms()
        self.settlements = settlements
        self.tag = tag
        self.message = message
        self.sequence = number
        self.was_delivered = False

    def __lt__(self, other: AmqpDelivery) -> bool:
        return self.tag < other.tag

    @property
    def age_s(self) -> float:
        """The seconds since it was received: RabbitMQ does not say when it arrived."""
        return (_now_ms() - self._received_ms) / 1000

    @property
    def time_to_live_s(self) -> float | None:
        expiration = self.message.properties.expiration
        return int(expiration) / 1000 if expiration else None

    def hold(self) -> None:
        self._is_held = self.was_delivered = True

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._consumer.released()

    def ack(self) -> None:
        self.settlements.ack(self.tag)
        self._consumer.settled(self)

    def nack(self, *, requeue: bool) -> None:
        if requeue:
            self._consumer.requeue(self)
        else:
            self.settlements.drop(self.tag)
            self._consumer.settled(self)

    def expire(self, original: Message) -> None:
        """Drops it: RabbitMQ dead-letters it as it is, with the reason `rejected`."""
        self.nack(requeue=False)
