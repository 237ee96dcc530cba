"""Whose rights are watched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from warrenmq.hub.owner_rights import EverybodyMay
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.owned import Owned
from warrenmq.hub.subscriptions.subscription import Subscription

from ..support import NEWS


class Watched(EverybodyMay):
    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def watch(self, owner: str, changed: Callable[[str], None]) -> None:
        self.calls.append(("watch", owner))

    def unwatch(self, owner: str) -> None:
        self.calls.append(("unwatch", owner))


def owned_by(owner: str) -> ActiveSubscription:
    return ActiveSubscription(Subscription("1", NEWS, "#", "http://s/cb", 60, 0.0, owner))


def test_owners_are_watched_while_they_own_something() -> None:
    rights = Watched()
    owned = Owned(rights)
    first, second, other = owned_by("bob"), owned_by("bob"), owned_by("eve")
    for active in (first, second, other):
        owned.add(active)
    assert owned.of("bob") == [first, second] and owned.of("nobody") == []
    owned.remove(first, "bob")
    owned.remove(second, "bob")
    assert rights.calls == [("watch", "bob"), ("watch", "eve"), ("unwatch", "bob")]
    assert owned.of("bob") == []


async def test_many_changes_in_a_row_are_one() -> None:
    rights = Watched()
    owned = Owned(rights)
    owned.add(owned_by("bob"))
    waiting = asyncio.create_task(owned.changed())
    for owner in ("bob", "gone", "bob"):
        owned.note(owner)
    assert await waiting == ["bob", "gone"]
    # It may be another user of that name, made anew.
    assert rights.calls == [("watch", "bob"), ("watch", "bob")]
