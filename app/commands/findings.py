"""What `warren doctor` finds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

OK: Final = "ok"
WARNING: Final = "warning"
PROBLEM: Final = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `advice` is empty if it is as it should be."""

    level: str
    subject: str
    text: str
    advice: str = ""

    def document(self) -> dict[str, Any]:
        return asdict(self)


def ok(subject: str, text: str) -> Finding:
    return Finding(OK, subject, text)


def warning(subject: str, text: str, advice: str) -> Finding:
    return Finding(WARNING, subject, text, advice)


def problem(subject: str, text: str, advice: str) -> Finding:
    return Finding(PROBLEM, subject, text, advice)
