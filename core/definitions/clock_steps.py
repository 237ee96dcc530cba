"""Stores steps of the wall clock, so that message ages are right after the next start.

Times that outlive the process are steady ones. The next process begins with the wall time of its
start; if the wall clock was stepped meanwhile, or the machine slept, all messages of this process
would be older or younger by that. So the difference is stored, and the next process continues it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ..clock import wall_ahead_ms
from .fields import VERSION, FieldReader, signed
from .keys import BYTES, DefinitionKind

if TYPE_CHECKING:
    from ..context import BrokerContext

STEP_MS: Final = 1_000
"""A smaller difference is no step; slewing moves the monotonic clock too."""
LOGGED_MS: Final = 10_000
"""Machines without a well kept clock are set by a few seconds now and then."""
_KEY: Final = BYTES[DefinitionKind.CLOCK]

logger = logging.getLogger(__name__)


class ClockSteps:
    """Compares the clocks of a broker when the server calls `check`."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._known_ms = 0

    def restore(self) -> None:
        """Continues the time of an earlier process; called before any of its messages is read."""
        value = self._broker.store.definitions.get(_KEY, b"")
        if value.startswith(VERSION) and len(value) == len(VERSION) + 8:
            self._known_ms = FieldReader(value[len(VERSION) :]).signed()
            self._broker.clock.resume(self._known_ms)

    def check(self) -> None:
        """Stores the difference if it has changed; called each second, and before the store is
        stopped."""
        now_ms = wall_ahead_ms(self._broker.clock)
        step_ms = now_ms - self._known_ms
        if abs(step_ms) >= STEP_MS:
            self._known_ms = now_ms
            self._broker.store.define(_KEY, VERSION + signed(now_ms))
        if abs(step_ms) >= LOGGED_MS:
            logger.warning(
                "the clock of this machine was set %s by %d s, or the machine slept: tokens and "
                "leases end by this clock; the ages of messages do not change",
                "forward" if step_ms > 0 else "back", abs(step_ms) // 1_000,
            )  # fmt: skip
