"""The registry of the checks, by number."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .check_context import CheckContext
from .results import Level

Play = Callable[[CheckContext], Awaitable[str | None]]
"""Runs a check; raises `Failed` or `Undecided`. Its result is a note for a passed check."""


@dataclass(frozen=True, slots=True)
class Check:
    number: int
    title: str
    level: Level
    rule: str
    play: Play
    is_slow: bool = False
    """Whether it waits for a lease to end."""


_CHECKS: dict[int, Check] = {}


def check(
    number: int, title: str, level: Level, rule: str, *, is_slow: bool = False
) -> Callable[[Play], Play]:
    def add(play: Play) -> Play:
        if number in _CHECKS:
            raise ValueError(f"two checks with the number {number}")
        _CHECKS[number] = Check(number, title, level, rule, play, is_slow)
        return play

    return add


def registered() -> list[Check]:
    """Returns the checks of all modules that were imported, by number."""
    return [_CHECKS[number] for number in sorted(_CHECKS)]
