"""An AMQP channel: its consumers, unacked deliveries, confirms, transaction and closing.

A channel error closes the channel and nothing else (AMQP 0-9-1 1.5). Its unacked messages are
requeued at once; until close-ok it discards everything but close and close-ok.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from ..errors import ChannelError, ConnectionFault, precondition_failed
from ..message.batch import MessageRange
from ..queue.consumer import Consumer
from ..queue.queue import Queue
from ..queue.unacked import DeliveryRange, Detached, Unacked
from ..slices import for_each
from ..wire.deliver import DeliverFramer, content_frames
from ..wire.frames import method_frame, short_string
from ..wire.method_ids import BASIC_CANCEL, BASIC_NACK, BASIC_PUBLISH, BASIC_RETURN
from . import sliced_settlement
from .commit import Settlement, acknowledge, reject, requeue_failed, requeue_returned
from .confirms import Confirms
from .content import Content
from .replies import Replies
from .transaction import Transaction

if TYPE_CHECKING:
    from ..auth import User
    from ..broker import Broker
    from ..vhost import VirtualHost
    from .connection import Connection
    from .consumer_timeout import Marks


SOURCES_MIN = 64
"""Up to so many queues `sources` is not cleaned up."""


class ChannelConsumer(Consumer):
    """A consumer whose deliveries are framed for its channel."""

    __slots__ = ("framer",)

    framer: DeliverFramer


class Channel:
    """Channel `number` of a connection; the session of its consumers."""

    __slots__ = (
        "_sources_max", "answers_wait", "confirms", "connection", "consumers", "content",
        "default_prefetch",
        "flow_stopped", "got_count", "last_queue", "marks", "next_tag", "number", "open",
        "prefetch", "replies", "reply_queue", "sources", "transaction", "unacked",
    )  # fmt: skip

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection = connection
        self.number = number
        self.open = True
        self.next_tag = 1
        self.prefetch = 0
        self.default_prefetch = 0
        self.flow_stopped = False
        self.answers_wait = False
        """Replies wait behind a tx.commit that waits for the disk; deliveries wait with them."""
        self.last_queue = ""
        self.content: Content | None = None
        self.confirms: Confirms | None = None
        self.transaction: Transaction | None = None
        self.replies: Replies | None = None
        """The replies that wait; None before the first that had to."""
        self.consumers: dict[str, ChannelConsumer] = {}
        self.reply_queue: Queue | None = None
        self.unacked = Unacked()
        self.sources: dict[Queue, None] = {}
        """The queues of its unacked messages; may hold others too (see `note_source`)."""
        self._sources_max = SOURCES_MIN
        self.got_count = 0
        """Unacked messages from basic.get, which no prefetch limits."""
        self.marks: Marks | None = None
        """Delivery times of the unacked, for the consumer timeout; None before the first check."""

    @property
    def broker(self) -> Broker:
        return self.connection.broker

    @property
    def vhost(self) -> VirtualHost:
        return self.connection.vhost

    @property
    def user(self) -> User:
        return self.connection.user

    @property
    def confirming(self) -> bool:
        return self.confirms is not None

    @property
    def reply_name(self) -> str | None:
        return None if self.reply_queue is None else self.reply_queue.name

    def select_confirms(self) -> None:
        """Switches to confirm mode: publishes are numbered from 1. Repeats change nothing.

        Raises:
            ChannelError: 406 on a channel with transactions.
        """
        if self.transaction is not None:
            raise precondition_failed("cannot switch from tx to confirm mode")
        if self.confirms is None:
            self.confirms = Confirms()
            self.connection.forget_targets()

    def select_transactions(self) -> None:
        """Switches to tx mode: publishes and acks wait for tx.commit. Repeats change nothing.

        Raises:
            ChannelError: 406 on a channel with confirms.
        """
        if self.confirms is not None:
            raise precondition_failed("cannot switch from confirm to tx mode")
        if self.transaction is None:
            self.transaction = Transaction(self)
            self.connection.forget_targets()

    def send(self, method: int, arguments: bytes = b"") -> None:
        self.write(method_frame(self.number, method, arguments))

    def write(self, data: bytes | bytearray) -> None:
        """Sends frames in order, behind any reply that still waits."""
        if self.replies is None or not self.replies.hold(data):
            self.connection.write(data)

    def promise(self, method: int, arguments: bytes = b"") -> Callable[[], None]:
        """Reserves the place of a reply; it is sent when the returned function is called, and
        later replies wait for it."""
        if self.replies is None:
            self.replies = Replies(self)
        return self.replies.promise(method_frame(self.number, method, arguments))

    # -- as a session

    @property
    def unacked_count(self) -> int:
        transaction = self.transaction
        return (
            self.unacked.count
            - self.got_count
            + (0 if transaction is None else transaction.settled)
        )

    @property
    def writable(self) -> bool:
        return self.connection.writable and not self.flow_stopped and not self.answers_wait

    def deliver(
        self, consumer: Consumer, messages: MessageRange, shown: MessageRange | None = None
    ) -> None:
        assert isinstance(consumer, ChannelConsumer)
        tag = self.next_tag
        count = messages.high - messages.low
        self.connection.write(consumer.framer.frames(shown or messages, tag))
        self.next_tag = tag + count
        self.broker.counters.delivered += count
        if consumer.no_ack:
            consumer.queue.settle(messages)
        else:
            consumer.unacked_count += count
            self.unacked.add(tag, consumer, consumer.queue, messages)
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
        """Lets all consumers take messages again after output, prefetch or flow allows it."""
        for consumer in self.consumers.values():
            consumer.reopen()

    # -- acknowledgements (AMQP 0-9-1 1.8.3.13-14)

    def take(self, first: int, last: int, multiple: bool) -> list[DeliveryRange]:
        """Removes deliveries from the unacked. Raises `ChannelError` 406 for an unknown tag."""
        deliveries: list[DeliveryRange] | None
        if not multiple:
            deliveries = self.unacked.take(first, last)
        elif last == 0:
            deliveries = self.unacked.take_all()
        else:
            deliveries = self.unacked.take_up_to(last)
        if deliveries is None:
            raise precondition_failed(f"unknown delivery tag {last}")
        return deliveries

    def _detach(self, last: int) -> Detached:
        """As `take` up to `last`, for very many; 0 means all."""
        if not last:
            return self.unacked.detach_all()
        detached = self.unacked.detach_up_to(last)
        if detached is None:
            raise precondition_failed(f"unknown delivery tag {last}")
        return detached

    def acknowledge(self, first: int, last: int, multiple: bool) -> None:
        """Acks tags `first` to `last`, or all up to `last`."""
        if multiple and self.unacked.is_long:
            many = self._detach(last)
            if self.transaction is not None:
                self.transaction.settle_unseen(acknowledge, many)
            else:
                self.broker.slices.start(sliced_settlement.settle(self, many, acknowledge))
            return
        deliveries = self.take(first, last, multiple)
        if self.transaction is not None:
            self.transaction.settle(acknowledge, deliveries)
            return
        for delivery in deliveries:
            delivery.queue.settle(delivery.messages)
        self.credit_back(deliveries)

    def refuse(self, tag: int, multiple: bool, requeue: bool, *, failed: bool = False) -> None:
        """Handles nack and reject: requeues, or dead-letters; `failed` counts the delivery."""
        settlement = (requeue_failed if failed else requeue_returned) if requeue else reject
        if multiple and self.unacked.is_long:
            many = self._detach(tag)
            if self.transaction is not None:
                self.transaction.settle_unseen(settlement, many)
                self.connection.wait_for(self._weigh(self.transaction, settlement, many))
                return
            work = (
                sliced_settlement.requeue(self, many, failed=failed)
                if requeue
                else sliced_settlement.settle(self, many, reject)
            )
            self.broker.slices.start(work)
            return
        deliveries = self.take(tag, tag, multiple)
        if self.transaction is not None:
            self.transaction.settle(settlement, deliveries)
            return
        for delivery in deliveries:
            settlement(delivery)
        self.credit_back(deliveries)

    def _weigh(
        self, transaction: Transaction, settlement: Settlement, many: Detached
    ) -> Iterator[None]:
        try:
            yield from transaction.weigh(settlement, many)
        except ChannelError as error:
            self.connection.fail_channel(self.number, error, BASIC_NACK)

    def recover(self, requeue: bool) -> None:
        """Requeues all unacked, or redelivers them to their consumers (1.8.3.16)."""
        everything = self.unacked.detach_all()
        if requeue:
            work = sliced_settlement.requeue(self, everything, failed=False)
        else:
            work = sliced_settlement.send_again(self, everything)
        self.broker.slices.start(work)

    def redeliver(self, delivery: DeliveryRange) -> bool:
        """Delivers again to the same consumer; False if it is gone or can't take it now."""
        self._uncount([delivery])
        consumer, messages = delivery.consumer, delivery.messages
        if consumer is None or consumer.tag not in self.consumers:
            return False
        if not messages.entry.batch.resident or not self.writable:
            return False
        again = MessageRange(messages.entry, messages.low, messages.high, True)
        self.deliver(consumer, again, delivery.queue.with_headers(again))
        return True

    def credit_back(self, deliveries: Collection[DeliveryRange]) -> None:
        self._uncount(deliveries)
        if self.prefetch:
            self.reopen_consumers()
            return
        for delivery in deliveries:
            consumer = delivery.consumer
            if consumer is not None and not consumer.open:
                consumer.reopen()

    def _uncount(self, deliveries: Iterable[DeliveryRange]) -> None:
        for delivery in deliveries:
            count = delivery.messages.high - delivery.messages.low
            if delivery.consumer is None:
                self.got_count -= count
            else:
                delivery.consumer.unacked_count -= count

    # -- confirms

    def published(self, count: int, commit: int) -> None:
        """Counts accepted publishes; their confirms are sent when the commit is durable."""
        if self.confirms is not None:
            self.confirms.add(count, commit)
            self.connection.confirm_later(self)

    def refused(self) -> None:
        if self.confirms is not None:
            self.confirms.add_refused()
            self.connection.confirm_later(self)

    def send_return(self, code: int, text: str, returned: MessageRange) -> None:
        """Sends an unroutable message back, whole (AMQP 0-9-1 1.8.3.9)."""
        if not self.open:
            return  # The transaction was committed, and then its channel closed.
        batch = returned.entry.batch
        arguments = code.to_bytes(2, "big") + short_string(text) + batch.envelope(0)
        # In a transaction it follows its commit-ok; else nothing overtakes it, such as a confirm.
        write = self.connection.write if self.transaction is None else self.write
        write(method_frame(self.number, BASIC_RETURN, arguments))
        write(content_frames(batch, 0, self.number, self.connection.frame_max))

    # -- the end

    def release(self) -> None:
        """Cancels the consumers, requeues the unacked messages, rolls back."""
        self.open = False
        transaction, self.transaction = self.transaction, None
        if self.replies is not None:
            self.replies.end()
            self.replies = None
        self.end_content()
        consumers, self.consumers = self.consumers, {}
        # All are removed before anything is requeued: a message must not go to a consumer of the
        # closing channel.
        for consumer in consumers.values():
            consumer.queue.detach_consumer(consumer)
        if transaction is not None:
            transaction.end()
        if self.unacked.count:
            self.requeue_all()
        leave = for_each(
            consumers.values(), lambda consumer: consumer.queue.consumer_removed(consumer)
        )
        self.broker.slices.start(leave)
        if self.reply_queue is not None:
            self.vhost.drop_reply_queue(self.reply_queue)
            self.reply_queue = None

    def requeue_all(self) -> None:
        """Requeues all deliveries that are unacked outside of a transaction."""
        deliveries = self.unacked.detach_all()
        self.broker.slices.start(sliced_settlement.requeue(self, deliveries, failed=True))

    def add_consumer(self, consumer: ChannelConsumer) -> None:
        consumer.framer = DeliverFramer(self.number, consumer.tag, self.connection.frame_max)
        self.consumers[consumer.tag] = consumer
        self.note_source(consumer.queue)
        consumer.queue.add_consumer(consumer)

    def note_source(self, queue: Queue) -> None:
        """Notes that unacked messages may belong to this queue."""
        sources = self.sources
        sources[queue] = None
        if len(sources) > self._sources_max:
            consumed = {consumer.queue: None for consumer in self.consumers.values()}
            unacked = {source: None for _, _, source in self.unacked.outstanding()}
            self.sources = {queue: None} | consumed | unacked
            self._sources_max = max(SOURCES_MIN, 2 * len(self.sources))

    def cancel(self, tag: str) -> None:
        """Removes a consumer; an unknown tag is no error, unacked deliveries stay valid."""
        consumer = self.consumers.pop(tag, None)
        if consumer is not None:
            if self.reply_queue is consumer.queue:
                self.reply_queue = None
                self.vhost.drop_reply_queue(consumer.queue)
            else:
                consumer.queue.remove_consumer(consumer)

    def begin_content(self, method: bytes) -> None:
        """Begins to collect the content of a publish that the user may send."""
        part = self.broker.alarms.unfinished.begin(self.user.name, self._give_content_up)
        self.content = Content(method, part, self.broker.now_ms)
        self.connection.contents[self] = self.content

    def end_content(self) -> None:
        if self.content is not None:
            self.content = None
            self.connection.end_content(self)

    def _give_content_up(self, reason: str) -> None:
        self.connection.fail_channel(self.number, ChannelError(311, reason), BASIC_PUBLISH)

    def expect_no_content(self) -> None:
        """Raises `ConnectionFault` 505 if a message's content is incomplete (AMQP 0-9-1 4.2.6)."""
        if self.content is not None:
            raise ConnectionFault(505, "expected a content frame, got a method")
