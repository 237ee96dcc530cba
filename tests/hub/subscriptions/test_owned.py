"""Whose rights are watched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from warrenmq.hub.owner_rights import AllowAll
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.owned import SubscriptionsByOwner

from ..support import subscription

WAIT_S = 30.0


class Watched(AllowAll):
    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def watch(self, owner: str, changed: Callable[[str], None]) -> None:
        self.calls.append(("watch", owner))

    def unwatch(self, owner: str, changed: Callable[[str], None]) -> None:
        self.calls.append(("unwatch", owner))


def owned_by(owner: str) -> ActiveSubscription:
    return ActiveSubscription(subscription(owner=owner))


def test_owners_are_watched_while_they_own_something() -> None:
    rights = Watched()
    owned = SubscriptionsByOwner(rights)
    first, second, other = owned_by("bob"), owned_by("bob"), owned_by("eve")
    for active in (first, second, other):
        owned.add(active)
    assert owned.of("bob") == [first, second] and owned.of("nobody") == []
    owned.remove(first, "bob")
    owned.remove(second, "bob")
    assert rights.calls == [("watch", "bob"), ("watch", "eve"), ("unwatch", "bob")]
    assert owned.of("bob") == []


async def test_repeated_changes_are_one() -> None:
    rights = Watched()
    owned = SubscriptionsByOwner(rights)
    owned.add(owned_by("bob"))
    waiting = asyncio.create_task(owned.changed())
    for owner in ("bob", "gone", "bob"):
        owned.note(owner)
    assert await waiting == ["bob", "gone"]
    # It may be another user of that name, made anew.
    assert rights.calls == [("watch", "bob"), ("watch", "bob")]


async def test_a_permission_that_was_lost_while_a_subscription_was_stored_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owned = SubscriptionsByOwner(AllowAll())
    owned.add(owned_by("bob"))
    monkeypatch.setattr(AllowAll, "read_refusal", lambda *_: "eve was deleted")
    owned.add(owned_by("eve"))
    async with asyncio.timeout(WAIT_S):
        assert await owned.changed() == ["eve"]
