"""The history for charts: rates and lengths of the last minutes, or of a day.

The counters of messages are in the sampler's history; the hub's and the lengths are kept here.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypedDict

from ...core.broker import Broker
from ...core.clock import wall_ms
from ...core.statistics.counters import MessageCounters, Values
from ...core.statistics.history import History
from ...core.statistics.ring import Ring

DELIVERIES: Final = ("deliver", "deliver_no_ack", "get", "get_no_ack")
MESSAGE_RATES: Final = {
    "publish": ("publish",),
    "confirm": ("confirm",),
    "deliver_get": DELIVERIES,
    "ack": ("ack",),
    "redeliver": ("redeliver",),
}
"""The series of messages, and the counters that each adds up."""
HUB_FIELDS: Final = ("delivered", "retried", "dead", "messages_ready", "messages_unacknowledged")
"""The first that are kept here: three counters, then two lengths."""
NODE_FIELDS: Final = (
    "mem_used", "disk_free", "sockets_used", "io_sync_count", "io_write_count", "io_write_bytes",
)  # fmt: skip
"""The others: figures of the node, by RabbitMQ's names."""
KEPT: Final = (*HUB_FIELDS, *NODE_FIELDS)
HUB_RATES: Final = HUB_FIELDS[:3]
LENGTHS: Final = HUB_FIELDS[3:]
_SETTLED_MS: Final = 300
"""How late the sample of a second may come."""
_NOTHING: Final = MessageCounters().values()
Column = list[float | int | None]


class HistoryDocument(TypedDict):
    """Columns of equal length, oldest first; null where nothing is known."""

    step_s: int
    times: list[int]
    series: dict[str, Column]


class OverviewHistory:
    """Keeps the samples of the hub and of the lengths, and builds the document."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._kept = History()
        self._started_ms = broker.clock.now_ms()

    def add(self, values: Sequence[int]) -> None:
        """Adds the current values of `KEPT`."""
        self._kept.add(self._broker.clock.now_ms(), array("Q", values))

    def rates(self, fields: dict[str, tuple[str, ...]]) -> dict[str, float]:
        """Returns how much counters of messages grew in the last second that is over."""
        samples = self._samples(self._broker.statistics.sampler.history.seconds, 1, is_counted=True)
        return {name: _rates(samples, _places(names), 1)[-1] or 0 for name, names in fields.items()}

    def hub_rates(self) -> dict[str, float]:
        """Returns the same of the hub's counters."""
        samples = self._samples(self._kept.seconds, 1)
        return {name: _rates(samples, [at], 1)[-1] or 0 for at, name in enumerate(HUB_RATES)}

    def ring(self, age_s: int) -> Ring:
        """Returns the finest samples of `KEPT` that reach so far back."""
        return self._kept.ring(age_s * 1000)

    async def document(self, age_s: int) -> HistoryDocument:
        """Returns all series back to `age_s`, in seconds or minutes."""
        messages = self._broker.statistics.sampler.history.ring(age_s * 1000)
        kept = self._kept.ring(age_s * 1000)
        step_s = messages.step_ms // 1000
        count = age_s // step_s
        series: dict[str, Column] = {}
        samples = self._samples(messages, count, is_counted=True)
        for name, fields in MESSAGE_RATES.items():
            series[name] = _rates(samples, _places(fields), step_s)
            await asyncio.sleep(0)
        samples = self._samples(kept, count)
        for at, name in enumerate(HUB_RATES):
            series[name] = _rates(samples, [at], step_s)
        for at, name in enumerate(LENGTHS, start=len(HUB_RATES)):
            series[name] = [None if one is None else one[at] for one in samples[1:]]
        return {"step_s": step_s, "times": self._times(kept, count), "series": series}

    def _newest_ms(self, ring: Ring) -> int:
        """Returns the last step that is over."""
        if ring.step_ms == self._kept.seconds.step_ms:
            now_ms = self._broker.clock.now_ms() - _SETTLED_MS
            return now_ms - now_ms % ring.step_ms
        now_ms = self._broker.clock.now_ms() - ring.step_ms
        return now_ms - now_ms % ring.step_ms

    def _steps(self, ring: Ring, count: int) -> Iterator[int]:
        newest_ms = self._newest_ms(ring)
        return (newest_ms - at * ring.step_ms for at in range(count + 1))

    def _times(self, ring: Ring, count: int) -> list[int]:
        """Returns the steps in seconds of wall time."""
        shift_ms = wall_ms(self._broker.clock) - self._broker.clock.now_ms()
        found = [round((at_ms + shift_ms) / 1000) for at_ms in self._steps(ring, count)]
        return found[-2::-1]

    def _samples(self, ring: Ring, count: int, *, is_counted: bool = False) -> list[Values | None]:
        """Returns the samples of so many steps and of the one before them, oldest first.

        Counters `is_counted` since the start had their first values from then on: they are sampled
        only when something happens.
        """
        found: list[Values | None] = [values for _, values in ring.at(self._steps(ring, count))]
        first = found[-1] if found else _NOTHING
        for at_ms in list(self._steps(ring, count))[len(found) :]:
            found.append(first if is_counted and at_ms >= self._started_ms else None)
        found.reverse()
        return found


def _places(fields: Sequence[str]) -> list[int]:
    return [MessageCounters.FIELDS.index(field) for field in fields]


def _rates(samples: Sequence[Values | None], places: Sequence[int], step_s: int) -> Column:
    """Returns the growth a second of a sum, between each sample and the next."""
    sums = [None if one is None else sum([one[at] for at in places]) for one in samples]
    return [
        None if after is None or before is None else round((after - before) / step_s, 2)
        for before, after in pairwise(sums)
    ]
