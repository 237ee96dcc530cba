"""What a scenario is, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .brokers import Broker
from .flow import Figures


@dataclass(frozen=True)
class Settings:
    """`seconds` of load per scenario; `messages` for filling and draining."""

    seconds: float = 2.5
    messages: int = 1_000_000


@dataclass(frozen=True)
class Scenario:
    """One line of the table.

    `floor` is what Warren must reach on two cores: deliveries per second, or publishes where
    nothing is delivered, or milliseconds at p99 where `floor_is_p99_ms`. `fresh` asks for a
    broker that has done nothing yet, `http` for one that speaks HTTP.
    """

    name: str
    run: Callable[[Broker, Settings], Figures]
    floor: float | None = None
    floor_is_p99_ms: bool = False
    fresh: bool = False
    http: bool = False
