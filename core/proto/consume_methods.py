"""Handlers of basic.qos, consume and cancel (AMQP 0-9-1 1.8.3.1-6)."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

from pamqp import commands

from ..errors import ConnectionFault, access_refused, precondition_failed
from ..message.equivalence import resource
from ..message.model import Table
from ..queue.consumer_arguments import read_priority, read_timeout
from ..vhost import REPLY_PREFIX, REPLY_TO
from ..wire.frames import short_string
from ..wire.method_ids import (
    BASIC_CANCEL_OK,
    BASIC_CONSUME_OK,
    BASIC_QOS_OK,
)
from .channel_consumer import ChannelConsumer
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
    channel.user.require(vhost.name, "read", "queue", name)
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


def _make_tag() -> str:
    return "amq.ctag-" + urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()


def cancel(channel: Channel, method: commands.Basic.Cancel) -> None:
    # Deliveries of this turn precede the OK, none follow it.
    tag = method.consumer_tag or ""
    consumer = channel.consumers.get(tag)
    if consumer is not None:
        channel.broker.dispatch_now(consumer.queue)
    channel.cancel(tag)
    if not method.nowait:
        channel.send(BASIC_CANCEL_OK, short_string(tag))


def cancel_ok(channel: Channel, method: commands.Basic.CancelOk) -> None:
    """Ignores a client's reply to the broker's cancel."""
