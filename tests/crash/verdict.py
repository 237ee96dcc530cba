"""What the checker found: numbers for the summary line, and examples of what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from .journal import CONFIRMED, NACKED, UNKNOWN, WITHDRAWN, Journal

RULES = {
    "lost", "unexpected", "unflagged", "disordered", "torn", "answered", "undrained", "remaining",
    "damaged", "server", "client",
}  # fmt: skip
"""Breaking one of these makes a run invalid; `duplicated` and `recovered` are only counted."""


@dataclass(frozen=True)
class Verdict:
    """Messages are counted once by their publisher, and once in each queue they went to."""

    attempted: int
    confirmed: int
    nacked: int
    unknown: int
    withdrawn: int
    lost: int
    unexpected: int
    duplicated: int
    recovered: int
    broken: Mapping[str, int]
    """How often each other rule was broken."""
    examples: Sequence[str]

    @property
    def valid(self) -> bool:
        return not (self.lost or self.unexpected or self.broken)

    @classmethod
    def of(
        cls, journals: Sequence[Journal], counts: Mapping[str, int], examples: Sequence[str]
    ) -> Verdict:
        named = ("lost", "unexpected")
        return cls(
            attempted=sum(journal.attempted for journal in journals),
            confirmed=sum(journal.count(CONFIRMED) for journal in journals),
            nacked=sum(journal.count(NACKED) for journal in journals),
            unknown=sum(journal.count(UNKNOWN) for journal in journals),
            withdrawn=sum(journal.count(WITHDRAWN) for journal in journals),
            lost=counts.get("lost", 0),
            unexpected=counts.get("unexpected", 0),
            duplicated=counts.get("duplicated", 0),
            recovered=counts.get("recovered", 0),
            broken={
                rule: count
                for rule, count in counts.items()
                if rule in RULES and rule not in named and count
            },
            examples=list(examples),
        )

    def figures(self) -> dict[str, object]:
        """All but the examples."""
        figures = asdict(self)
        del figures["examples"]
        return figures
