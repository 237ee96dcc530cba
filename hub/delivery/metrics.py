"""Counters of deliveries since the start."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ...core.histogram import Histogram
from ..attempts.attempt import AttemptOutcome

ATTEMPT_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
DELIVERY_S: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 600.0, 3_600.0, 86_400.0)
NO_ANSWER: Final = "none"


class DeliveryMetrics:
    __slots__ = ("attempt_s", "attempts", "breakers_opened", "delivery_s")

    def __init__(self) -> None:
        self.attempts: Counter[tuple[AttemptOutcome, str]] = Counter()
        """Attempts by outcome and class of the status, such as `5xx`, or `NO_ANSWER`."""
        self.attempt_s = Histogram(ATTEMPT_S)
        """From the request to its answer or failure."""
        self.delivery_s = Histogram(DELIVERY_S)
        """From the arrival of a message in its queue to its delivery, retries included."""
        self.breakers_opened = 0

    def count(self, outcome: AttemptOutcome, status: int | None, took_s: float) -> None:
        """Counts an attempt."""
        self.attempts[outcome, NO_ANSWER if status is None else f"{status // 100}xx"] += 1
        self.attempt_s.observe(took_s)
