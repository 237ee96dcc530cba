"""Publishes delayed messages that are due, by the current bindings of their delayed exchange.

A released message keeps its exchange, keys, properties and headers; `x-delay` is negated, so that
it is not delayed again. An unroutable one goes to the alternate exchange, else it is dropped, as
in RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..message.batch import Batch
from ..message.envelope import split_envelope
from ..message.model import MessageHeaders, copy_keys
from ..queue.delay import DelayQueue
from ..queue.queue import Queue
from ..wire import properties as wire
from ..wire.delay import negate_delay
from .republished_message import RepublishedMessage

if TYPE_CHECKING:
    from ..vhost import VirtualHost


class DelayedRelease:
    """Makes the messages to publish of those that one delay queue releases."""

    __slots__ = ("_queue", "_vhosts")

    def __init__(self, vhosts: Mapping[str, VirtualHost], queue: Queue) -> None:
        assert isinstance(queue, DelayQueue)
        self._vhosts = vhosts
        self._queue = queue

    def copy(self, batch: Batch, index: int) -> RepublishedMessage | None:
        """Returns the message to publish; None if its exchange was deleted or it has no queue."""
        vhost = self._vhosts.get(self._queue.vhost)
        exchange = None if vhost is None else vhost.exchanges.get(self._queue.exchange)
        if vhost is None or exchange is None or self._queue.deleted:
            return None
        envelope = batch.envelope(index)
        properties, headers = negate_delay(batch.properties(index))
        keys = [split_envelope(envelope)[1], *batch.bcc_keys, *copy_keys(headers)]
        seen = MessageHeaders(headers, properties)
        route = vhost.route(exchange, keys, seen, watched=False)
        queues = tuple(target for target in route.queues if isinstance(target, Queue))
        if not queues:
            return None
        old = batch.attributes
        attributes = wire.intern_attributes(old.persistent, old.priority, old.expiration, False)
        return RepublishedMessage(
            envelope, properties, batch.body(index), attributes, queues, batch.bcc_keys
        )
