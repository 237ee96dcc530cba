"""Stores steps of the wall clock, so that message ages are right after the next start.

Times that outlive the process are steady ones. The next process begins with the wall time of its
start; if the wall clock was stepped meanwhile, or the machine slept, all messages of this process
would be older or younger by that. So the difference is stored, and the next process continues it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..clock import behind_ms
from .fields import Reader, signed
from .keys import BYTES, Kind
from .kinds import VERSION

if TYPE_CHECKING:
    from ..broker import Broker

STEP_MS = 1_000
"""A smaller difference is no step; slewing moves the monotonic clock too."""
_KEY = BYTES[Kind.CLOCK]


class ClockSteps:
    """Compares the clocks of a broker when the server calls `look`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._known_ms = 0

    def restore(self) -> None:
        """Continues the time of an earlier process; called before any of its messages is read."""
        value = self._broker.store.definitions.get(_KEY, b"")
        if value.startswith(VERSION) and len(value) == len(VERSION) + 8:
            self._known_ms = Reader(value[len(VERSION) :]).signed()
            self._broker.clock.resume(self._known_ms)

    def look(self) -> None:
        """Stores the difference if it has changed; called each second, and before the store is
        stopped."""
        now_ms = behind_ms(self._broker.clock)
        if abs(now_ms - self._known_ms) >= STEP_MS:
            self._known_ms = now_ms
            self._broker.store.define(_KEY, VERSION + signed(now_ms))
