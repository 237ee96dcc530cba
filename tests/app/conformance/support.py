"""How the checks are run against the small hub: as in real life, with less patience."""

from __future__ import annotations

from typing import Any

from warrenmq.app.conformance.options import Options
from warrenmq.app.conformance.results import Result
from warrenmq.app.conformance.runner import run

from .wrong_hub import WrongHub

QUICK: dict[str, Any] = {
    "patience_s": 3.0,
    "grace_s": 0.5,
    "settle_s": 0.2,
    "short_lease_s": 2,
    "slow": True,
}


async def check(*faults: str, only: int | None = None, **changed: Any) -> list[Result]:
    """What the checks say of a hub with these faults."""
    async with WrongHub(*faults) as hub:
        numbers = frozenset() if only is None else frozenset((only,))
        return await run(Options(hub=hub.url, only=numbers, **{**QUICK, **changed}))
