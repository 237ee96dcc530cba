"""Class queue (AMQP 0-9-1 1.7): declare, bind, unbind, purge, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import commands

from ..errors import access_refused, not_found
from ..model import Table
from ..queue.queue import Queue
from ..vhost import REPLY_PREFIX, REPLY_TO
from ..wire.frames import short_string

if TYPE_CHECKING:
    from .channel import Channel


def declare(channel: Channel, method: commands.Queue.Declare) -> None:
    name = method.queue
    if name == REPLY_TO or name.startswith(REPLY_PREFIX):
        _declare_reply_queue(channel, method)
        return
    queue = _declare_passive(channel, method) if method.passive else _declare(channel, method)
    channel.broker.settle(queue)
    channel.last_queue = queue.name
    if not method.nowait:
        _declare_ok(channel, queue.name, queue.ready_count, queue.consumer_count)


def _declare(channel: Channel, method: commands.Queue.Declare) -> Queue:
    vhost, connection, name = channel.vhost, channel.connection, method.queue
    user = connection.user
    arguments: Table = method.arguments or {}
    if name.startswith("amq."):
        raise access_refused(f"queue name '{name}' contains reserved prefix 'amq.*'")
    if name:
        user.require(vhost.name, "configure", "queue", name)
    exchange = arguments.get("x-dead-letter-exchange")
    if isinstance(exchange, str) and name:
        user.require(vhost.name, "read", "queue", name)
        user.require(vhost.name, "write", "exchange", exchange)
    queue = vhost.declare_queue(
        name,
        durable=method.durable,
        exclusive=method.exclusive,
        auto_delete=method.auto_delete,
        arguments=arguments,
        owner=connection,
    )
    if queue.owner is connection:
        connection.exclusive_queues[queue] = None
    return queue


def _declare_passive(channel: Channel, method: commands.Queue.Declare) -> Queue:
    queue = channel.vhost.queue(queue_name(channel, method.queue), channel.connection)
    queue.used()
    return queue


def _declare_reply_queue(channel: Channel, method: commands.Queue.Declare) -> None:
    """Direct reply-to: a responder may ask whether the requester is still there."""
    if method.queue != REPLY_TO and method.queue not in channel.vhost.replies:
        raise not_found(f"no queue '{method.queue}' in vhost '{channel.vhost.name}'")
    if not method.nowait:
        _declare_ok(channel, method.queue, 0, 1)


def _declare_ok(channel: Channel, name: str, messages: int, consumers: int) -> None:
    counts = messages.to_bytes(4, "big") + consumers.to_bytes(4, "big")
    channel.send(50, 11, short_string(name) + counts)


def bind(channel: Channel, method: commands.Queue.Bind) -> None:
    vhost = channel.vhost
    key = method.routing_key or ""
    if not method.queue and not key:
        key = channel.last_queue
    queue = vhost.queue(_may_bind(channel, method.queue, method.exchange), channel.connection)
    vhost.bind(vhost.exchange(method.exchange), queue, key, method.arguments or {})
    if not method.nowait:
        channel.send(50, 21)


def unbind(channel: Channel, method: commands.Queue.Unbind) -> None:
    """What is not there is not bound, so a missing queue or exchange is no error."""
    vhost = channel.vhost
    key = method.routing_key or ""
    if not method.queue and not key:
        key = channel.last_queue
    name = _may_bind(channel, method.queue, method.exchange)
    exchange = vhost.exchanges.get(method.exchange)
    if exchange is not None and name in vhost.queues:
        queue = vhost.queue(name, channel.connection)
        vhost.unbind(exchange, queue, key, method.arguments or {})
    channel.send(50, 51)


def _may_bind(channel: Channel, name: str, exchange: str) -> str:
    """Gives the queue's name. Raises `ChannelError` 403."""
    vhost, user = channel.vhost, channel.connection.user
    name = queue_name(channel, name)
    vhost.refuse_default(exchange)
    user.require(vhost.name, "write", "queue", name)
    user.require(vhost.name, "read", "exchange", exchange)
    return name


def purge(channel: Channel, method: commands.Queue.Purge) -> None:
    name = queue_name(channel, method.queue)
    channel.connection.user.require(channel.vhost.name, "read", "queue", name)
    queue = channel.vhost.queue(name, channel.connection)
    channel.broker.settle(queue)
    purged = queue.purge()
    if not method.nowait:
        channel.send(50, 31, purged.to_bytes(4, "big"))


def delete(channel: Channel, method: commands.Queue.Delete) -> None:
    vhost, connection = channel.vhost, channel.connection
    name = queue_name(channel, method.queue)
    connection.user.require(vhost.name, "configure", "queue", name)
    queue = vhost.queues.get(name)
    if queue is not None:
        channel.broker.settle(queue)
    deleted = vhost.delete_queue(
        name, if_unused=method.if_unused, if_empty=method.if_empty, owner=connection
    )
    if queue is not None:
        connection.exclusive_queues.pop(queue, None)
    if not method.nowait:
        channel.send(50, 41, deleted.to_bytes(4, "big"))


def queue_name(channel: Channel, name: str) -> str:
    """An empty name means the last queue declared on the channel. Raises `ChannelError` 404."""
    if name:
        return name
    if not channel.last_queue:
        raise not_found("no previously declared queue")
    return channel.last_queue
