"""Weighted rendezvous hashing: shares, few moves, the same answer always."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.route.support import FakeQueue, exchange
from warrenmq.core.route.buckets import Buckets
from warrenmq.core.route.hashing import HASH_VALUES, hash_of

KEYS = 100_000
SOME = 20_000


@cache
def keys(kind: str) -> list[int]:
    chance = Random(20)
    texts = {
        "random": (chance.randbytes(12).hex() for _ in range(KEYS)),
        "sequential": (f"key-{number}" for number in range(KEYS)),
        "alike": (f"eu.customers.{number:08}.changed" for number in range(KEYS)),
    }
    return [hash_of(text.encode()) for text in texts[kind]]


def buckets(**weights: int) -> Buckets:
    return Buckets((FakeQueue(name), weight) for name, weight in weights.items())


def places(found: Buckets, kind: str = "random", count: int = KEYS) -> list[str]:
    return [found.pick(key).name for key in keys(kind)[:count]]


def moves(before: Buckets, after: Buckets) -> Counter[tuple[str, str]]:
    """How many of `SOME` keys went from where to where."""
    pairs = zip(places(before, count=SOME), places(after, count=SOME), strict=True)
    return Counter(pair for pair in pairs if pair[0] != pair[1])


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


def test_many_queues_differ_by_no_more_than_chance() -> None:
    """Chi-squared of 64 equal shares: 63 on average, 11 its deviation."""
    counts = Counter(places(buckets(**{f"q{number}": 7 for number in range(64)})))
    expected = KEYS / 64
    assert 30 < sum((count - expected) ** 2 / expected for count in counts.values()) < 96


def test_a_small_weight_beside_the_largest_gets_its_share_too() -> None:
    counts = Counter(places(buckets(small=1, large=10_000)))
    assert 3 <= counts["small"] <= 20


def test_a_new_queue_takes_its_share_and_nothing_else_moves() -> None:
    moved = moves(buckets(a=10, b=10, c=20), buckets(a=10, b=10, c=20, new=10))
    assert {new for _, new in moved} == {"new"}
    assert moved.total() / SOME == pytest.approx(10 / 50, rel=0.05)
    assert moved["c", "new"] / moved["a", "new"] == pytest.approx(2, rel=0.2)


def test_a_queue_that_goes_leaves_its_share_and_nothing_else_moves() -> None:
    moved = moves(buckets(a=10, b=10, c=20, going=20), buckets(a=10, b=10, c=20))
    assert {old for old, _ in moved} == {"going"}
    assert moved.total() / SOME == pytest.approx(20 / 60, rel=0.05)
    assert moved["going", "c"] / moved["going", "a"] == pytest.approx(2, rel=0.2)


def test_a_heavier_queue_only_gains() -> None:
    moved = moves(buckets(a=10, b=10, c=10), buckets(a=10, b=10, c=20))
    assert {new for _, new in moved} == {"c"}
    assert moved.total() / SOME == pytest.approx(1 / 2 - 1 / 3, rel=0.05)


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
    picks = [Buckets((FakeQueue(name), weight) for name, weight in order) for order in orders]
    assert picks[0].pick(key).name == picks[1].pick(key).name


def test_keys_stay_where_they_were_in_every_process_and_release() -> None:
    """Written down once; hashes of Python itself would differ with each start."""
    found = buckets(a=10, b=10, c=20, d=20)
    assert "".join(found.pick(hash_of(b"key-%d" % number)).name for number in range(40)) == (
        "bdcbcadcaccbcdcdcadcdccccaccdbdbcddaddda"
    )


def test_a_queue_and_an_exchange_of_one_name_have_buckets_of_their_own() -> None:
    queue, onward = FakeQueue("n"), exchange("fanout", "n")
    found = Buckets([(queue, 1), (onward, 1)])
    counts = Counter(found.pick(key) is queue for key in keys("random")[:1000])
    assert 400 < counts[True] < 600


@pytest.mark.parametrize("key", [0, 1, HASH_VALUES - 1])
def test_any_hash_has_a_bucket(key: int) -> None:
    assert buckets(a=1, b=2, c=2).pick(key).name in "abc"
    assert buckets(a=1).pick(key).name == "a"


def test_count() -> None:
    assert [len(buckets()), len(buckets(a=1, b=1))] == [0, 2]
