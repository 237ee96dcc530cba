"""The results of checks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """The requirement level of a rule (RFC 2119)."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Outcome(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    """Not decided: the behaviour is optional, or the case did not occur."""


class Failed(Exception):
    """The hub violated the rule; the text says what was expected and what was received."""


class NoService(Failed):
    """The hub fails to accept, verify and deliver at all, so nothing else can be decided."""


class Undecided(Exception):
    """The check can't be decided; the text says why."""


class Unusable(Exception):
    """There is no hub to check, or the options are invalid: one line on stderr, exit code 2."""


@dataclass(frozen=True, slots=True)
class Result:
    number: int
    title: str
    level: Level
    rule: str
    """The section of the specification that says so, and the rule's number in docs/websub.md."""
    outcome: Outcome
    reason: str
    """Why it failed or was skipped; for a passed check a note, or ""."""
    seen: tuple[str, ...]
    """Requests and responses, in their order."""
    is_final: bool = False
    """Whether the hub did not even accept, verify and deliver (`NoService`)."""

    @property
    def is_breach(self) -> bool:
        return self.outcome is Outcome.FAIL and self.level is Level.MUST
