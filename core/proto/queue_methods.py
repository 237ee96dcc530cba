"""Handlers of class queue (AMQP 0-9-1 1.7): declare, bind, unbind, purge, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import commands

from ..auth.authorization import to_bind, to_declare, to_delete
from ..errors import access_refused, not_found
from ..message.model import Table
from ..queue.default_type import with_default_type
from ..queue.names import server_name
from ..queue.queue import Queue
from ..vhost import REPLY_PREFIX, REPLY_TO
from ..wire.frames import short_string
from ..wire.method_ids import (
    QUEUE_BIND_OK,
    QUEUE_DECLARE_OK,
    QUEUE_DELETE_OK,
    QUEUE_PURGE_OK,
    QUEUE_UNBIND_OK,
)

if TYPE_CHECKING:
    from .channel import Channel


def declare(channel: Channel, method: commands.Queue.Declare) -> None:
    name = method.queue
    if name == REPLY_TO or name.startswith(REPLY_PREFIX):
        _declare_reply_queue(channel, method)
        return
    queue = _declare_passive(channel, method) if method.passive else _declare(channel, method)
    channel.broker.dispatch_now(queue)
    channel.last_queue = queue.name

    def answer() -> None:
        if channel.open and not method.nowait:
            _declare_ok(channel, queue.name, queue.ready_count, queue.consumer_count)

    channel.connection.pending.wait_until(
        channel.vhost.busy_names.wait_for("queue", queue.name), answer
    )


def _declare(channel: Channel, method: commands.Queue.Declare) -> Queue:
    vhost, connection, name = channel.vhost, channel.connection, method.queue
    user = connection.user
    arguments: Table = method.arguments or {}
    if vhost.properties:
        arguments = with_default_type(
            vhost, name, arguments,
            durable=method.durable, exclusive=method.exclusive, auto_delete=method.auto_delete,
        )  # fmt: skip
    if name.startswith("amq."):
        raise access_refused(f"queue name '{name}' contains reserved prefix 'amq.*'")
    server_named = "" if name else server_name()
    to_declare(
        user, vhost.name, "queue", name or server_named, arguments, is_new=name not in vhost.queues
    )
    queue = vhost.declare_queue(
        name,
        durable=method.durable,
        exclusive=method.exclusive,
        auto_delete=method.auto_delete,
        arguments=arguments,
        owner=connection,
        server_named=server_named,
    )
    if queue.owner is connection:
        connection.exclusive_queues[queue] = None
    return queue


def _declare_passive(channel: Channel, method: commands.Queue.Declare) -> Queue:
    name = queue_name(channel, method.queue)
    channel.vhost.busy_names.require_free("queue", name)
    channel.connection.user.require_any(channel.vhost.name, "queue", name)
    queue = channel.vhost.queue(name, channel.connection)
    queue.note_use()
    return queue


def _declare_reply_queue(channel: Channel, method: commands.Queue.Declare) -> None:
    """Checks whether a direct reply-to queue exists, and so its requester."""
    if method.queue != REPLY_TO and method.queue not in channel.vhost.replies:
        raise not_found(f"no queue '{method.queue}' in vhost '{channel.vhost.name}'")
    if not method.nowait:
        _declare_ok(channel, method.queue, 0, 1)


def _declare_ok(channel: Channel, name: str, messages: int, consumers: int) -> None:
    counts = messages.to_bytes(4, "big") + consumers.to_bytes(4, "big")
    channel.send(QUEUE_DECLARE_OK, short_string(name) + counts)


def bind(channel: Channel, method: commands.Queue.Bind) -> None:
    vhost = channel.vhost
    key = method.routing_key or ""
    if not method.queue and not key:
        key = channel.last_queue
    name = _may_bind(channel, method.queue, method.exchange, key)
    queue = vhost.queue(name, channel.connection)
    exchange = vhost.exchange(method.exchange)
    bound = _no_reply if method.nowait else channel.promise(QUEUE_BIND_OK)
    vhost.bindings.add(exchange, queue, key, method.arguments or {}, bound)


def _no_reply() -> None:
    """Sends no reply: the client has set no-wait."""


def unbind(channel: Channel, method: commands.Queue.Unbind) -> None:
    """Removes a binding; a missing one, or a missing queue or exchange, is no error."""
    vhost = channel.vhost
    key = method.routing_key or ""
    if not method.queue and not key:
        key = channel.last_queue
    name = _may_bind(channel, method.queue, method.exchange, key)
    exchange = vhost.exchanges.get(method.exchange)
    if exchange is not None and name in vhost.queues:
        queue = vhost.queue(name, channel.connection)
        vhost.bindings.remove(exchange, queue, key, method.arguments or {})

    def answer() -> None:
        if channel.open:
            channel.send(QUEUE_UNBIND_OK)

    # A long chain of auto-delete exchanges may be deleted with it, in slices.
    channel.connection.pending.wait_until(
        vhost.busy_names.wait_for("exchange", method.exchange), answer
    )


def _may_bind(channel: Channel, name: str, exchange: str, key: str) -> str:
    """Checks the rights and returns the queue's name. Raises `ChannelError` 403."""
    vhost, user = channel.vhost, channel.connection.user
    name = queue_name(channel, name)
    vhost.refuse_default(exchange)
    to_bind(user, vhost, exchange, "queue", name, key)
    return name


def purge(channel: Channel, method: commands.Queue.Purge) -> None:
    name = queue_name(channel, method.queue)
    channel.connection.user.require(channel.vhost.name, "read", "queue", name)
    queue = channel.vhost.queue(name, channel.connection)
    queue.check_purge()
    channel.broker.dispatch_now(queue)
    count = queue.ready_count.to_bytes(4, "big")
    queue.purge(_no_reply if method.nowait else channel.promise(QUEUE_PURGE_OK, count))


def delete(channel: Channel, method: commands.Queue.Delete) -> None:
    vhost, connection = channel.vhost, channel.connection
    name = queue_name(channel, method.queue)
    to_delete(connection.user, vhost.name, "queue", name)
    queue = vhost.queues.get(name)
    if queue is not None:
        channel.broker.dispatch_now(queue)
    deleted = vhost.delete_queue(
        name, if_unused=method.if_unused, if_empty=method.if_empty, owner=connection
    )
    if queue is not None:
        connection.exclusive_queues.pop(queue, None)

    def answer() -> None:
        if channel.open and not method.nowait:
            channel.send(QUEUE_DELETE_OK, deleted.to_bytes(4, "big"))

    connection.pending.wait_until(vhost.busy_names.wait_for("queue", name), answer)


def queue_name(channel: Channel, name: str) -> str:
    """Replaces an empty name by the last queue declared on the channel.

    Raises `ChannelError` 404 if there is none.
    """
    if name:
        return name
    if not channel.last_queue:
        raise not_found("no previously declared queue")
    return channel.last_queue
