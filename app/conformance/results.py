"""What a check can come to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How binding the specification calls a rule."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Verdict(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    """Not decided: the hub may do as it did, or what is asked about did not come up."""


class Failed(Exception):
    """The hub broke the rule; the text tells its operator what was expected and what came."""


class NoService(Failed):
    """The hub does not even accept, verify and deliver, so nothing else can be decided."""


class Undecided(Exception):
    """The check can't be decided; the text says why."""


class Unusable(Exception):
    """There is no hub to check, or the command line does not fit it: one line, exit 2."""


@dataclass(frozen=True, slots=True)
class Result:
    number: int
    title: str
    level: Level
    rule: str
    """The section of the specification that says so, and the rule's number in docs/websub.md."""
    verdict: Verdict
    reason: str
    """Why it failed or was skipped; with a pass, what was noticed beside ("" for nothing)."""
    seen: tuple[str, ...]
    """What was sent and what came, in this order."""
    is_final: bool = False
    """Whether the hub did not even accept, verify and deliver (`NoService`)."""

    @property
    def is_breach(self) -> bool:
        return self.verdict is Verdict.FAIL and self.level is Level.MUST
