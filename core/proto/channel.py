"""An AMQP channel: its consumers, what it has delivered, and its publishes.

A channel error closes the channel and nothing else (AMQP 0-9-1 1.5). Its unacked messages are
requeued at once; until close-ok it discards everything but close and close-ok.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ..message.queue_entry import MessageRange
from ..queue.consumer import Consumer
from ..queue.queue import Queue
from ..queue.unacked import DeliveryRange
from ..slices import for_each
from ..wire.deliver import DeliverFramer, content_frames
from ..wire.frames import method_frame, short_string
from ..wire.method_ids import BASIC_CANCEL, BASIC_RETURN
from .channel_consumer import ChannelConsumer
from .confirms import Confirms
from .content import Content
from .context import ChannelContext
from .deliveries import Deliveries
from .replies import Replies
from .sliced_settlement import requeue_all
from .transaction import Transaction

if TYPE_CHECKING:
    from ..auth import User
    from ..statistics.counters import MessageCounters
    from ..vhost import VirtualHost
    from .context import ConnectionContext


class Channel(ChannelContext):
    """Channel `number` of a connection; owner of its consumers and publisher of its messages."""

    __slots__ = (
        "default_prefetch", "flow_stopped", "last_queue", "prefetch", "replies", "reply_queue",
        "transaction",
    )  # fmt: skip

    def __init__(self, connection: ConnectionContext, number: int) -> None:
        self.connection = connection
        self.broker = connection.broker
        self.output = connection.output
        self.number = number
        self.open = True
        self.next_tag = 1
        self.prefetch = 0
        self.default_prefetch = 0
        self.flow_stopped = False
        self.answers_wait = False
        self.last_queue = ""
        self.content: Content | None = None
        self.confirms: Confirms | None = None
        self.transaction: Transaction | None = None
        self.replies: Replies | None = None
        """The replies that wait; None before the first that had to."""
        self.consumers: dict[str, ChannelConsumer] = {}
        self.reply_queue: Queue | None = None
        self.deliveries = Deliveries()
        self.counters: MessageCounters | None = None

    @property
    def counted(self) -> Channel:
        return self

    @property
    def vhost(self) -> VirtualHost:
        return self.connection.vhost

    @property
    def user(self) -> User:
        return self.connection.user

    @property
    def author(self) -> User:
        return self.connection.user

    @property
    def confirming(self) -> bool:
        return self.confirms is not None

    @property
    def reply_name(self) -> str | None:
        return None if self.reply_queue is None else self.reply_queue.name

    def send(self, method: int, arguments: bytes = b"") -> None:
        self.write(method_frame(self.number, method, arguments))

    def write(self, data: bytes | bytearray) -> None:
        """Sends frames in order, behind any reply that still waits."""
        if self.replies is None or not self.replies.enqueue(data):
            self.output.write(data)

    def promise(self, method: int, arguments: bytes = b"") -> Callable[[], None]:
        """Reserves the place of a reply; it is sent when the returned function is called, and
        later replies wait for it."""
        return self.waiting_replies().promise(method_frame(self.number, method, arguments))

    def waiting_replies(self) -> Replies:
        """Returns the replies that wait, of which there may be none yet."""
        if self.replies is None:
            self.replies = Replies(self)
        return self.replies

    # -- as a session

    @property
    def unacked_count(self) -> int:
        """Deliveries to consumers that are unacknowledged, or acknowledged in a transaction."""
        transaction = self.transaction
        settled = 0 if transaction is None else transaction.settled
        return self.deliveries.unacked.count - self.deliveries.got_count + settled

    @property
    def writable(self) -> bool:
        return self.output.writable and not self.flow_stopped and not self.answers_wait

    def deliver(
        self, consumer: Consumer, messages: MessageRange, rewritten: MessageRange | None = None
    ) -> None:
        assert isinstance(consumer, ChannelConsumer)
        tag = self.next_tag
        count = messages.high - messages.low
        self.output.write(consumer.framer.frames(rewritten or messages, tag))
        self.next_tag = tag + count
        self.broker.statistics.delivered(
            consumer.queue, self, count, consumer.no_ack, messages.redelivered
        )
        if consumer.no_ack:
            consumer.queue.settle(messages)
        else:
            consumer.unacked_count += count
            self.deliveries.unacked.add(tag, consumer, consumer.queue, messages)
            if self.prefetch:
                # The channel's prefetch is shared round-robin: the served consumer goes last.
                self.consumers[consumer.tag] = self.consumers.pop(consumer.tag)

    def cancelled(self, consumer: Consumer) -> None:
        if self.consumers.get(consumer.tag) is not consumer:
            return  # The client cancelled first, and may have a new consumer of that tag.
        del self.consumers[consumer.tag]
        if self.connection.wants_cancel_notify:
            self.send(BASIC_CANCEL, short_string(consumer.tag) + b"\x01")

    def reopen_consumers(self) -> None:
        for consumer in self.consumers.values():
            consumer.reopen()

    def credit_back(self, settled: Collection[DeliveryRange]) -> None:
        self.deliveries.uncount(settled)
        if self.prefetch:
            self.reopen_consumers()
            return
        for delivery in settled:
            consumer = delivery.consumer
            if consumer is not None and not consumer.open:
                consumer.reopen()

    # -- as a publisher

    def published(self, count: int, commit: int) -> None:
        """Counts accepted publishes; their confirms are sent when the commit is durable."""
        if self.confirms is not None:
            self.confirms.add(count, commit)
            self.output.confirm_later(self)

    def refused(self) -> None:
        if self.confirms is not None:
            self.confirms.add_refused()
            self.output.confirm_later(self)

    def send_return(self, code: int, text: str, returned: MessageRange) -> None:
        """Sends an unroutable message back, whole (AMQP 0-9-1 1.8.3.9)."""
        if not self.open:
            return  # The transaction was committed, and then its channel closed.
        batch = returned.entry.batch
        arguments = code.to_bytes(2, "big") + short_string(text) + batch.envelope(0)
        # In a transaction it follows its commit-ok; else nothing overtakes it, such as a confirm.
        write = self.output.write if self.transaction is None else self.write
        write(method_frame(self.number, BASIC_RETURN, arguments))
        write(content_frames(batch, 0, self.number, self.connection.frame_max))

    # -- the end

    def release(self) -> None:
        """Cancels the consumers, requeues the unacked messages, rolls back."""
        self.open = False
        self.broker.statistics.churned().channel_closed += 1
        transaction, self.transaction = self.transaction, None
        if self.replies is not None:
            self.replies.end()
            self.replies = None
        self.connection.contents.end(self)
        consumers, self.consumers = self.consumers, {}
        # All are removed before anything is requeued: a message must not go to a consumer of the
        # closing channel.
        for consumer in consumers.values():
            consumer.queue.detach_consumer(consumer)
        if transaction is not None:
            transaction.end()
        if self.deliveries.unacked.count:
            requeue_all(self)
        leave = for_each(
            consumers.values(), lambda consumer: consumer.queue.consumer_removed(consumer)
        )
        self.broker.slices.start(leave)
        if self.reply_queue is not None:
            self.vhost.drop_reply_queue(self.reply_queue)
            self.reply_queue = None

    def add_consumer(self, consumer: ChannelConsumer) -> None:
        consumer.framer = DeliverFramer(self.number, consumer.tag, self.connection.frame_max)
        self.consumers[consumer.tag] = consumer
        self.deliveries.note_source(consumer.queue, self.consumers.values())
        consumer.queue.add_consumer(consumer)

    def cancel(self, tag: str) -> None:
        """Removes a consumer; an unknown tag is no error, unacked deliveries stay valid."""
        consumer = self.consumers.pop(tag, None)
        if consumer is not None:
            if self.reply_queue is consumer.queue:
                self.reply_queue = None
                self.vhost.drop_reply_queue(consumer.queue)
            else:
                consumer.queue.remove_consumer(consumer)
