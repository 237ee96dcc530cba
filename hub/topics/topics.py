"""External topics: what is fetched when, and handed to whoever is bound to them."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ..engine.port import Engine
from ..errors import BadRequest
from ..guard.guard import Guard
from ..guard.own import is_own
from ..lazy import Lazy
from ..settings import HubSettings
from ..storage.storage import Storage
from ..subscriptions.content_budget import ContentBudget
from ..subscriptions.websub import normal_url
from ..tasks import Tasks
from ..workers.pool import Workers
from .distributor import Distributor, Recipient
from .fetch_scheduler import FetchScheduler
from .names import topic_key
from .source import Source, TopicFailed
from .topic import Topic
from .updating import Updating

if TYPE_CHECKING:
    from ..fetch.fetcher import Fetcher
    from .repository import TopicRepository


class Topics:
    """External topics: pinged, fetched and distributed.

    `make_fetcher` builds the HTTP client at the first fetch; `recipient` returns the queue of the
    subscription with an identity, None where there is none; `content_budget` limits anonymous
    clients; `paused` returns how many paused subscriptions are bound with a key.
    """

    def __init__(
        self,
        storage: Storage,
        engine: Engine,
        guard: Guard,
        settings: HubSettings,
        clock: Clock,
        make_fetcher: Callable[[HubSettings, Guard], Awaitable[Fetcher]],
        workers: Workers,
        recipient: Callable[[str], Recipient | None],
        content_budget: ContentBudget,
        paused: Callable[[str], int],
    ) -> None:
        self._storage = storage
        self._settings = settings
        self._tasks = Tasks()
        self._rows: Lazy[TopicRepository] = Lazy(self._open)
        self._fetcher = Lazy(lambda: make_fetcher(settings, guard))
        self._distributor = Distributor(engine, content_budget, paused)
        self._source = Source(self._fetcher.get, workers, settings, clock)
        updating = Updating(self._source, self._distributor, clock)
        self._scheduler = FetchScheduler(
            self._rows.get, updating, self._distributor, recipient, settings, clock, self._tasks
        )

    async def start(self) -> None:
        """What was pinged and not fetched before the hub stopped is fetched now."""
        if not self._storage.is_empty():
            await self._scheduler.load()
        self._tasks.own(self._scheduler.watch())

    async def stop(self) -> None:
        """Fetches under way are given up; the next start begins them again."""
        await self._tasks.stop()
        if self._fetcher.made is not None:
            await self._fetcher.made.close()

    async def ping(self, urls: Sequence[str]) -> None:
        """The content of these topics may have changed: fetched soon, distributed if it has.

        Durable when it returns. Topics that nobody is bound to cost nothing and leave nothing.
        Raises `StorageFailed`.
        """
        subscribed, others = {}, []
        for url in urls:
            key = topic_key(normal_url(url))
            if await self._distributor.count(key):
                subscribed[key] = url
            else:
                others.append(key)
        await self._scheduler.release(others)
        if subscribed:
            # Shielded: who hangs up must not leave half of it done.
            await asyncio.shield(self._tasks.own(self._scheduler.request(subscribed)))

    def resumed(self, key: str) -> None:
        """A subscription goes on: what the topic was pinged for meanwhile is fetched now."""
        self._scheduler.reschedule(key)

    async def declare(self) -> None:
        """Makes the exchanges that subscriptions to topics are bound to. Raises `ChannelError`."""
        await self._distributor.declare()

    @asynccontextmanager
    async def first_content(self, url: str, identity: str) -> AsyncIterator[None]:
        """Around the binding of a new subscription, which is sent what is there afterwards: the
        topic may have changed since its subscriber looked. Raises `StorageFailed`."""
        async with self._scheduler.binding(topic_key(normal_url(url)), url, identity):
            yield

    async def check(self, url: str) -> str | None:
        """Why a subscription to this URL is to be denied (WebSub 5.2), None if it is not."""
        try:
            links = await self._source.links(url)
        except TopicFailed as error:
            return f"the topic can't be subscribed to: {error}"
        own = links.self_url
        if own is not None and normal_url(own) != normal_url(url):
            return f"the topic's own URL is {own}; subscribe to that"
        if links.hubs and not any(is_own(hub, self._settings.base_urls) for hub in links.hubs):
            return f"the topic is distributed by another hub: {links.hubs[0]}"
        return None

    async def publish_content(self, url: str, body: bytes, content_type: str) -> None:
        """Distributes content that its publisher sends along, if it has changed.

        In the queues when it returns. Raises `BadRequest` for content that is not distributed,
        `NotDistributed` and `StorageFailed`.
        """
        key = topic_key(normal_url(url))
        if not await self._distributor.count(key):
            return
        offer = self._tasks.own(self._scheduler.offer(key, url, content_type, body))
        try:
            await asyncio.shield(offer)
        except TopicFailed as error:
            raise BadRequest(str(error), field="hub.content") from error

    async def topic(self, url: str) -> Topic | None:
        """What is known of a topic, None while nobody subscribes to it."""
        if self._is_empty():
            return None
        return await (await self._rows.get()).get(topic_key(normal_url(url)))

    async def subscribers(self, url: str) -> int:
        """Queues that get something of the topic, those of AMQP clients included."""
        return await self._distributor.count(topic_key(normal_url(url)))

    async def total(self) -> int:
        """How many topics somebody subscribes to."""
        return 0 if self._is_empty() else await (await self._rows.get()).count()

    async def all(self, first: int = 0, size: int | None = None) -> list[tuple[Topic, int]]:
        """By URL, from place `first` on at most `size`, each with the number of queues that get
        something of it."""
        if self._is_empty():
            return []
        topics = await (await self._rows.get()).all(first, size)
        return [(topic, await self._distributor.count(topic.key)) for topic in topics]

    def _is_empty(self) -> bool:
        return self._rows.made is None and self._storage.is_empty()

    async def _open(self) -> TopicRepository:
        database = await self._storage.database()
        await asyncio.to_thread(importlib.import_module, f"{__package__}.repository")
        from .repository import TopicRepository

        return TopicRepository(database)
