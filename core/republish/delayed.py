"""Publishes delayed messages that are due, by the current bindings of their delayed exchange.

A released message keeps its exchange, keys, properties and headers; `x-delay` is negated, so that
it is not delayed again. An unroutable one goes to the alternate exchange, else it is dropped, as
in RabbitMQ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..message.batch import Batch, split_envelope
from ..message.model import MessageHeaders
from ..queue.delay import DelayQueue
from ..queue.queue import Queue
from ..wire import properties as wire
from ..wire.delay import has_waited
from .copies import Copy

if TYPE_CHECKING:
    from ..broker import Broker


class DelayedRelease:
    """The released messages of one delay queue."""

    __slots__ = ("_broker", "_queue")

    def __init__(self, broker: Broker, queue: Queue) -> None:
        assert isinstance(queue, DelayQueue)
        self._broker = broker
        self._queue = queue

    def copy(self, batch: Batch, index: int) -> Copy | None:
        """Returns the message to publish; None if its exchange was deleted or it has no queue."""
        vhost = self._broker.vhosts.get(self._queue.vhost)
        exchange = None if vhost is None else vhost.exchanges.get(self._queue.exchange)
        if vhost is None or exchange is None or self._queue.deleted:
            return None
        envelope = batch.envelope(index)
        properties, headers = has_waited(batch.properties(index))
        copies = headers.get("CC")
        keys = [split_envelope(envelope)[1], *batch.bcc_keys]
        keys += [key for key in copies if isinstance(key, str)] if isinstance(copies, list) else []
        seen = MessageHeaders(headers, properties)
        route = vhost.route(exchange, keys, seen, watched=False)
        queues = tuple(target for target in route.queues if isinstance(target, Queue))
        if not queues:
            return None
        old = batch.attributes
        attributes = wire.intern_attributes(old.persistent, old.priority, old.expiration, False)
        return Copy(envelope, properties, batch.body(index), attributes, batch.bcc_keys, queues)
