"""x-random and x-local-random (amqp.md section 4): every binding has the same chance."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from tests.core.route.support import FakeQueue, exchange, unbind_each
from warrenmq.core.route import at_random
from warrenmq.core.route.exchange import Exchange

MESSAGES = 20_000


@pytest.fixture(autouse=True)
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_random, "chance", Random(11))


@pytest.fixture(params=["x-random", "x-local-random"])
def source(request: pytest.FixtureRequest) -> Exchange:
    made = exchange(request.param)
    for name in "abcd":
        made.bind(FakeQueue(name), name, {})
    return made


def picks(source: Exchange, count: int = MESSAGES) -> list[str]:
    return [queue.name for _ in range(count) for queue in source.match("a", None)]


def test_the_pick_is_uniform_and_the_key_ignored(source: Exchange) -> None:
    found = picks(source)
    counts = Counter(found)
    assert len(found) == MESSAGES
    assert [counts[name] for name in "abcd"] == [pytest.approx(MESSAGES / 4, rel=0.05)] * 4
    pairs = Counter(pairwise(found))
    assert len(pairs) == 16
    assert all(count == pytest.approx(MESSAGES / 16, rel=0.15) for count in pairs.values())


def test_each_binding_has_the_same_chance(source: Exchange) -> None:
    """As in RabbitMQ."""
    queue = next(iter(source.destinations))
    for number in range(4):
        source.bind(queue, str(number), {})
    assert picks(source).count("a") == pytest.approx(MESSAGES * 5 / 8, rel=0.05)


def test_only_bound_destinations_are_picked(source: Exchange) -> None:
    gone = next(iter(source.destinations))
    assert set(picks(source, 100)) == set("abcd")
    unbind_each(source, gone)
    source.bind(FakeQueue("e"), "", {})
    assert set(picks(source, 100)) == set("bcde")
    for destination in tuple(source.destinations):
        unbind_each(source, destination)
    assert picks(source, 1) == []
