"""What a check has subscribed ends with it: a hub that was tried is left as it was."""

from __future__ import annotations

import httpx
import pytest

from tests.hub.support import until
from tests.support.server import WarrenServer
from warrenmq.app.conformance.options import Options
from warrenmq.app.conformance.results import Outcome
from warrenmq.app.conformance.runner import run

from .support import QUICK
from .wrong_hub import WrongHub

REPLACES, CONFIRMS_LATE, TWO_TOPICS, GONE, FAILS = 103, 110, 129, 137, 163


@pytest.mark.parametrize("number", [REPLACES, CONFIRMS_LATE, TWO_TOPICS, FAILS])
async def test_nothing_is_left_at_the_hub(number: int) -> None:
    async with WrongHub() as hub:
        await run(Options(hub=hub.url, only=frozenset((number,)), **QUICK))
        await until(lambda: hub.subscribers == 0, "end of all")


async def test_a_hub_that_never_ends_subscriptions_does_not_block() -> None:
    async with WrongHub("never ends") as hub:
        (found,) = await run(Options(hub=hub.url, only=frozenset((REPLACES,)), **QUICK))
        assert found.outcome is Outcome.PASS


async def test_nothing_is_left_at_warren(warren: WarrenServer) -> None:
    numbers = frozenset((REPLACES, CONFIRMS_LATE, TWO_TOPICS, GONE, FAILS))
    await run(Options(hub=f"{warren.http_url}/hub", only=numbers, **QUICK))
    with httpx.Client(auth=("guest", "guest"), trust_env=False) as client:
        listing = f"{warren.http_url}/subscriptions"
        await until(lambda: client.get(listing).json()["subscriptions"] == [], "end of all")
