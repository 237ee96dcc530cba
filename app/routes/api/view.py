"""The statistics that a request for connections, channels, exchanges and queues asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from starlette.datastructures import QueryParams

from ....core.broker import Broker
from ....core.queue.queue import Queue
from ....core.statistics.counters import MessageCounters, QueueCounters, TrafficCounters
from .message_stats import LENGTH_NAMES, MESSAGE_NAMES, Window, message_stats, read_window

STATISTICS_QUERY: Final = (
    "disable_stats", "enable_queue_totals", "lengths_age", "lengths_incr", "msg_rates_age",
    "msg_rates_incr", "data_rates_age", "data_rates_incr",
)  # fmt: skip
_TRAFFIC: Final = {
    "recv_oct": "received_bytes", "recv_cnt": "reads", "send_oct": "sent_bytes",
    "send_cnt": "writes",
}  # fmt: skip
_NOTHING: Final = MessageCounters()


@dataclass(frozen=True, slots=True)
class View:
    """The statistics that are shown: without `shows_all` none, or the lengths of queues alone."""

    broker: Broker
    shows_all: bool
    shows_lengths: bool
    messages: Window | None
    lengths: Window | None
    traffic: Window | None

    @classmethod
    def of(cls, query: QueryParams, broker: Broker) -> View:
        """Returns the view of a request; raises `Problem` 400 naming a parameter that can't be
        used."""
        shows_all = query.get("disable_stats") != "true"
        return cls(
            broker,
            shows_all,
            shows_all or query.get("enable_queue_totals") == "true",
            read_window(query),
            read_window(query, "lengths"),
            read_window(query, "data_rates"),
        )

    def message_stats(
        self, counters: MessageCounters | None, names: tuple[str, ...] = MESSAGE_NAMES
    ) -> dict[str, Any]:
        """Returns what an object has counted; zeros if it has no counters yet."""
        return message_stats(self.broker, counters or _NOTHING, names, window=self.messages)

    def lengths_of(self, queue: Queue) -> dict[str, Any]:
        """Returns the lengths of a queue, and how fast they grow."""
        found = queue.counters or QueueCounters(queue)
        return message_stats(self.broker, found, LENGTH_NAMES, window=self.lengths)

    def traffic_of(self, counters: TrafficCounters) -> dict[str, Any]:
        """Returns the octets, reads and writes of a connection, by RabbitMQ's names."""
        names = tuple(_TRAFFIC.values())
        found = message_stats(self.broker, counters, names, window=self.traffic)
        return {
            name + suffix: found[field + suffix]
            for name, field in _TRAFFIC.items()
            for suffix in ("", "_details")
        }
