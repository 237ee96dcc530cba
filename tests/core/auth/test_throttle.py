"""Five wrong passwords a minute (reliability.md section 4)."""

from __future__ import annotations

import pytest

from warrenmq.core.auth import Throttle, throttle
from warrenmq.core.auth.throttle import network

from .conftest import Clock

HERE, THERE = "10.0.0.1", "10.0.0.2"


@pytest.fixture
def counter(clock: Clock) -> Throttle:
    return Throttle(clock)


def fail(counter: Throttle, times: int, user: str = "tony", address: str = HERE) -> None:
    for _ in range(times):
        counter.failed(user, address)


def test_sixth_login_waits_until_the_first_failure_is_a_minute_old(
    counter: Throttle, clock: Clock
) -> None:
    for _ in range(5):
        fail(counter, 1)
        clock.now += 10
    assert counter.wait_s("tony", HERE) == 10
    clock.now += 9.5
    assert counter.wait_s("tony", HERE) == 1
    clock.now += 0.5
    assert counter.wait_s("tony", HERE) == 0
    fail(counter, 1)
    assert counter.wait_s("tony", HERE) == 10


def test_any_minute_has_at_most_five_failures(counter: Throttle, clock: Clock) -> None:
    tries: list[float] = []
    for _ in range(600):
        if not counter.wait_s("tony", HERE):
            counter.failed("tony", HERE)
            tries.append(clock.now)
        clock.now += 1
    assert len(tries) == 50
    assert all(late - early >= 60 for early, late in zip(tries, tries[5:], strict=False))


def test_counts_is_false_without_recent_failures(counter: Throttle, clock: Clock) -> None:
    def counts() -> bool:
        return counter.counts

    assert not counts()
    fail(counter, 1)
    assert counts()
    clock.now += 60
    assert not counts()


def test_memory_is_bounded(counter: Throttle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MAX_PAIRS", 10)
    fail(counter, 5, "first")
    for number in range(9):
        fail(counter, 1, f"user{number}")
    assert counter.wait_s("first", HERE) == 60
    fail(counter, 1, "another")
    assert counter.wait_s("first", HERE) == 0


def test_trust_lasts_a_day_and_excuses_nothing(counter: Throttle, clock: Clock) -> None:
    fail(counter, 5)
    assert not counter.trusts("tony", HERE)
    counter.succeeded("tony", HERE)
    assert counter.trusts("tony", HERE)
    assert counter.wait_s("tony", HERE) == 60
    assert not counter.trusts("tony", THERE)
    assert not counter.trusts("evan", HERE)
    clock.now += 86_399
    assert counter.trusts("tony", HERE)
    clock.now += 1
    assert not counter.trusts("tony", HERE)


def test_few_wrong_passwords_are_remembered(counter: Throttle) -> None:
    counter.failed("tony", HERE, b"before")
    counter.succeeded("tony", HERE)
    assert not counter.was_wrong("tony", HERE, b"before")
    for digest in (b"1", b"2", b"2", b"3", b"4", b"5"):
        counter.failed("tony", HERE, digest)
    counter.succeeded("tony", HERE)
    known = [digest for digest in b"12345" if counter.was_wrong("tony", HERE, bytes((digest,)))]
    assert bytes(known) == b"2345"
    assert not counter.was_wrong("tony", THERE, b"5")


def test_fifty_passwords_a_minute_are_compared_with_recent_ones(
    counter: Throttle, clock: Clock
) -> None:
    for number in range(50):
        counter.missed_cache("tony", HERE, b"%d" % number)
        counter.missed_cache("tony", HERE, b"0")
    assert counter.may_use_cache("tony", HERE)
    counter.missed_cache("tony", HERE, b"50")
    assert not counter.may_use_cache("tony", HERE)
    assert counter.may_use_cache("tony", THERE)
    clock.now += 60
    assert counter.may_use_cache("tony", HERE)
    counter.missed_cache("tony", HERE, b"0")
    assert counter.may_use_cache("tony", HERE)


def test_the_memory_of_trust_is_bounded(counter: Throttle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MAX_PAIRS", 10)
    for number in range(10):
        counter.succeeded(f"user{number}", HERE)
    counter.succeeded("user0", HERE)
    counter.succeeded("user10", HERE)
    trusted = [number for number in range(11) if counter.trusts(f"user{number}", HERE)]
    assert trusted == [0, *range(2, 11)]


@pytest.mark.parametrize(
    ("address", "waits"),
    [("127.0.0.1", 0), ("::1", 0), ("::ffff:127.0.0.9", 0),
     (HERE, 60), ("::2", 60), ("behind 127.0.0.1", 60), ("", 60)],
)  # fmt: skip
def test_loopback_addresses_can_be_exempt(counter: Throttle, address: str, waits: int) -> None:
    counter.spares_loopback = True
    fail(counter, 5, address=address)
    assert counter.wait_s("tony", address) == waits
    counter.enabled = False
    fail(counter, 5, "evan", address=address)
    assert counter.wait_s("evan", address) == 0


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::%eth0", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ("behind 10.0.0.1", "behind 10.0.0.1"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_networks_that_count_as_one_address(address: str, counted: str) -> None:
    assert network(address) == counted
