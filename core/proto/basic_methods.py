"""Handlers of class basic (AMQP 0-9-1 1.8) except publish and deliver, and of class confirm."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

from pamqp import commands

from ..errors import ConnectionFault, access_refused, precondition_failed
from ..message.batch import MessageRange
from ..message.equivalence import resource, shown, type_name
from ..message.model import Table
from ..queue.arguments import MAX_TTL_MS
from ..queue.queue import Queue
from ..vhost import REPLY_PREFIX, REPLY_TO
from ..wire.deliver import content_frames
from ..wire.frames import short_string
from ..wire.method_ids import (
    BASIC_CANCEL_OK,
    BASIC_CONSUME_OK,
    BASIC_GET_EMPTY,
    BASIC_GET_OK,
    BASIC_QOS_OK,
    BASIC_RECOVER_OK,
    CONFIRM_SELECT_OK,
)
from .channel import ChannelConsumer
from .queue_methods import queue_name

if TYPE_CHECKING:
    from .channel import Channel


def qos(channel: Channel, method: commands.Basic.Qos) -> None:
    """Sets the prefetch of later consumers, or (global) of the channel; 0 is no limit."""
    if method.prefetch_size:
        raise ConnectionFault(540, f"prefetch_size {method.prefetch_size} (only 0 is supported)")
    if method.global_:
        channel.prefetch = method.prefetch_count
        channel.reopen_consumers()
    else:
        channel.default_prefetch = method.prefetch_count
    channel.send(BASIC_QOS_OK)


def consume(channel: Channel, method: commands.Basic.Consume) -> None:
    tag = method.consumer_tag or _make_tag()
    if tag in channel.consumers:
        raise ConnectionFault(530, f"attempt to reuse consumer tag '{tag}'")
    if method.queue == REPLY_TO:
        _consume_replies(channel, tag, method)
        return
    vhost = channel.vhost
    name = queue_name(channel, method.queue)
    channel.connection.user.require(vhost.name, "read", "queue", name)
    queue = vhost.queue(name, channel.connection)
    if queue.exclusive_consumer is not None or (method.exclusive and queue.consumer_count):
        raise access_refused(f"{resource('queue', name, vhost.name)} in exclusive use")
    if method.exclusive and queue.rules is not None and queue.rules.single_active:
        # An exclusive consumer beside single active consumer could never be replaced.
        raise access_refused(f"{resource('queue', name, vhost.name)} in exclusive use")
    if channel.prefetch and queue.kind == "quorum":
        raise ConnectionFault(
            540, f"{resource('queue', name, vhost.name)} does not support global qos"
        )
    arguments: Table = method.arguments or {}
    consumer = ChannelConsumer(
        tag,
        queue,
        channel,
        no_ack=method.no_ack,
        exclusive=method.exclusive,
        priority=read_priority(arguments),
        prefetch=channel.default_prefetch,
        arguments=arguments,
        timeout_ms=read_timeout(arguments),
    )
    channel.broker.note_timeout(consumer.timeout_ms)
    queue.check_consumer(consumer)
    _start(channel, consumer, method.nowait)


def _start(channel: Channel, consumer: ChannelConsumer, nowait: bool) -> None:
    """Sends consume-ok, then adds the consumer: the OK precedes the first delivery."""
    if not nowait:
        channel.send(BASIC_CONSUME_OK, short_string(consumer.tag))
    channel.add_consumer(consumer)


def _consume_replies(channel: Channel, tag: str, method: commands.Basic.Consume) -> None:
    """Adds a direct reply-to consumer with a private queue, named in the channel's requests."""
    if not method.no_ack:
        raise precondition_failed("reply consumer cannot acknowledge")
    if channel.reply_queue is not None:
        raise precondition_failed("reply consumer already set")
    name = REPLY_PREFIX + urlsafe_b64encode(secrets.token_bytes(18)).decode()
    channel.reply_queue = channel.vhost.make_reply_queue(name)
    _start(channel, ChannelConsumer(tag, channel.reply_queue, channel, no_ack=True), method.nowait)


def read_timeout(arguments: Table) -> int | None:
    """Returns a consumer's `x-consumer-timeout` in milliseconds. Raises `ChannelError` 406."""
    value = arguments.get("x-consumer-timeout")
    if value is None and "x-consumer-timeout" not in arguments:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_TTL_MS:
        raise precondition_failed(
            f"invalid x-consumer-timeout '{shown(value)}': milliseconds from 0 (none) to "
            f"{MAX_TTL_MS} are needed"
        )
    return value


