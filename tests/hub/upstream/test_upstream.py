"""Each step of an upstream, as a value."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from warrenmq.hub.requests import Resource
from warrenmq.hub.upstream import upstream as steps
from warrenmq.hub.upstream.upstream import (
    Status,
    Upstream,
    UpstreamLease,
    UpstreamLeases,
    UpstreamRequest,
)

NOW = 1_000_000.0
WISH = UpstreamRequest("https://a/feed", "x", "news", "https://b/base", 1_000)
NEW = Upstream("1" * 32, "/", "feed", "guest", WISH, UpstreamLeases())
LINE = UpstreamLease("first", "https://a/hub", "https://a/feed", "secret")
SECOND = msgspec.structs.replace(LINE, token="second")


def active(lease_s: int = 1_000) -> Upstream:
    return steps.confirmed(steps.asking(NEW, LINE, NOW), NOW, lease_s, 0.0)


def test_from_the_wish_to_the_lease() -> None:
    assert steps.discovering(NEW, NOW).status is Status.DISCOVERING
    asked = steps.asking(NEW, LINE, NOW)
    assert (asked.status, asked.leases.pending) == (Status.PENDING, LINE)
    assert not asked.is_served(NOW)
    found = steps.confirmed(asked, NOW, 1_000, 0.5)
    assert found.status is Status.ACTIVE
    assert found.leases.pending is None and found.leases.leaving == ()
    assert found.leases.current == msgspec.structs.replace(LINE, expires_at=NOW + 1_000)
    assert found.renew_at == pytest.approx(NOW + 750)
    assert found.is_served(NOW + 999) and not found.is_served(NOW + 1_000)
    assert found.sink == Resource("/", "x", "news")
    assert found.callback(LINE) == "https://b/base/hub/callback/first"


@pytest.mark.parametrize(("chance", "part"), [(0.0, 0.7), (0.999999, 0.8)])
def test_renewed_in_time(chance: float, part: float) -> None:
    """At 70 to 80 % of the lease (websub.md 4)."""
    found = steps.confirmed(steps.asking(NEW, LINE, NOW), NOW, 1_000, chance)
    assert found.renew_at == pytest.approx(NOW + 1_000 * part)


def test_a_renewal_has_a_callback_of_its_own_and_both_are_valid_meanwhile() -> None:
    later = NOW + 700
    asked = steps.asking(steps.discovering(active(), later), SECOND, later)
    assert asked.status is Status.ACTIVE
    assert [lease.token for lease in asked.leases.all()] == ["second", "first"]
    renewed = steps.confirmed(asked, later, 1_000, 0.0)
    assert renewed.leases.current == msgspec.structs.replace(SECOND, expires_at=later + 1_000)
    [old] = renewed.leases.leaving
    # Half of what is left of its lease, and an hour at most.
    assert (old.token, old.leave_at) == ("first", later + 150)
    asked = steps.asking(active(1_000_000), SECOND, later)
    [old] = steps.confirmed(asked, later, 1_000, 0.0).leases.leaving
    assert old.leave_at == later + steps.OVERLAP_S
    asked = steps.asking(active(), SECOND, NOW + 5_000)
    [old] = steps.confirmed(asked, NOW + 5_000, 1_000, 0.0).leases.leaving
    assert old.leave_at == NOW + 5_000


def test_a_failure_shows_while_the_lease_lasts() -> None:
    found = steps.failed(active(), NOW + 999, "why")
    assert (found.status, found.reason) == (Status.ACTIVE, "why")
    found = steps.failed(active(), NOW + 1_000, "why")
    assert (found.status, found.reason) == (Status.FAILED, "why")
    assert steps.failed(NEW, NOW, "why").status is Status.FAILED
    assert steps.discovering(found, NOW + 1_000).reason == ""


def test_refused_and_accepted() -> None:
    found = steps.refused(active(), "may not")
    assert (found.status, found.reason) == (Status.FAILED, "may not")
    assert steps.accepted(found) == active()


def test_denied() -> None:
    for before in (steps.asking(NEW, LINE, NOW), active()):
        found = steps.denied(before, "first", "no room")
        assert (found.status, found.reason) == (Status.DENIED, "no room")
        assert found.leases.all() == []
    # A renewal that is denied leaves what is served until its lease is over.
    found = steps.denied(steps.asking(active(), SECOND, NOW), "second", "no room")
    assert found.status is Status.DENIED
    assert [lease.token for lease in found.leases.all()] == ["first"]
    # A line that is being left is over anyway.
    leaving = UpstreamLeases(leaving=(LINE,), current=SECOND)
    found = steps.denied(replace(active(), leases=leaving), "first", "no")
    assert (found.status, found.leases.all()) == (Status.ACTIVE, [SECOND])


def test_ending_leaves_what_the_hub_knows() -> None:
    found = steps.ending(steps.asking(active(), SECOND, NOW), NOW + 5)
    assert found.status is Status.ENDING
    assert [(lease.token, lease.leave_at) for lease in found.leases.all()] == [("first", NOW + 5)]
    assert steps.ending(steps.asking(NEW, LINE, NOW), NOW).leases.all() == []
    assert steps.without(found, "first").leases.all() == []


def test_changed_keeps_what_is_still_wanted() -> None:
    request = msgspec.structs.replace(WISH, routing_key="k")
    found = steps.changed(active(), "tony", request, UpstreamLeases(given_secret="new"), NOW)
    assert (found.owner, found.request, found.renew_at) == ("tony", request, 0.0)
    assert found.status is Status.ACTIVE
    assert found.leases.given_secret == "new"
    assert found.leases.current == active().leases.current
    assert steps.changed(NEW, "tony", request, UpstreamLeases(), NOW).status is Status.DISCOVERING


@pytest.mark.parametrize("change", [{"url": "https://c/feed"}, {"hub": "https://c/hub"}])
def test_another_topic_leaves_the_old_one(change: dict[str, str]) -> None:
    request = msgspec.structs.replace(WISH, **change)
    found = steps.changed(active(), "guest", request, UpstreamLeases(authorization="Basic x"), NOW)
    assert found.status is Status.DISCOVERING
    assert found.leases.current is None and found.leases.authorization == "Basic x"
    [old] = found.leases.leaving
    assert (old.token, old.leave_at) == ("first", NOW)
