"""Scenarios, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .brokers import Broker
from .figures import Figures

COMPLETE_S = 900.0


@dataclass(frozen=True)
class Settings:
    """`seconds` of load per scenario; `messages` for filling and draining.

    `complete` takes the time that whole jobs need; otherwise each of their steps is cut off
    after some seconds, and the note says how far it came.
    """

    seconds: float = 2.0
    messages: int = 1_000_000
    complete: bool = False

    def bound_s(self, seconds: float = 5.0) -> float:
        """The time that one step of a job may take."""
        return COMPLETE_S if self.complete else seconds


@dataclass(frozen=True)
class Scenario:
    """One line of the table.

    `floor` is what Warren must reach on two cores: deliveries per second, or publishes where
    nothing is delivered, or milliseconds at p99 where `floor_is_p99_ms`. `fresh` means a
    broker that has done nothing yet, `http` for one that speaks HTTP. A `long` one runs only by its
    name or with --long. `spark` means that Spark has to be installed.
    """

    name: str
    run: Callable[[Broker, Settings], Figures]
    floor: float | None = None
    floor_is_p99_ms: bool = False
    fresh: bool = False
    http: bool = False
    long: bool = False
    spark: bool = False
