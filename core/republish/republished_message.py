"""Messages that the broker republishes: new messages that are not checked again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..publish.routed import RoutedMessage
from ..wire.properties import MessageAttributes

if TYPE_CHECKING:
    from ..context import BrokerContext
    from ..queue.queue import Queue


class RepublishedMessage(RoutedMessage):
    """A dead letter or a delayed message that is due, without confirm and return.

    One that `is_accepted` is not refused by queues that would refuse a publish. `route`, for one
    that may be published later, returns the queues that it is routed to then.
    """

    __slots__ = ("is_accepted", "route")

    def __init__(
        self,
        envelope: bytes,
        properties: bytes,
        body: bytes,
        attributes: MessageAttributes,
        queues: tuple[Queue, ...],
        bcc_keys: tuple[str, ...] = (),
        *,
        route: Callable[[], tuple[Queue, ...]] | None = None,
        is_accepted: bool = False,
    ) -> None:
        super().__init__(envelope, properties, body, attributes, queues, bcc_keys)
        self.is_accepted = is_accepted
        self.route = route

    def route_again(self) -> tuple[Queue, ...]:
        return self.queues if self.route is None else self.route()

    def existing(self, queues: tuple[Queue, ...]) -> tuple[Queue, ...]:
        return tuple(queue for queue in queues if not queue.deleted)

    def like(self, envelope: bytes, properties: bytes, body: bytes) -> RepublishedMessage:
        return RepublishedMessage(
            envelope, properties, body, self.attributes, self.queues, self.bcc_keys,
            route=self.route, is_accepted=self.is_accepted,
        )  # fmt: skip

    def publish(self, broker: BrokerContext) -> tuple[bool, int]:
        return broker.publish_checked(
            self.as_batch(broker), self.queues, is_accepted=self.is_accepted
        )
