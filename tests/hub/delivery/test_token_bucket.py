from __future__ import annotations

import pytest

from warrenmq.hub.delivery.token_bucket import TokenBucket


@pytest.mark.parametrize(("rate", "burst"), [(1, 1), (10, 1), (50, 5), (1_000, 100)])
def test_the_burst(rate: int, burst: int) -> None:
    bucket = TokenBucket(rate, 0.0)
    assert [bucket.take(0.0) for _ in range(burst + 1)] == [True] * burst + [False]


@pytest.mark.parametrize("rate", [1, 3, 1_000])
def test_the_rate_over_ten_seconds(rate: int) -> None:
    bucket = TokenBucket(rate, 0.0)
    taken = sum(bucket.take(step / 5_000) for step in range(50_001))
    assert abs(taken - 10 * rate) <= max(1, rate * 0.1)


def test_the_wait_for_a_token() -> None:
    bucket = TokenBucket(4, 0.0)
    assert bucket.wait_s(0.0) == 0.0
    assert bucket.take(0.0) and bucket.wait_s(0.0) == 0.25
    assert not bucket.take(0.2) and bucket.take(0.25)


def test_tokens_do_not_accumulate() -> None:
    bucket = TokenBucket(50, 0.0)
    assert sum(bucket.take(3_600.0) for _ in range(100)) == 5


def test_a_bucket_is_full_again_after_a_pause() -> None:
    bucket = TokenBucket(1, 0.0)
    assert bucket.is_full(0.0) and bucket.take(0.0)
    assert not bucket.is_full(0.9) and bucket.is_full(1.0)
