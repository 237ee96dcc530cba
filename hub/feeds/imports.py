"""Registers the feeds of an OPML document in the background; each is polled later, in its turn."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..errors import HubError
from ..formats.opml import Opml, Outline
from ..tasks import Tasks
from .feed import Feed, FeedRequest
from .list_key import ListKey
from .lists import FeedLists
from .opml import SELECTOR, feed_outlines
from .privacy import may_see_urls
from .registration import FeedRegistration, Registrar
from .registry import FeedRegistry, url_key
from .schedule import spread_s

JOBS_KEPT = 100
AT_ONCE = 250
"""Feeds that are stored in one transaction."""
MAX_REFUSED_SHOWN = 100
_CHECKED_AT_ONCE = 50

log = logging.getLogger(__name__)


class NoSuchImport(HubError):
    """There is no such import, or it was before the last start."""

    status = 404
    title = "Not found"


@dataclass(slots=True)
class Refused:
    """A feed that was not registered."""

    url: str
    reason: str


@dataclass(slots=True)
class Import:
    """An import and how far it is; `error` ends it."""

    id: str
    vhost: str
    owner: str
    total: int
    started_at: float
    done: int = 0
    added: int = 0
    known: int = 0
    """Feeds that were registered before."""
    refused_count: int = 0
    refused: list[Refused] = field(default_factory=list)
    """The first of those that were refused."""
    ended_at: float = 0.0
    error: str = ""


class _PlannedFeed(NamedTuple):
    """An outline of the document, and the registration that is made of it."""

    outline: Outline
    registration: FeedRegistration


class _NewFeeds(NamedTuple):
    """The feeds that are added in one transaction, by the keys of their URLs and their selectors,
    and their names."""

    by_key: dict[tuple[str, str], Feed]
    names: set[str]


class Imports:
    """The imports since the start; `plan` plans the first poll of each new feed."""

    def __init__(
        self,
        registry: FeedRegistry,
        registrar: Registrar,
        lists: FeedLists,
        plan: Callable[[Feed], None],
        clock: Clock,
        tasks: Tasks,
    ) -> None:
        self._registry = registry
        self._registrar = registrar
        self._lists = lists
        self._plan = plan
        self._clock = clock
        self._tasks = tasks
        self._jobs: dict[str, Import] = {}

    def begin(self, document: Opml, vhost: str, owner: str, first: int) -> Import:
        """Starts to register the feeds of a document. Raises `TooManyFeeds`."""
        wanted = []
        for folder, outline in feed_outlines(document):
            request = FeedRequest(first=first, folder=folder, selector=outline.get(SELECTOR))
            registration = FeedRegistration(outline.feed_url, "", vhost, owner, request)
            wanted.append(_PlannedFeed(outline, registration))
        urls = {one.outline.feed_url for one in wanted}
        self._registrar.require_room(owner, len(urls - self._urls(vhost)))
        job = Import(secrets.token_hex(8), vhost, owner, len(wanted), self._clock.wall_s())
        self._jobs[job.id] = job
        while len(self._jobs) > JOBS_KEPT:
            del self._jobs[next(iter(self._jobs))]
        self._tasks.own(self._run(job, document, wanted))
        return job

    def get(self, identity: str) -> Import:
        """Returns an import; raises `NoSuchImport`."""
        job = self._jobs.get(identity)
        if job is None:
            raise NoSuchImport(f"no import '{identity}'", field="id", value=identity)
        return job

    async def _run(self, job: Import, document: Opml, wanted: list[_PlannedFeed]) -> None:
        """Registers all, and stores the list with what its outlines have become; then their polls
        begin, which would take the import's time."""
        added: list[Feed] = []
        try:
            await self._registrar.declare(job.vhost)
            for first in range(0, len(wanted), AT_ONCE):
                async with self._registry.additions:
                    added += await self._add(job, wanted[first : first + AT_ONCE])
            registered = {feed.id for feed in self._registry.all()}
            await self._lists.add(ListKey(job.vhost, job.owner), document, registered)
        except WarrenError as error:
            log.warning(
                "import %s stopped after %d of %d feeds: %s", job.id, job.done, job.total, error
            )
            job.error = str(error)
        finally:
            job.ended_at = self._clock.wall_s()
            for feed in added:
                self._plan(feed)

    async def _add(self, job: Import, wanted: list[_PlannedFeed]) -> list[Feed]:
        new = _NewFeeds({}, set())
        for number, one in enumerate(wanted, start=1):
            if number % _CHECKED_AT_ONCE == 0:
                await asyncio.sleep(0)
            feed = self._feed(job, one, new)
            if feed is not None and may_see_urls(feed, job.owner, is_administrator=False):
                one.outline.id = feed.id
        if new.by_key:
            await self._registry.add(list(new.by_key.values()))
        job.added += len(new.by_key)
        job.done += len(wanted)
        return list(new.by_key.values())

    def _feed(self, job: Import, wanted: _PlannedFeed, new: _NewFeeds) -> Feed | None:
        """Returns the feed of an outline, which is added to the new ones if it is not known; None
        for one that is refused."""
        try:
            checked = self._registrar.checked(wanted.registration)
        except HubError as error:
            job.refused_count += 1
            if len(job.refused) < MAX_REFUSED_SHOWN:
                job.refused.append(Refused(wanted.registration.url[:200], error.reason))
            return None
        key = url_key(checked.url), checked.request.selector
        known = new.by_key.get(key) or self._known(job.vhost, checked)
        if known is not None:
            job.known += 1
            return known
        title = wanted.outline.title
        feed = self._registrar.new_feed(checked)
        wait_s = spread_s(job.total, secrets.randbelow(1_000) / 1_000)
        name = self._registrar.free_name(job.vhost, title, checked.url, new.names)
        feed = replace(feed, name=name, next_at=feed.next_at + wait_s)
        new.by_key[key] = feed
        new.names.add(name)
        return feed

    def _known(self, vhost: str, wanted: FeedRegistration) -> Feed | None:
        """Returns the feed with the same URL and selector; of an outline without one, any feed with
        the URL."""
        found = self._registry.at(vhost, wanted.url)
        selector = wanted.request.selector
        return next((one for one in found if selector in ("", one.request.selector)), None)

    def _urls(self, vhost: str) -> set[str]:
        return {feed.url for feed in self._registry.all() if feed.vhost == vhost}
