"""Consumers in this process that take messages many at a time and acknowledge none."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING

from ..message.model import Numbered
from ..message.queue_entry import MessageRange
from ..queue.consumer import Consumer
from .reader import MessageReader

if TYPE_CHECKING:
    from ..broker import Broker
    from ..queue.queue import Queue

_tags = count(1)

logger = logging.getLogger(__name__)


class BulkSession:
    """A consumer whose messages leave their queue when `on_messages` gets them.

    `on_cancel` is called when the queue is deleted, and with the error that `on_messages` raised.
    """

    prefetch = 0
    unacked_count = 0

    def __init__(
        self,
        broker: Broker,
        queue: Queue,
        on_messages: Callable[[Sequence[Numbered]], None],
        on_cancel: Callable[[Exception | None], None],
    ) -> None:
        self._broker = broker
        self._on_messages = on_messages
        self._on_cancel = on_cancel
        self._reader = MessageReader()
        self.writable = True
        """False while paused, and once cancelled."""
        self._cancelled = False
        self._consumer = Consumer(f"amq.ctag-bulk-{next(_tags)}", queue, self, no_ack=True)
        queue.check_consumer(self._consumer)
        queue.add_consumer(self._consumer)
        broker.on_work()

    def deliver(
        self, consumer: Consumer, messages: MessageRange, rewritten: MessageRange | None = None
    ) -> None:
        found = self._reader.read_all(messages, rewritten or messages)
        self._broker.statistics.delivered(
            consumer.queue, None, len(found), True, messages.redelivered
        )
        consumer.queue.settle(messages)
        try:
            self._on_messages(found)
        except Exception as error:
            # Others that consume the queue go on, and so does this turn of the broker.
            logger.exception("a reader of queue '%s' failed and was cancelled", consumer.queue.name)
            self.end()
            self._on_cancel(error)

    def cancelled(self, consumer: Consumer) -> None:
        if not self._cancelled:
            self._cancelled = True
            self.writable = False
            self._on_cancel(None)

    def pause(self) -> None:
        """Leaves further messages in the queue."""
        self.writable = False

    def resume(self) -> None:
        if not (self._cancelled or self.writable):
            self.writable = True
            self._broker.tick()
            self._consumer.reopen()
            self._broker.on_work()

    def end(self) -> None:
        """Ends the consumer; an auto-delete queue goes with it."""
        self._cancelled = True
        self.writable = False
        self._broker.tick()
        self._consumer.queue.remove_consumer(self._consumer)
        self._broker.on_work()