def read_priority(arguments: Table) -> int:
    """A consumer's `x-priority`, 0 if there is none. Raises `ChannelError` 406 for no integer."""
    value = arguments.get("x-priority", 0)
    if isinstance(value, bool) or not isinstance(value, int):
        raise precondition_failed(
            f"invalid arg 'x-priority' for consumer: {type_name(value)} given, an integer is needed"
        )
    return value


def _make_tag() -> str:
    return "amq.ctag-" + urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()


def cancel(channel: Channel, method: commands.Basic.Cancel) -> None:
    # Deliveries of this turn precede the OK, none follow it.
    tag = method.consumer_tag or ""
    consumer = channel.consumers.get(tag)
    if consumer is not None:
        channel.broker.settle(consumer.queue)
    channel.cancel(tag)
    if not method.nowait:
        channel.send(BASIC_CANCEL_OK, short_string(tag))


def cancel_ok(channel: Channel, method: commands.Basic.CancelOk) -> None:
    """Ignores a client's reply to the broker's cancel."""


def get(channel: Channel, method: commands.Basic.Get) -> None:
    vhost = channel.vhost
    name = queue_name(channel, method.queue)
    channel.connection.user.require(vhost.name, "read", "queue", name)
    queue = vhost.queue(name, channel.connection)
    queue.check_get()
    queue.note_use()
    channel.broker.settle(queue)
    waiting = _Get(channel, queue, method.no_ack)
    queue.get(waiting.run)
    channel.connection.awaits_answer = not waiting.is_over


class _Get:
    """A basic.get that may have to wait: for the store to log its redelivered mark, or to read
    its message."""

    __slots__ = ("_channel", "_no_ack", "_queue", "is_over")

    def __init__(self, channel: Channel, queue: Queue, no_ack: bool) -> None:
        self._channel = channel
        self._queue = queue
        self._no_ack = no_ack
        self.is_over = False

    def run(self) -> None:
        channel, queue = self._channel, self._queue
        if channel.open:
            messages = queue.dequeue(1)
            if messages is not None:
                _send_get_ok(channel, queue, messages, self._no_ack)
            elif queue.ready_count:
                queue.get(self.run)
                return
            else:
                # Also if the message has expired while it was read.
                channel.send(BASIC_GET_EMPTY, b"\x00")
        self.is_over = True
        channel.connection.answered()


def _send_get_ok(channel: Channel, queue: Queue, messages: MessageRange, no_ack: bool) -> None:
    shown = queue.with_headers(messages)
    batch, index = shown.entry.batch, shown.entry.index(shown.low)
    tag = channel.next_tag
    channel.next_tag = tag + 1
    channel.send(
        BASIC_GET_OK,
        b"".join(
            (
                tag.to_bytes(8, "big"),
                bytes((messages.redelivered,)),
                batch.envelope(index),
                queue.ready_count.to_bytes(4, "big"),
            )
        ),
    )
    channel.write(content_frames(batch, index, channel.number, channel.connection.frame_max))
    channel.broker.counters.delivered += 1
    if no_ack:
        queue.settle(messages)
    else:
        channel.unacked.add(tag, None, queue, messages)
        channel.note_source(queue)
        channel.got_count += 1


def ack(channel: Channel, method: commands.Basic.Ack) -> None:
    channel.acknowledge(method.delivery_tag, method.delivery_tag, method.multiple)


def nack(channel: Channel, method: commands.Basic.Nack) -> None:
    channel.refuse(method.delivery_tag, method.multiple, method.requeue)


def reject(channel: Channel, method: commands.Basic.Reject) -> None:
    channel.refuse(method.delivery_tag or 0, False, method.requeue, failed=True)


def recover(channel: Channel, method: commands.Basic.Recover) -> None:
    channel.send(BASIC_RECOVER_OK)
    channel.recover(method.requeue)


def recover_async(channel: Channel, method: commands.Basic.RecoverAsync) -> None:
    channel.recover(method.requeue)


def confirm_select(channel: Channel, method: commands.Confirm.Select) -> None:
    channel.select_confirms()
    if not method.nowait:
        channel.send(CONFIRM_SELECT_OK)
