"""What a broker spends on a scenario."""

from __future__ import annotations

from .brokers import Broker
from .measure import Usage


class Spent:
    """Processor time and peak memory of the broker since the object was made."""

    def __init__(self, broker: Broker) -> None:
        self._meter = broker.meter
        if self._meter:
            self._meter.reset_peak()
        self._before = self._read()

    def _read(self) -> Usage:
        return self._meter.read() if self._meter else Usage(0.0, 0, 0)

    def cpu_us(self, messages: int) -> float | None:
        if not self._meter or not messages:
            return None
        return (self._read().cpu_s - self._before.cpu_s) / messages * 1e6

    def peak_mb(self) -> float | None:
        return self._read().peak_bytes / 1e6 if self._meter else None

    def growth_bytes(self) -> int:
        return self._read().rss_bytes - self._before.rss_bytes
