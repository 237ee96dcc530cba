"""Warren in this process against the model, with a clock, restarts and kills."""

from __future__ import annotations

import pytest

from .broker import Model
from .inside import Inside
from .machine import Special, Timed, run
from .pair import Pair


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "cold"])
def test_inside(fast: bool) -> None:
    run(Timed, lambda: Pair(Inside(fast=fast), Model()), cases=55, steps=50)


def test_exchanges_that_choose_wait_or_remember() -> None:
    run(Special, lambda: Pair(Inside(), Model()), cases=35, steps=50)
