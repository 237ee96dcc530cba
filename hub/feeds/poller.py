"""Polls feeds when they are due.

Times of the next polls are stored, so they survive a restart; those that were due meanwhile are
spread over some time. Polls take turns by host.
"""

from __future__ import annotations

import asyncio
import logging
import random
from urllib.parse import urlsplit

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..deadlines import Deadlines
from ..guard import domains
from ..settings import HubSettings
from ..tasks import Tasks
from .announcements import Announcement
from .feed import Feed, FeedState
from .hosts import HostRoundRobin
from .polling import PollCause, Polling
from .publishing import FeedPublisher
from .registry import FeedRegistry
from .schedule import spread_s

log = logging.getLogger(__name__)


class Poller:
    """Begins polls; `plan` sets when a feed is polled next."""

    def __init__(
        self,
        registry: FeedRegistry,
        polling: Polling,
        publisher: FeedPublisher,
        settings: HubSettings,
        clock: Clock,
        tasks: Tasks,
    ) -> None:
        self._registry = registry
        self._polling = polling
        self._publisher = publisher
        self._clock = clock
        self._gap_s = settings.fetch_gap_s
        self._tasks = tasks
        self._deadlines = Deadlines(clock)
        self._hosts = HostRoundRobin(settings.fetch_concurrency, settings.fetch_per_domain)
        self._due: set[str] = set()
        """Feeds that wait for their turn or are polled."""

    def load(self) -> None:
        """Plans the polls of all feeds; those with entries that are not published come first."""
        now_s = self._clock.wall_s()
        active = [feed for feed in self._registry.all() if feed.state is FeedState.ACTIVE]
        overdue = sum(feed.next_at <= now_s for feed in active)
        for feed in active:
            if self._publisher.groups.is_behind(feed):
                self._deadlines.set(feed.name, 0.0)
            elif feed.next_at <= now_s:
                self._deadlines.set(feed.name, spread_s(overdue, random.random()))
            else:
                self.plan(feed)

    def plan(self, feed: Feed) -> None:
        """Sets when the feed is polled next, by its state."""
        if feed.state is FeedState.ACTIVE:
            at = self._registry.announcements.due(feed).next_at
            self._deadlines.set(feed.name, max(0.0, at - self._clock.wall_s()))
        else:
            self._deadlines.remove(feed.name)

    def announce(self, feed: Feed) -> None:
        """Polls a feed soon, whose change was announced."""
        gap_s = feed.status.checked_at + self._gap_s - self._clock.wall_s()
        self._deadlines.set(feed.name, min(self._gap_s, max(0.0, gap_s)))

    def plan_again(self, name: str) -> None:
        """Sets when a feed is polled again whose poll could not be stored or published, also if a
        change of it was announced."""
        feed = self._registry.get(name)
        if feed is not None and feed.state is FeedState.ACTIVE:
            self._deadlines.set(name, max(0.0, feed.next_at - self._clock.wall_s()))

    def forget(self, name: str) -> None:
        """Removes the plan for a removed feed."""
        self._deadlines.remove(name)

    async def watch(self) -> None:
        """Begins polls when they are due; runs until cancelled."""
        await self._deadlines.wait()
        await domains.load()
        while True:
            await self._deadlines.wait()
            for name in self._deadlines.take_due():
                feed = self._registry.get(name)
                if name in self._due:
                    continue  # it is planned anew when that poll ends
                if feed is not None:
                    self._due.add(name)
                    self._hosts.add(_host(feed.url), name)
            self._begin()

    def _begin(self) -> None:
        while (turn := self._hosts.take()) is not None:
            self._tasks.own(self._run(*turn))

    async def _run(self, host: str, name: str) -> None:
        announced = self._registry.announcements.take(name)
        try:
            feed = await self._polling.poll(name, _cause(announced))
        except WarrenError:
            self._failed(name, announced)
        except Exception:
            log.exception("the poll of feed '%s' failed unexpectedly", name)
            self._failed(name, announced)
        else:
            self._done(feed)
        finally:
            self._due.discard(name)
            self._hosts.done(host)
            asyncio.get_running_loop().call_soon(self._begin)

    def _done(self, feed: Feed | None) -> None:
        if feed is not None and self._registry.announcements.has(feed.name):
            self.announce(feed)  # once more: by another change, perhaps
        elif feed is not None:
            self.plan(feed)

    def _failed(self, name: str, announced: Announcement | None) -> None:
        if announced is not None and self._registry.get(name) is not None:
            self._registry.announcements.add(name, announced)
        self.plan_again(name)


def _cause(announced: Announcement | None) -> PollCause:
    if announced is None:
        return PollCause.SCHEDULED
    return PollCause.PUSHED if announced.is_push else PollCause.PINGED


def _host(url: str) -> str:
    """Returns the owner of the URL's host, as all requests to others are counted."""
    return domains.owner_of(urlsplit(url).hostname or "")
