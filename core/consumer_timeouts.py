"""Schedules the checks of consumer timeouts on all connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .context import BrokerContext

CHECK_MAX_MS: Final = 10_000
CHECK_MIN_MS: Final = 50


class ConsumerTimeouts:
    """Makes the connections check their deliveries ten times within the shortest timeout."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._shortest_ms = 0
        self._is_checking = False

    def start(self) -> None:
        """Starts the checks; the broker's limits must be set."""
        self.note(self._broker.limits.consumer_timeout_ms)

    def note(self, timeout_ms: int | None) -> None:
        """Takes the timeout of a new queue or consumer into account."""
        if not timeout_ms:
            return
        if not self._shortest_ms or timeout_ms < self._shortest_ms:
            self._shortest_ms = timeout_ms
            self._is_checking = False
        if not self._is_checking:
            self._is_checking = True
            self._schedule(self._shortest_ms)

    def _schedule(self, shortest_ms: int) -> None:
        every_ms = max(CHECK_MIN_MS, min(CHECK_MAX_MS, shortest_ms // 10))
        broker = self._broker

        def check() -> None:
            if shortest_ms == self._shortest_ms:
                for connection in list(broker.connections):
                    connection.check_timeouts(shortest_ms)
                self._schedule(shortest_ms)

        broker.timers.at(broker.clock.now_ms() + every_ms, check)
