"""Closes channels whose deliveries are not acknowledged in time (x-consumer-timeout).

Deliveries carry no timestamps. Instead each channel with unacked messages is checked
periodically, and all deliveries since the last check get the time of this one. So no delivery
times out early, and the check is late by little more than its period, a tenth of the shortest
timeout in use. A channel with very many unacked messages is checked less often, and old check
times are thinned out: both only make the timeout later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import ChannelError, precondition_failed
from ..wire.method_ids import NO_METHOD
from .delivery_times import DeliveryTimes

if TYPE_CHECKING:
    from ..queue.consumer import Consumer
    from ..queue.queue import Queue
    from .channel_table import ChannelTable
    from .context import ChannelContext

CHECKS_PER_MS: Final = 200
"""Deliveries checked for each millisecond that passes: about a tenth of the CPU at most."""


def check(channels: ChannelTable, shortest_ms: int) -> None:
    """Closes the channels with a delivery that has waited longer than its timeout, which is at
    least `shortest_ms`."""
    for channel in list(channels.values()):
        if channel.open and channel.deliveries.unacked.count:
            late_ms = _exceeded_ms(channel, shortest_ms)
            if late_ms is not None:
                channels.fail(channel.number, _error(channel, late_ms), NO_METHOD)


def _exceeded_ms(channel: ChannelContext, shortest_ms: int) -> int | None:
    """Returns the timeout that a delivery of this channel has exceeded, if any."""
    deliveries, now_ms = channel.deliveries, channel.broker.now_ms
    if deliveries.times is None:
        deliveries.times = DeliveryTimes()
    times, oldest_tag, checks = deliveries.times, 0, 0
    for tag, consumer, queue in deliveries.unacked.outstanding():
        oldest_tag = oldest_tag or tag
        delivered_ms = times.delivered_ms(tag)
        if delivered_ms is None or now_ms < max(times.next_check_ms, delivered_ms + shortest_ms):
            break
        timeout_ms = _timeout_ms(channel, consumer, queue)
        if timeout_ms and now_ms - delivered_ms >= timeout_ms:
            return timeout_ms
        checks += 1
    if checks:
        times.next_check_ms = now_ms + checks // CHECKS_PER_MS
    times.add(channel.next_tag, now_ms, oldest_tag)
    return None


def _timeout_ms(channel: ChannelContext, consumer: Consumer | None, queue: Queue) -> int:
    if consumer is not None and consumer.timeout_ms is not None:
        return consumer.timeout_ms
    if queue.rules is not None and queue.rules.consumer_timeout_ms is not None:
        return queue.rules.consumer_timeout_ms
    return channel.broker.limits.consumer_timeout_ms


def _error(channel: ChannelContext, timeout_ms: int) -> ChannelError:
    return precondition_failed(
        f"delivery acknowledgement on channel {channel.number} timed out. Timeout value used: "
        f"{timeout_ms} ms. This timeout value can be configured: consumer-timeout of the server, "
        f"x-consumer-timeout of queue or consumer"
    )
