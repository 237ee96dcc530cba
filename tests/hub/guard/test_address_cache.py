"""What is known of names, and for how long."""

from __future__ import annotations

import pytest

from warrenmq.hub.guard.address_cache import LONGEST_S, SHORTEST_S, AddressCache
from warrenmq.hub.guard.addresses import parse_address

HERE = [parse_address("8.8.8.8")]
THERE = [parse_address("1.1.1.1")]


@pytest.mark.parametrize(("ttl_s", "kept_s"), [(0, SHORTEST_S), (60, 60), (86_400, LONGEST_S)])
def test_an_answer_holds_for_its_time_to_live_within_bounds(ttl_s: float, kept_s: float) -> None:
    answers = AddressCache()
    answers.put("a.example", HERE, ttl_s, now_s=100.0)
    assert answers.get("a.example", 100.0 + kept_s - 0.1) == HERE
    assert answers.get("a.example", 100.0 + kept_s) is None
    answers.put("a.example", THERE, ttl_s, now_s=500.0)
    assert answers.get("a.example", 500.0) == THERE


def test_the_number_of_names_is_limited() -> None:
    answers = AddressCache(max_names=3)
    for number in range(5):
        answers.put(f"{number}.example", HERE, 60, now_s=0.0)
    answers.put("2.example", THERE, 60, now_s=0.0)
    assert len(answers) == 3
    assert answers.get("1.example", 0.0) is None
    assert answers.get("2.example", 0.0) == THERE
