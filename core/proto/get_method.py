"""The handler of basic.get (AMQP 0-9-1 1.8.3.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import commands

from ..message.queue_entry import MessageRange
from ..queue.queue import Queue
from ..wire.deliver import content_frames
from ..wire.method_ids import BASIC_GET_EMPTY, BASIC_GET_OK
from .queue_methods import queue_name

if TYPE_CHECKING:
    from .channel import Channel


def get(channel: Channel, method: commands.Basic.Get) -> None:
    vhost = channel.vhost
    name = queue_name(channel, method.queue)
    channel.user.require(vhost.name, "read", "queue", name)
    queue = vhost.queue(name, channel.connection)
    queue.check_get()
    queue.note_use()
    if queue.is_paused:
        _send_empty(channel, queue)
        return
    channel.broker.dispatch_now(queue)
    waiting = _Get(channel, queue, method.no_ack)
    queue.when_head_ready(waiting.run)
    channel.connection.pending.awaits_reply = not waiting.is_over


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
                queue.when_head_ready(self.run)
                return
            else:
                # Also if the message has expired while it was read.
                _send_empty(channel, queue)
        self.is_over = True
        channel.connection.pending.replied()


def _send_empty(channel: Channel, queue: Queue) -> None:
    channel.send(BASIC_GET_EMPTY, b"\x00")
    channel.broker.statistics.got_nothing(queue, channel)


def _send_get_ok(channel: Channel, queue: Queue, messages: MessageRange, no_ack: bool) -> None:
    rewritten = queue.with_headers(messages)
    batch, index = rewritten.entry.batch, rewritten.entry.index(rewritten.low)
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
    channel.broker.statistics.got(queue, channel, no_ack, messages.redelivered)
    if no_ack:
        queue.settle(messages)
    else:
        deliveries = channel.deliveries
        deliveries.unacked.add(tag, None, queue, messages)
        deliveries.note_source(queue, channel.consumers.values())
        deliveries.got_count += 1
