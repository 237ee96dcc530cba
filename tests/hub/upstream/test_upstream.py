"""The times and the leases that the steps of an upstream compute."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from warrenmq.hub.upstream import upstream as steps
from warrenmq.hub.upstream.renewal import retry_s
from warrenmq.hub.upstream.upstream import (
    Upstream,
    UpstreamLease,
    UpstreamLeases,
    UpstreamRequest,
    UpstreamStatus,
)

NOW = 1_000_000.0
REQUEST = UpstreamRequest("https://a/feed", "x", "news", "https://b/base", 1_000)
NEW = Upstream("1" * 32, "/", "feed", "guest", REQUEST, UpstreamLeases())
LEASE = UpstreamLease("first", "https://a/hub", "https://a/feed", "secret")
SECOND = msgspec.structs.replace(LEASE, token="second")


def active(lease_s: int = 1_000) -> Upstream:
    return steps.confirmed(steps.asking(NEW, LEASE, NOW), NOW, lease_s, 0.0)


@pytest.mark.parametrize(("chance", "part"), [(0.0, 0.7), (0.5, 0.75), (0.999999, 0.8)])
def test_renewed_in_time(chance: float, part: float) -> None:
    """At 70 to 80 % of the lease (websub.md 4)."""
    pending = steps.asking(NEW, LEASE, NOW)
    assert (pending.status, pending.is_served(NOW)) == (UpstreamStatus.PENDING, False)
    found = steps.confirmed(pending, NOW, 1_000, chance)
    assert found.renew_at == pytest.approx(NOW + 1_000 * part)
    assert (found.status, found.leases.pending) == (UpstreamStatus.ACTIVE, None)
    assert found.is_served(NOW + 999) and not found.is_served(NOW + 1_000)


@pytest.mark.parametrize(("lease_s", "renewed_after_s"), [(1, 300), (400, 300), (1_000, 700)])
def test_short_leases_are_not_renewed_more_often_than_asked(
    lease_s: int, renewed_after_s: float
) -> None:
    request = msgspec.structs.replace(REQUEST, min_renewal_s=300)
    pending = steps.asking(replace(NEW, request=request), LEASE, NOW)
    found = steps.confirmed(pending, NOW, lease_s, 0.0)
    assert found.renew_at == pytest.approx(NOW + renewed_after_s)


@pytest.mark.parametrize(
    ("lease_s", "after_s", "left_after_s"),
    [(1_000, 700, 150), (1_000_000, 700, steps.OVERLAP_S), (1_000, 5_000, 0)],
)
def test_a_renewal_keeps_the_old_lease_for_a_while(
    lease_s: int, after_s: float, left_after_s: float
) -> None:
    """For half of the rest of it, and an hour at most."""
    later = NOW + after_s
    pending = steps.asking(steps.discovering(active(lease_s), later), SECOND, later)
    assert [lease.token for lease in pending.leases.all()] == ["second", "first"]
    renewed = steps.confirmed(pending, later, 1_000, 0.0)
    assert renewed.leases.current == msgspec.structs.replace(SECOND, expires_at=later + 1_000)
    [old] = renewed.leases.leaving
    assert (old.token, old.leave_at) == ("first", later + left_after_s)


@pytest.mark.parametrize(
    ("failures", "chance", "expected_s"),
    [(1, 0.5, 30.0), (1, 0.0, 24.0), (2, 1.0, 72.0), (4, 0.5, 240.0), (10_000, 0.5, 3_600.0)],
)
def test_waits_after_failures_double(failures: int, chance: float, expected_s: float) -> None:
    assert retry_s(30.0, failures, chance) == pytest.approx(expected_s)


def test_a_failure_ends_with_the_lease() -> None:
    found = [steps.failed(active(), NOW + 999, "why"), steps.failed(active(), NOW + 1_000, "why")]
    assert [one.status for one in found] == [UpstreamStatus.ACTIVE, UpstreamStatus.FAILED]
    assert {one.reason for one in found} == {"why"}
    assert steps.discovering(found[1], NOW + 1_000).reason == ""


def test_denied() -> None:
    for before in (steps.asking(NEW, LEASE, NOW), active()):
        found = steps.denied(before, "first", "no room")
        assert (found.status, found.reason, found.leases.all()) == (
            UpstreamStatus.DENIED,
            "no room",
            [],
        )
    # A denied renewal leaves the current lease.
    found = steps.denied(steps.asking(active(), SECOND, NOW), "second", "no room")
    assert found.status is UpstreamStatus.DENIED
    assert [lease.token for lease in found.leases.all()] == ["first"]
    # A lease that is being left ends silently.
    leaving = UpstreamLeases(leaving=(LEASE,), current=SECOND)
    found = steps.denied(replace(active(), leases=leaving), "first", "no")
    assert (found.status, found.leases.all()) == (UpstreamStatus.ACTIVE, [SECOND])


def test_ending_leaves_all_but_pending_leases() -> None:
    found = steps.ending(steps.asking(active(), SECOND, NOW), NOW + 5)
    assert found.status is UpstreamStatus.ENDING
    assert [(lease.token, lease.leave_at) for lease in found.leases.all()] == [("first", NOW + 5)]
    assert steps.without(found, "first").leases.all() == []


def test_a_change_keeps_the_lease_of_the_same_topic() -> None:
    request = msgspec.structs.replace(REQUEST, routing_key="k")
    found = steps.changed(active(), "tony", request, UpstreamLeases(given_secret="new"), NOW)
    assert (found.owner, found.request, found.renew_at) == ("tony", request, 0.0)
    assert (found.status, found.leases.given_secret) == (UpstreamStatus.ACTIVE, "new")
    assert found.leases.current == active().leases.current


@pytest.mark.parametrize("change", [{"url": "https://c/feed"}, {"hub": "https://c/hub"}])
def test_a_change_of_topic_leaves_the_lease(change: dict[str, str]) -> None:
    request = msgspec.structs.replace(REQUEST, **change)
    found = steps.changed(active(), "guest", request, UpstreamLeases(authorization="Basic x"), NOW)
    assert found.status is UpstreamStatus.DISCOVERING
    assert (found.leases.current, found.leases.authorization) == (None, "Basic x")
    assert [(one.token, one.leave_at) for one in found.leases.leaving] == [("first", NOW)]


def test_a_topic_that_names_ever_other_hubs_leaves_the_last_ones() -> None:
    upstream, names = active(1_000_000), [f"https://hub-{number}/" for number in range(50)]
    for name in names:
        request = msgspec.structs.replace(REQUEST, hub=name)
        upstream = steps.changed(upstream, "guest", request, UpstreamLeases(), NOW)
        lease = UpstreamLease(name, name, REQUEST.url)
        upstream = steps.confirmed(steps.asking(upstream, lease, NOW), NOW, 1_000_000, 0.0)
    assert [one.token for one in upstream.leases.leaving] == names[-1 - steps.MAX_LEAVING : -1]
