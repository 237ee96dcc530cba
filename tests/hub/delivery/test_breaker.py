from __future__ import annotations

import pytest

from warrenmq.hub.delivery.breaker import Breaker, BreakerState

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN

STORIES: dict[str, tuple[str, list[float], BreakerState]] = {
    # f: a failure, s: a success, c: the cool-down is over. Then the cool-downs, in their order.
    "nine failures": ("f" * 9, [], CLOSED),
    "ten failures": ("f" * 10, [10], OPEN),
    "a success in between": ("f" * 9 + "s" + "f" * 9, [], CLOSED),
    "what was under way fails too": ("f" * 13, [10], OPEN),
    "what was under way succeeds": ("f" * 10 + "s", [10], CLOSED),
    "the cool-down is over": ("f" * 10 + "c", [10], HALF_OPEN),
    "the probe fails": ("f" * 10 + "cf", [10, 20], OPEN),
    "the probe succeeds": ("f" * 10 + "cs", [10], CLOSED),
    "ever longer, up to five minutes": (
        "f" * 10 + "cf" * 7, [10, 20, 40, 80, 160, 300, 300, 300], OPEN,
    ),
    "short again after a success": ("f" * 10 + "cfcs" + "f" * 10, [10, 20, 10], OPEN),
    "a cool-down of one that is closed": ("fc", [], CLOSED),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_the_breaker_opens_half_opens_and_closes(story: str) -> None:
    events, cool_downs, state = STORIES[story]
    breaker = Breaker()
    seen: list[float] = []
    for now_s, event in enumerate(events, start=100):
        if event == "f" and (cool_down_s := breaker.failed(now_s)):
            seen.append(cool_down_s)
            assert breaker.open_until_s == now_s + cool_down_s
        elif event == "s":
            breaker.succeeded()
        elif event == "c":
            breaker.cooled_down()
    assert seen == cool_downs
    assert breaker.state is state
