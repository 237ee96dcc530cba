"""Each step of an upstream, as a value."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from warrenmq.hub.requests import Resource
from warrenmq.hub.upstream import upstream as steps
from warrenmq.hub.upstream.upstream import Line, Lines, Status, Upstream, Wish

NOW = 1_000_000.0
WISH = Wish("https://a/feed", "x", "news", "https://b/base", 1_000)
NEW = Upstream("1" * 32, "/", "feed", "guest", WISH, Lines())
LINE = Line("first", "https://a/hub", "https://a/feed", "secret")
SECOND = msgspec.structs.replace(LINE, token="second")


def active(lease_s: int = 1_000) -> Upstream:
    return steps.confirmed(steps.asking(NEW, LINE, NOW), NOW, lease_s, 0.0)


def test_from_the_wish_to_the_lease() -> None:
    assert steps.discovering(NEW, NOW).status is Status.DISCOVERING
    asked = steps.asking(NEW, LINE, NOW)
    assert (asked.status, asked.lines.pending) == (Status.PENDING, LINE)
    assert not asked.is_served(NOW)
    found = steps.confirmed(asked, NOW, 1_000, 0.5)
    assert found.status is Status.ACTIVE
    assert found.lines.pending is None and found.lines.leaving == ()
    assert found.lines.current == msgspec.structs.replace(LINE, expires_at=NOW + 1_000)
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
    assert [line.token for line in asked.lines.all()] == ["second", "first"]
    renewed = steps.confirmed(asked, later, 1_000, 0.0)
    assert renewed.lines.current == msgspec.structs.replace(SECOND, expires_at=later + 1_000)
    [old] = renewed.lines.leaving
    # Half of what is left of its lease, and an hour at most.
    assert (old.token, old.leave_at) == ("first", later + 150)
    asked = steps.asking(active(1_000_000), SECOND, later)
    [old] = steps.confirmed(asked, later, 1_000, 0.0).lines.leaving
    assert old.leave_at == later + steps.OVERLAP_S
    asked = steps.asking(active(), SECOND, NOW + 5_000)
    [old] = steps.confirmed(asked, NOW + 5_000, 1_000, 0.0).lines.leaving
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
        assert found.lines.all() == []
    # A renewal that is denied leaves what is served until its lease is over.
    found = steps.denied(steps.asking(active(), SECOND, NOW), "second", "no room")
    assert found.status is Status.DENIED
    assert [line.token for line in found.lines.all()] == ["first"]
    # A line that is being left is over anyway.
    leaving = Lines(leaving=(LINE,), current=SECOND)
    found = steps.denied(replace(active(), lines=leaving), "first", "no")
    assert (found.status, found.lines.all()) == (Status.ACTIVE, [SECOND])


def test_ending_leaves_what_the_hub_knows() -> None:
    found = steps.ending(steps.asking(active(), SECOND, NOW), NOW + 5)
    assert found.status is Status.ENDING
    assert [(line.token, line.leave_at) for line in found.lines.all()] == [("first", NOW + 5)]
    assert steps.ending(steps.asking(NEW, LINE, NOW), NOW).lines.all() == []
    assert steps.without(found, "first").lines.all() == []


def test_changed_keeps_what_is_still_wanted() -> None:
    wish = msgspec.structs.replace(WISH, routing_key="k")
    found = steps.changed(active(), "tony", wish, Lines(given_secret="new"), NOW)
    assert (found.owner, found.wish, found.renew_at) == ("tony", wish, 0.0)
    assert found.status is Status.ACTIVE
    assert found.lines.given_secret == "new"
    assert found.lines.current == active().lines.current
    assert steps.changed(NEW, "tony", wish, Lines(), NOW).status is Status.DISCOVERING


@pytest.mark.parametrize("change", [{"url": "https://c/feed"}, {"hub": "https://c/hub"}])
def test_another_topic_leaves_the_old_one(change: dict[str, str]) -> None:
    wish = msgspec.structs.replace(WISH, **change)
    found = steps.changed(active(), "guest", wish, Lines(authorization="Basic x"), NOW)
    assert found.status is Status.DISCOVERING
    assert found.lines.current is None and found.lines.authorization == "Basic x"
    [old] = found.lines.leaving
    assert (old.token, old.leave_at) == ("first", NOW)
