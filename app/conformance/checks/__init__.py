"""The checks, a file for each group of numbers; importing one adds its checks."""

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
