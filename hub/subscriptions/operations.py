"""What operators and owners do to subscriptions beside subscribing. Rights are for the routes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ..settings import HubSettings
from ..tasks import Tasks
from ..topics.topics import Topics
from .book import Book
from .endings import REMOVED
from .intent import grant_lease, read_lease
from .live import Live
from .subscription import Subscription


class Operations:
    """What was begun goes on to its end, also where the client hangs up."""

    def __init__(self, book: Book, topics: Topics, settings: HubSettings, tasks: Tasks) -> None:
        self._book = book
        self._topics = topics
        self._settings = settings
        self._tasks = tasks

    def all(self) -> list[Subscription]:
        return [live.subscription for live in self._book.all()]

    def lives(self) -> list[Live]:
        return self._book.all()

    def find(self, identity: str) -> Live | None:
        return self._book.find(identity)

    def by_id(self, subscription_id: str) -> Live | None:
        return self._book.by_id(subscription_id)

    async def pause(self, live: Live, reason: str) -> None:
        """Raises `BadRequest` for a binding inside the broker."""
        await self._carry(self._book.pause(live, reason))

    async def resume(self, live: Live) -> None:
        """Raises `BadRequest` for one whose callback has never agreed."""
        await self._carry(self._book.resume(live))
        self._topics.resumed(live.subscription.topic)

    async def renew(self, live: Live, lease_seconds: str | int) -> int:
        """Gives the seconds that were granted, from now on, by the rule of the place where it was
        subscribed: `/hub` raises `BadRequest` for what is out of its bounds."""
        asked, subscription = str(lease_seconds), live.subscription
        if subscription.is_websub:
            is_stranger = subscription.is_strangers
            granted = read_lease(asked, self._settings, is_stranger=is_stranger)
        else:
            granted = grant_lease(asked, self._settings)
        await self._carry(self._book.renew(live, granted))
        return granted

    async def end(self, live: Live, reason: str = REMOVED) -> None:
        """Without asking its callback, which is told the reason (WebSub 5.2)."""
        await self._carry(self._book.end(live, reason, announce=True))

    async def _carry(self, work: Coroutine[Any, Any, None]) -> None:
        await asyncio.shield(self._tasks.own(work))
