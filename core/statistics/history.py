"""The history of the whole server's counters, for charts."""

from __future__ import annotations

from typing import Final

from .counters import Values
from .ring import Ring

SECONDS: Final = 600
MINUTES: Final = 1_440


class History:
    """The counters of each second of ten minutes, and of each minute of a day."""

    def __init__(self) -> None:
        self.seconds = Ring(1_000, SECONDS)
        self.minutes = Ring(60_000, MINUTES)

    def add(self, at_ms: int, values: Values) -> None:
        self.seconds.add(at_ms, values)
        self.minutes.add(at_ms, values)

    def ring(self, age_ms: int) -> Ring:
        """Returns the finest ring that reaches so far back."""
        return self.seconds if age_ms <= SECONDS * 1_000 else self.minutes
