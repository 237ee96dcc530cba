"""Samples the counters that were active in the last five seconds, for rates and charts.

Counters are marked as active at their first count in an interval. Where nothing is counted, no
timer runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ..slices import for_each
from .counters import Counters, MessageCounters, Values
from .history import History
from .ring import Ring

if TYPE_CHECKING:
    from ..clock import Clock
    from ..slices import Slices
    from ..timers import Timers

INTERVAL_MS: Final = 5_000
_SECOND_MS: Final = 1_000
_LATE_MS: Final = 1_000
"""Samples of many objects are taken in slices, so that some come later."""
RING_SAMPLES: Final = 120
"""Ten minutes."""
RINGS_MAX: Final = 500
"""Objects whose samples are kept: each takes up to 30 kB."""


class Samples:
    """The last two samples of some counters, with their times."""

    __slots__ = ("before", "before_ms", "last", "last_ms")

    def __init__(self, at_ms: int, values: Values) -> None:
        self.before_ms = self.last_ms = at_ms
        self.before = self.last = values

    def add(self, at_ms: int, values: Values) -> None:
        self.before_ms, self.before = self.last_ms, self.last
        self.last_ms, self.last = at_ms, values


class SamplerContext(Protocol):
    """The part of the broker that the sampler uses."""

    clock: Clock
    timers: Timers
    slices: Slices
    now_ms: int


class Sampler:
    """Takes the samples; `history` has those of the whole server's counters."""

    def __init__(self, context: SamplerContext, total: MessageCounters) -> None:
        self._context = context
        self._total = total
        self.history = History()
        self._active: list[Counters] = []
        self._idle: list[Counters] = []
        """Those sampled last time, which have no rate any more unless they were active again."""
        self._rings: dict[Counters, Ring] = {}
        """Least recently active ones first."""
        self._is_running = False
        self._sample_at_ms = 0

    def activate(self, counters: Counters) -> None:
        """Notes the first count in an interval; called before it is counted."""
        counters.is_active = True
        self._active.append(counters)
        now_ms = self._context.now_ms
        counters.active_ms = now_ms
        if counters.samples is None:
            counters.samples = Samples(now_ms - now_ms % INTERVAL_MS, counters.values())
        if not self._is_running:
            self._is_running = True
            self._sample_at_ms = now_ms - now_ms % INTERVAL_MS + INTERVAL_MS
            self.history.add(now_ms - _SECOND_MS, self._total.values())
            self._schedule()

    def rate(self, counters: Counters, field: str) -> float:
        """Returns how much a counter grew a second, in the last interval that is over."""
        samples = counters.samples
        if samples is None:
            return 0.0
        # Not the time of the last turn, which is long ago where nothing happens.
        if self._context.clock.now_ms() - samples.last_ms > INTERVAL_MS + _LATE_MS:
            return 0.0
        at = counters.FIELDS.index(field)
        elapsed_ms = samples.last_ms - samples.before_ms
        return (samples.last[at] - samples.before[at]) * 1000 / elapsed_ms if elapsed_ms else 0.0

    def ring(self, counters: Counters) -> Ring | None:
        """Returns the kept samples of some counters, None if they have none: they were not counted
        in the last ten minutes, or too many others were."""
        return self._rings.get(counters)

    def forget(self) -> None:
        """Drops all kept samples; the counters go on."""
        self.history = History()
        self._rings.clear()

    def _schedule(self) -> None:
        now_ms = self._context.now_ms
        self._context.timers.at(now_ms - now_ms % _SECOND_MS + _SECOND_MS, self._tick)

    def _tick(self) -> None:
        now_ms = self._context.now_ms
        self.history.add(now_ms, self._total.values())
        if now_ms >= self._sample_at_ms:
            self._sample_at_ms = now_ms - now_ms % INTERVAL_MS + INTERVAL_MS
            if not self._active and not self._idle:
                self._is_running = False
                return
            active, self._active = self._active, []
            idle, self._idle = self._idle, active
            self._context.slices.start(for_each(active, self._sample))
            self._context.slices.start(for_each(idle, self._drop_inactive))
        self._schedule()

    def _sample(self, counters: Counters) -> None:
        counters.is_active = False
        assert counters.samples is not None
        now_ms = self._context.now_ms
        self._keep(counters, now_ms, counters.samples)
        counters.samples.add(now_ms, counters.values())

    def _drop_inactive(self, counters: Counters) -> None:
        """Drops the samples of counters that were not counted for a whole interval."""
        samples = counters.samples
        if samples is None or counters.is_active:
            return
        if self._context.now_ms - samples.last_ms >= INTERVAL_MS:
            counters.samples = None

    def _keep(self, counters: Counters, now_ms: int, samples: Samples) -> None:
        ring = self._rings.pop(counters, None)
        if ring is None:
            if len(self._rings) >= RINGS_MAX and not self._evict(now_ms):
                return
            ring = Ring(INTERVAL_MS, RING_SAMPLES)
            ring.add(samples.last_ms, samples.last)
        ring.add(now_ms, counters.values())
        self._rings[counters] = ring

    def _evict(self, now_ms: int) -> bool:
        """Drops a ring in which nothing has changed for ten minutes, if there is one."""
        counters, ring = next(iter(self._rings.items()))
        if ring.last_ms > now_ms - INTERVAL_MS * RING_SAMPLES:
            return False
        del self._rings[counters]
        return True
