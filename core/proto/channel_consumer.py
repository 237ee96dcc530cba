"""The consumers of AMQP channels."""

from __future__ import annotations

from ..queue.consumer import Consumer
from ..wire.deliver import DeliverFramer


class ChannelConsumer(Consumer):
    """A consumer whose deliveries are framed for its channel."""

    __slots__ = ("framer",)

    framer: DeliverFramer
