"""Messages that were checked and routed, those of clients and the broker's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..message.batch import SingleMessage
from ..wire.properties import MessageAttributes
from .offset_header import with_offset
from .shares import FRAMED_MAX_BYTES, takes_batch

if TYPE_CHECKING:
    from ..context import BrokerContext
    from ..queue.queue import Queue
    from ..route.exchange import Exchange


class RoutedMessage:
    """A message and its queues: a `RoutedPublish` of a client, or a `RepublishedMessage`."""

    __slots__ = ("attributes", "bcc_keys", "body", "envelope", "properties", "queues")

    def __init__(
        self,
        envelope: bytes,
        properties: bytes,
        body: bytes,
        attributes: MessageAttributes,
        queues: tuple[Queue, ...],
        bcc_keys: tuple[str, ...] = (),
    ) -> None:
        self.envelope = envelope
        self.properties = properties
        self.body = body
        self.attributes = attributes
        self.queues = queues
        self.bcc_keys = bcc_keys

    @property
    def fits_batch(self) -> bool:
        """Whether it can be published in a batch with others, now that it is checked and routed."""
        size = len(self.body) + len(self.properties)
        return size <= FRAMED_MAX_BYTES and not self.bcc_keys and self.takes_batch(self.queues)

    def takes_batch(self, queues: tuple[Queue, ...]) -> bool:
        """Whether these queues would take it in a batch."""
        return takes_batch(queues)

    def joins(self, first: RoutedMessage) -> bool:
        """Whether it can be in the batch of another message."""
        return self.attributes is first.attributes

    def existing(self, queues: tuple[Queue, ...]) -> tuple[Queue, ...]:
        """Returns the queues to use in place of these, of which some were deleted meanwhile."""
        raise NotImplementedError

    def route_again(self) -> tuple[Queue, ...]:
        """Returns the queues that it is routed to now."""
        raise NotImplementedError

    def update_queues(self) -> None:
        """Replaces queues that were deleted after it was routed.

        A message that a persistent exchange stores is routed again: a binding added since, which
        has replayed all before, must get it too.
        """
        if any(queue.deleted for queue in self.queues):
            self.queues = self.existing(self.queues)
        if any(queue.adds_offsets for queue in self.queues):
            self.queues = self.route_again()

    @property
    def exchange(self) -> Exchange | None:
        """The exchange that a client published it to; None for the default one, and for copies."""
        return None

    def count(self, count: int, routed: int, unrouted: int) -> None:
        """Counts publishes like this one, for statistics; copies that the broker makes are not
        counted."""

    def publish(self, broker: BrokerContext) -> tuple[bool, int]:
        """Publishes it alone; the result is that of `Broker.publish_checked`."""
        raise NotImplementedError

    def like(self, envelope: bytes, properties: bytes, body: bytes) -> RoutedMessage:
        """Returns another message with the same attributes and queues."""
        raise NotImplementedError

    def as_batch(self, broker: BrokerContext) -> SingleMessage:
        """Returns the message as a new batch."""
        return SingleMessage(
            self.envelope,
            with_offset(self.queues, self.properties),
            self.body,
            broker.store.reserve(1),
            self.attributes,
            broker.now_ms,
            self.bcc_keys,
        )
