"""A ring of samples: the last values of some counters, at even times."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from .counters import Values


class Ring:
    """Samples at multiples of `step_ms`, of the last `size` steps.

    Only changes are kept: where a sample is missing the values were those of the one before.
    """

    __slots__ = ("_samples", "size", "step_ms")

    def __init__(self, step_ms: int, size: int) -> None:
        self.step_ms = step_ms
        self.size = size
        self._samples: deque[tuple[int, Values]] = deque()

    def add(self, at_ms: int, values: Values) -> None:
        """Adds a sample; the time is rounded down to a step."""
        step = at_ms // self.step_ms
        samples = self._samples
        if samples and samples[-1][0] == step:
            samples.pop()
        samples.append((step, values))
        # The one before the first step that counts says with which values it began.
        while len(samples) > 1 and samples[1][0] <= step - self.size:
            samples.popleft()

    @property
    def last_ms(self) -> int:
        """The time of the last sample, 0 if there is none."""
        return self._samples[-1][0] * self.step_ms if self._samples else 0

    def at(self, times_ms: Iterator[int]) -> Iterator[tuple[int, Values]]:
        """Yields time and values for each of the times, which are given newest first; those before
        the first sample are left out."""
        at = len(self._samples) - 1
        for time_ms in times_ms:
            while at >= 0 and self._samples[at][0] * self.step_ms > time_ms:
                at -= 1
            if at < 0:
                return
            yield time_ms, self._samples[at][1]
