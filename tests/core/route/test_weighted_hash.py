"""Weighted rendezvous hashing: shares, few moves, the same result in every process."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.route.support import FakeQueue
from warrenmq.core.route.hashing import HASH_VALUES, hash_of
from warrenmq.core.route.weighted_hash import WeightedHash

KEYS = 100_000


@cache
def keys(kind: str) -> list[int]:
    chance = Random(20)
    texts = {
        "random": (chance.randbytes(12).hex() for _ in range(KEYS)),
        "sequential": (f"key-{number}" for number in range(KEYS)),
        "alike": (f"eu.customers.{number:08}.changed" for number in range(KEYS)),
    }
    return [hash_of(text.encode()) for text in texts[kind]]


def buckets(**weights: int) -> WeightedHash:
    return WeightedHash((FakeQueue(name), weight) for name, weight in weights.items())


def places(found: WeightedHash, kind: str = "random") -> list[str]:
    return [found.pick(key).name for key in keys(kind)]


@pytest.mark.parametrize(
    ("kind", "scale"),
    [("random", 1), ("sequential", 1), ("alike", 1), ("random", 100), ("random", 500)],
)
def test_shares_of_10_10_20_20_are_within_5_percent(kind: str, scale: int) -> None:
    """The same for weights up to 10,000."""
    weights = {"a": 10 * scale, "b": 10 * scale, "c": 20 * scale, "d": 20 * scale}
    counts = Counter(places(buckets(**weights), kind))
    for name, weight in weights.items():
        assert counts[name] / KEYS == pytest.approx(weight / (60 * scale), rel=0.05)


def test_a_small_weight_beside_the_largest_gets_its_share_too() -> None:
    counts = Counter(places(buckets(small=1, large=10_000)))
    assert 3 <= counts["small"] <= 20


@given(
    st.lists(
        st.tuples(st.text(max_size=8), st.sampled_from([1, 10, 10, 10_000])),
        min_size=1, max_size=12, unique_by=lambda pair: pair[0],
    ).flatmap(lambda weights: st.tuples(st.just(weights), st.permutations(weights))),
    st.integers(0, HASH_VALUES - 1),
)  # fmt: skip
def test_the_order_does_not_count(
    orders: tuple[list[tuple[str, int]], list[tuple[str, int]]], key: int
) -> None:
    picks = [WeightedHash((FakeQueue(name), weight) for name, weight in order) for order in orders]
    assert picks[0].pick(key).name == picks[1].pick(key).name


def test_mapping_is_the_same_in_every_process_and_release() -> None:
    """Written down once; hashes of Python itself would differ with each start."""
    found = buckets(a=10, b=10, c=20, d=20)
    assert "".join(found.pick(hash_of(b"key-%d" % number)).name for number in range(40)) == (
        "bdcbcadcaccbcdcdcadcdccccaccdbdbcddaddda"
    )
