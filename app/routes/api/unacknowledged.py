"""The holders of unacknowledged messages of a queue, and since when they hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from ....core.broker import Broker
from ....core.clock import wall_ms
from ....core.proto.channel import Channel
from ....core.proto.connections import connections_of
from ....core.queue.consumer import Consumer
from ....core.queue.queue import Queue
from ...documents import objects
from ...responses.time_slice import TimeSlice
from ...responses.times import rfc3339
from .call import Call
from .consumer_json import OWN, channel_name
from .lists import list_of, listing_of
from .required_tags import MANAGEMENT
from .route import Routes


async def list_holders(call: Call) -> Response:
    """Lists who holds unacknowledged messages of a queue: consumers, and channels that got
    messages one by one. `since` is when the oldest was delivered, up to some ten seconds late; null
    if that is about as recent."""
    vhost, name = call.names
    host = call.visible_vhost(vhost)
    queue = host.queues.get(name) or host.queue(name)
    found = list(_in_process(queue))
    for connection in connections_of(call.broker):
        for channel in tuple(connection.channels.values()):
            if queue in channel.deliveries.sources:
                found += await _of_channel(channel, queue, call.broker)
    return await listing_of(call, found, "consumer_tag")


def _in_process(queue: Queue) -> Iterator[dict[str, Any]]:
    """Yields consumers of subscriptions and of readers over HTTP; their times are not kept."""
    members = tuple(queue.ring.members) if queue.ring is not None else ()
    for consumer in members:
        if consumer.unacked_count and not isinstance(consumer.session, Channel):
            yield {
                "consumer_tag": consumer.tag, "messages": consumer.unacked_count, "since": None,
                "channel": OWN, "connection": OWN, "user": "",
            }  # fmt: skip


async def _of_channel(channel: Channel, queue: Queue, broker: Broker) -> list[dict[str, Any]]:
    """Returns the holders on a channel, None among them for messages that it got one by one."""
    oldest: dict[Consumer | None, int] = {}
    time_slice, got_count = TimeSlice(), 0
    for number, (tag, consumer, source) in enumerate(channel.deliveries.unacked.outstanding()):
        if source is queue:
            oldest.setdefault(consumer, tag)
            got_count += consumer is None
        if not number % 256:
            await time_slice.yield_if_over()
    return [
        {
            "consumer_tag": None if consumer is None else consumer.tag,
            "messages": got_count if consumer is None else consumer.unacked_count,
            "since": _since(channel, tag, broker),
            "channel": channel_name(channel),
            "connection": channel.connection.name,
            "user": channel.connection.user.name,
        }
        for consumer, tag in oldest.items()
    ]


def since_ms(channel: Channel, tag: int) -> int | None:
    """Returns when a message was delivered, up to some ten seconds late; None if that is about as
    recent."""
    times = channel.deliveries.times
    return None if times is None else times.delivered_ms(tag)


def _since(channel: Channel, tag: int, broker: Broker) -> str | None:
    delivered_ms = since_ms(channel, tag)
    if delivered_ms is None:
        return None
    return rfc3339((wall_ms(broker.clock) - broker.clock.now_ms() + delivered_ms) / 1_000)


ROUTES: Routes = {
    "/warren/queues/{vhost}/{queue}/unacknowledged": {
        "GET": list_of(list_holders, MANAGEMENT, objects.Holder)
    },
}
