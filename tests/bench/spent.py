"""The resources that a broker spends on a scenario."""

from __future__ import annotations

from .brokers import Broker


class Spent:
    """Processor time and peak memory of the broker since the object was made."""

    def __init__(self, broker: Broker) -> None:
        self._meter = broker.meter
        self._meter.reset_peak()
        self._before = self._meter.read()

    def cpu_us(self, messages: int) -> float | None:
        if not messages:
            return None
        return (self._meter.read().cpu_s - self._before.cpu_s) / messages * 1e6

    def peak_mb(self) -> float:
        return self._meter.read().peak_bytes / 1e6

    def growth_bytes(self) -> int:
        return self._meter.read().rss_bytes - self._before.rss_bytes
