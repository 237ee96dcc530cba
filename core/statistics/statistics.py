"""Counts what happens, once for each batch: a method for each kind of event.

These methods are called for every read and delivery: they take positional arguments and have no
loops, which would double their time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..histogram import Histogram
from .counters import (
    ChurnCounters,
    Counted,
    CountedName,
    CountedQueue,
    MessageCounters,
    QueueCounters,
    TrafficCounters,
)
from .rates import Sampler

if TYPE_CHECKING:
    from .rates import SamplerContext


MESSAGE_BYTES: Final = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 50_000_000, 100_000_000)


class Statistics:
    """All counters of a server.

    `total`, `traffic` and `churn` are those of the whole server since its start. A channel is None
    where the application is in this process.
    """

    def __init__(self, context: SamplerContext) -> None:
        self.total = MessageCounters()
        self.traffic = TrafficCounters()
        self.churn = ChurnCounters()
        self.message_bytes = Histogram(MESSAGE_BYTES)
        """Of published messages with their frames; those of a batch count with their mean."""
        self.dead_letters: dict[str, int] = {}
        """Dead letters by the reason in x-death."""
        self.sampler = Sampler(context, self.total)
        self._vhosts: dict[str, MessageCounters] = {}
        self._default_exchanges: dict[str, CountedName] = {}

    # -- objects

    def vhost(self, name: str) -> MessageCounters:
        """Returns the counters of a virtual host, which are made at the first use."""
        found = self._vhosts.get(name)
        if found is None:
            found = self._vhosts[name] = MessageCounters()
        return found

    def default_exchange(self, vhost: str) -> CountedName:
        """Returns the counted name of the default exchange of a virtual host."""
        found = self._default_exchanges.get(vhost)
        if found is None:
            found = self._default_exchanges[vhost] = CountedName()
        return found

    def forget_vhost(self, name: str) -> None:
        """Drops the counters of a deleted virtual host."""
        self._vhosts.pop(name, None)
        self._default_exchanges.pop(name, None)

    def forget_queue(self, queue: CountedQueue) -> None:
        """Drops the counters of a deleted queue, which refer to it."""
        if isinstance(queue.counters, QueueCounters):
            queue.counters.end()
        queue.counters = None

    def _of(self, counted: Counted) -> MessageCounters:
        """Returns the counters of an object, which are active from now on."""
        counters = counted.counters
        if counters is None:
            counters = counted.counters = MessageCounters()
        if not counters.is_active:
            self.sampler.activate(counters)
        return counters

    def _of_queue(self, queue: CountedQueue) -> MessageCounters:
        if queue.counters is None and not queue.deleted:
            # The reference back ends with the queue (`forget_queue`).
            queue.counters = QueueCounters(queue)
        return self._of(queue)

    def _of_vhost(self, name: str) -> MessageCounters:
        """As `_of`; the server is active with each of its virtual hosts."""
        counters = self._vhosts.get(name) or self.vhost(name)
        if not counters.is_active:
            self.sampler.activate(counters)
            if not self.total.is_active:
                self.sampler.activate(self.total)
        return counters

    # -- messages

    def published(
        self,
        vhost: str,
        channel: Counted | None,
        exchange: Counted | None,
        count: int,
        routed: int,
        unrouted: int,
        confirming: bool,
    ) -> None:
        """Counts publishes to one exchange, None for the default one.

        `routed` are their copies in queues; `unrouted` of them were dropped for want of a queue.
        """
        total, of_vhost = self.total, self._of_vhost(vhost)
        total.publish += count
        total.publish_out += routed
        of_vhost.publish += count
        of_vhost.publish_out += routed
        if channel is not None:
            own = channel.counters
            if own is None or not own.is_active:
                own = self._of(channel)
            own.publish += count
            if confirming:
                own.publish_confirm += count
                of_vhost.publish_confirm += count
                total.publish_confirm += count
            if unrouted:
                own.drop_unroutable += unrouted
        if unrouted:
            of_vhost.drop_unroutable += unrouted
            total.drop_unroutable += unrouted
        counted = self.default_exchange(vhost) if exchange is None else exchange
        counters = counted.counters
        if counters is None or not counters.is_active:
            counters = self._of(counted)
        counters.publish_in += count
        counters.publish_out += routed

    def enqueued(self, queue: CountedQueue, count: int) -> None:
        """Counts messages that were added to a queue."""
        counters = queue.counters
        if counters is None or not counters.is_active:
            counters = self._of_queue(queue)
        counters.publish += count

    def returned(self, vhost: str, channel: Counted | None) -> None:
        """Counts a mandatory message without a route."""
        self.total.return_unroutable += 1
        self._of_vhost(vhost).return_unroutable += 1
        if channel is not None:
            self._of(channel).return_unroutable += 1

    def confirmed(self, vhost: str, channel: Counted, count: int) -> None:
        self.total.confirm += count
        self._of_vhost(vhost).confirm += count
        self._of(channel).confirm += count

    def delivered(
        self,
        queue: CountedQueue,
        channel: Counted | None,
        count: int,
        no_ack: bool,
        redelivered: bool,
    ) -> None:
        """Counts deliveries to a consumer."""
        total, of_vhost = self.total, self._of_vhost(queue.vhost)
        counters = queue.counters
        if counters is None or not counters.is_active:
            counters = self._of_queue(queue)
        own = None if channel is None else self._of(channel)
        if no_ack:
            total.deliver_no_ack += count
            of_vhost.deliver_no_ack += count
            counters.deliver_no_ack += count
            if own is not None:
                own.deliver_no_ack += count
        else:
            total.deliver += count
            of_vhost.deliver += count
            counters.deliver += count
            if own is not None:
                own.deliver += count
        if redelivered:
            for each in self._all(queue, channel):
                each.redeliver += count

    def got(
        self, queue: CountedQueue, channel: Counted | None, no_ack: bool, redelivered: bool
    ) -> None:
        """Counts a message delivered by basic.get."""
        for counters in self._all(queue, channel):
            if no_ack:
                counters.get_no_ack += 1
            else:
                counters.get += 1
            counters.redeliver += redelivered

    def got_nothing(self, queue: CountedQueue, channel: Counted | None) -> None:
        """Counts a basic.get that found the queue empty."""
        for counters in self._all(queue, channel):
            counters.get_empty += 1

    def acknowledged(self, queue: CountedQueue, channel: Counted | None, count: int) -> None:
        self.total.ack += count
        self._of_vhost(queue.vhost).ack += count
        self._of_queue(queue).ack += count
        if channel is not None:
            self._of(channel).ack += count

    def rejected(self, queue: CountedQueue, channel: Counted | None, count: int) -> None:
        """Counts deliveries that were rejected, whether they were requeued or not."""
        for counters in self._all(queue, channel):
            counters.reject += count

    def _all(self, queue: CountedQueue, channel: Counted | None) -> tuple[MessageCounters, ...]:
        """Returns the counters of server, virtual host, queue and channel."""
        found = self.total, self._of_vhost(queue.vhost), self._of_queue(queue)
        return found if channel is None else (*found, self._of(channel))

    def dead_lettered(self, reason: str, count: int) -> None:
        """Counts messages that leave a queue for its dead-letter exchange."""
        self.dead_letters[reason] = self.dead_letters.get(reason, 0) + count

    # -- connections

    def churned(self) -> ChurnCounters:
        """Returns the churn counters, to be added to."""
        if not self.churn.is_active:
            self.sampler.activate(self.churn)
        return self.churn

    def received(self, connection: TrafficCounters, size: int) -> None:
        """Counts a read from a socket."""
        if not connection.is_active:
            self.sampler.activate(connection)
        connection.received_bytes += size
        connection.reads += 1
        self.traffic.received_bytes += size
        self.traffic.reads += 1

    def sent(self, connection: TrafficCounters, size: int) -> None:
        """Counts a write to a socket."""
        if not connection.is_active:
            self.sampler.activate(connection)
        connection.sent_bytes += size
        connection.writes += 1
        self.traffic.sent_bytes += size
        self.traffic.writes += 1
