"""The inner stream of a persistent exchange: new bindings get its messages before new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from .stream import StreamQueue

if TYPE_CHECKING:
    from .queue import Queue
    from .rules import Rules


class HistoryLimits(Protocol):
    """The limits of a history: the last `messages`, and those of the last `ms` milliseconds."""

    @property
    def messages(self) -> int | None: ...
    @property
    def ms(self) -> int | None: ...
    @property
    def adds_offsets(self) -> bool:
        """Whether copies carry a header with their offset."""


class RunningReplay(Protocol):
    """A replay in progress (core/replay/replay.py); `has_more` while it can go on at once."""

    has_more: bool

    @property
    def queue(self) -> Queue: ...
    def step(self, limit: int) -> int: ...
    def end(self, *, in_force: bool = True) -> None: ...


class RetainedQueue(StreamQueue):
    """A stream without consumers; `replays` are those in progress."""

    __slots__ = ("limits", "replays")

    def _initialise(self) -> None:
        super()._initialise()
        self.limits: HistoryLimits | None = None
        self.replays: list[RunningReplay] = []

    def _committed(self) -> None:
        if self.replays:
            self.wake_up()

    def set_limits(self, limits: HistoryLimits) -> None:
        """Sets how much is kept, and drops what exceeds it."""
        self.limits = limits
        self.log.dropping.stop()
        self._retain()

    @property
    def adds_offsets(self) -> bool:
        return self.limits is not None and self.limits.adds_offsets

    @property
    def first(self) -> int:
        """The oldest offset that a binding may ask for; retention drops whole chunks, later."""
        limits, log = self.limits, self.log
        if limits is None or limits.messages is None:
            return log.first
        return max(log.first, log.end - limits.messages)

    def oldest_ms(self) -> int | None:
        """The arrival time (monotonic) before which nothing is replayed; None for no limit."""
        limits = self.limits
        if limits is None or limits.ms is None:
            return None
        return self._broker.now_ms - limits.ms

    def _retain(self) -> None:
        limits = self.limits
        if limits is None:
            return
        if limits.messages is not None:
            self._retention.by_count(limits.messages)
        if limits.ms is not None:
            self._retention.by_age(limits.ms)

    def dispatch(self, budget: int) -> bool:
        share = max(1, budget // max(1, len(self.replays)))
        for replay in list(self.replays):
            replay.step(share)
        return any(replay.has_more for replay in self.replays)

    def purge(self, done: Callable[[], None] = lambda: None) -> int:
        while self.replays:
            self.replays[0].end(in_force=False)
        return super().purge(done)

    def apply(self, rules: Rules | None) -> None:
        """Does nothing: policies do not apply to inner queues."""
