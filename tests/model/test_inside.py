"""Warren in this process against the model, with a clock, restarts and kills."""

from __future__ import annotations

from contextlib import suppress

import pytest

from .broker import Model, Unsure
from .inside import Inside
from .machine import Special, Timed, run
from .operations import Operation
from .pair import Pair
from .stories import STORIES

pytestmark = pytest.mark.promise


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "cold"])
def test_inside(fast: bool) -> None:
    run(Timed, lambda: Pair(Inside(fast=fast, pages=not fast), Model()), cases=30, steps=50)


def test_exchanges_that_choose_wait_or_remember() -> None:
    run(Special, lambda: Pair(Inside(pages=True), Model()), cases=20, steps=50)


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "cold"])
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_stories(story: tuple[Operation, ...], fast: bool) -> None:
    pair = Pair(Inside(fast=fast, pages=not fast), Model())
    try:
        with suppress(Unsure):
            for operation in story:
                pair.do(operation)
    finally:
        pair.close()
