"""Closes channels whose deliveries are not acknowledged in time (x-consumer-timeout).

Deliveries carry no timestamps. Instead each channel with unacked messages is checked
periodically, and all deliveries since the last check get the time of this one. So no delivery
times out early, and the check is late by little more than its period, a tenth of the shortest
timeout in use. A channel with very many unacked messages is checked less often, and old check
times are thinned out: both only make the timeout later.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from ..errors import ChannelError, precondition_failed
from ..wire.method_ids import NO_METHOD

if TYPE_CHECKING:
    from ..broker import Broker
    from ..queue.consumer import Consumer
    from ..queue.queue import Queue
    from .channel import Channel

LOOK_MAX_MS = 10_000
LOOK_MIN_MS = 50
LOOKS_A_MS = 200
"""Deliveries checked for each millisecond that passes: about a tenth of the CPU at most."""
MOMENTS_MAX = 512


class Marks:
    """The check times of one channel, each with the first delivery tag after it."""

    __slots__ = ("_tags", "_times_ms", "again_ms")

    def __init__(self) -> None:
        self._tags: list[int] = []
        self._times_ms: list[int] = []
        self.again_ms = 0
        """When deliveries that may be late are next checked."""

    def add(self, next_tag: int, now_ms: int, oldest_tag: int) -> None:
        """Adds a check, and drops those older than the oldest unacked delivery."""
        keep = bisect_right(self._tags, oldest_tag)
        if keep:
            del self._tags[:keep], self._times_ms[:keep]
        if not self._tags or self._tags[-1] < next_tag:
            self._tags.append(next_tag)
            self._times_ms.append(now_ms)
        if len(self._tags) > MOMENTS_MAX:
            # Deliveries whose check is dropped count from the next one.
            del self._tags[:-1:2], self._times_ms[:-1:2]

    def delivered_ms(self, tag: int) -> int | None:
        """The latest time at which this was delivered; None if not checked since."""
        place = bisect_right(self._tags, tag)
        return self._times_ms[place] if place < len(self._times_ms) else None


class ConsumerTimeouts:
    """The consumer timeouts of all channels of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._shortest_ms = 0
        self._is_looking = False

    def start(self) -> None:
        """Starts the checks; the broker's limits must be set."""
        self.note(self._broker.limits.consumer_timeout_ms)

    def note(self, timeout_ms: int | None) -> None:
        """Takes the timeout of a new queue or consumer into account."""
        if not timeout_ms:
            return
        if not self._shortest_ms or timeout_ms < self._shortest_ms:
            self._shortest_ms = timeout_ms
            self._is_looking = False
        if not self._is_looking:
            self._is_looking = True
            self._appoint(self._shortest_ms)

    def _appoint(self, shortest_ms: int) -> None:
        every_ms = max(LOOK_MIN_MS, min(LOOK_MAX_MS, shortest_ms // 10))
        broker = self._broker

        def look() -> None:
            if shortest_ms == self._shortest_ms:
                self._look()
                self._appoint(shortest_ms)

        broker.timers.at(broker.clock.now_ms() + every_ms, look)

    def _look(self) -> None:
        now_ms = self._broker.now_ms
        for connection in list(self._broker.connections):
            for channel in list(connection.channels.values()):
                if channel.open and channel.unacked.count:
                    late_ms = self._late(channel, now_ms)
                    if late_ms is not None:
                        connection.fail_channel(channel.number, _error(channel, late_ms), NO_METHOD)

    def _late(self, channel: Channel, now_ms: int) -> int | None:
        """Returns the timeout that a delivery of this channel has exceeded, if any."""
        if channel.marks is None:
            channel.marks = Marks()
        marks, oldest_tag, looks = channel.marks, 0, 0
        for tag, consumer, queue in channel.unacked.outstanding():
            oldest_tag = oldest_tag or tag
            delivered_ms = marks.delivered_ms(tag)
            if delivered_ms is None or now_ms < max(
                marks.again_ms, delivered_ms + self._shortest_ms
            ):
                break
            timeout_ms = self._timeout_ms(consumer, queue)
            if timeout_ms and now_ms - delivered_ms >= timeout_ms:
                return timeout_ms
            looks += 1
        if looks:
            marks.again_ms = now_ms + looks // LOOKS_A_MS
        marks.add(channel.next_tag, now_ms, oldest_tag)
        return None

    def _timeout_ms(self, consumer: Consumer | None, queue: Queue) -> int:
        if consumer is not None and consumer.timeout_ms is not None:
            return consumer.timeout_ms
        if queue.rules is not None and queue.rules.consumer_timeout_ms is not None:
            return queue.rules.consumer_timeout_ms
        return self._broker.limits.consumer_timeout_ms


def _error(channel: Channel, timeout_ms: int) -> ChannelError:
    return precondition_failed(
        f"delivery acknowledgement on channel {channel.number} timed out. Timeout value used: "
        f"{timeout_ms} ms. This timeout value can be configured: consumer-timeout of the server, "
        f"x-consumer-timeout of queue or consumer"
    )
