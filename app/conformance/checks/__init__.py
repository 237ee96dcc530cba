"""The checks, a file for each group of numbers; importing one adds its checks."""

from ..registry import Check, registered
from . import (
    confirming,
    content,
    delivering,
    denying,
    ending,
    failing,
    leases,
    pinging,
    replacing,
    requesting,
)
from . import websub_rocks as known

__all__ = [
    "all_checks",
    "confirming",
    "content",
    "delivering",
    "denying",
    "ending",
    "failing",
    "known",
    "leases",
    "pinging",
    "replacing",
    "requesting",
]


def all_checks() -> list[Check]:
    """Returns all checks, by number."""
    return registered()
