"""External topics: pings, publishing with content, checks and listings."""

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
from .source import TopicFailed, TopicSource
from .topic import Topic
from .topic_states import TopicStates
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
        self.polled: Callable[[str], Awaitable[bool]] = _is_not_polled
        """Has a registered feed polled whose URL this is, so that it is fetched once, and offered
        here. Returns whether there is one."""
        self._tasks = Tasks()
        self._rows: Lazy[TopicRepository] = Lazy(self._open)
        self._fetcher = Lazy(lambda: make_fetcher(settings, guard))
        self._distributor = Distributor(engine, content_budget, paused)
        self._source = TopicSource(self._fetcher.get, workers, settings, clock)
        updating = Updating(self._source, self._distributor, clock)
        states = TopicStates(self._rows.get, self._distributor.count, recipient, clock)
        self.scheduler = FetchScheduler(
            states, updating, self._distributor, settings, clock, self._tasks
        )

    async def start(self) -> None:
        """Begins to fetch topics when they are due, also those from before the last stop."""
        if not self._storage.is_empty():
            await self.scheduler.load()
        self._tasks.own(self.scheduler.watch())

    async def stop(self) -> None:
        """Cancels all fetches; the next start begins them again."""
        await self._tasks.stop()
        if self._fetcher.made is not None:
            await self._fetcher.made.close()

    async def ping(self, urls: Sequence[str]) -> None:
        """Fetches these topics soon, and distributes those that have changed.

        Durable when it returns. Topics without bound queues are ignored. Raises `StorageFailed`.
        """
        await self.fetch_soon([url for url in urls if not await self.polled(url)])

    async def fetch_soon(self, urls: Sequence[str]) -> None:
        """Fetches these topics soon, as `ping`, also those with URLs of registered feeds."""
        subscribed, others = {}, []
        for url in urls:
            key = topic_key(normal_url(url))
            if await self._distributor.count(key):
                subscribed[key] = url
            else:
                others.append(key)
        await self.scheduler.release(others)
        if subscribed:
            # Shielded: a client that disconnects must not leave half of it done.
            await asyncio.shield(self._tasks.own(self.scheduler.request(subscribed)))

    def resumed(self, key: str) -> None:
        """Fetches the topic of a resumed subscription, if it was pinged during the pause."""
        self.scheduler.reschedule(key)

    async def declare(self) -> None:
        """Declares the exchanges of topics. Raises `ChannelError`."""
        await self._distributor.declare()

    @asynccontextmanager
    async def first_content(self, url: str, identity: str) -> AsyncIterator[None]:
        """Encloses the binding of a new subscription, which is then sent the topic's content.

        The content may have changed since its subscriber saw it. Raises `StorageFailed`.
        """
        async with self.scheduler.binding(topic_key(normal_url(url)), url, identity):
            yield

    async def check(self, url: str) -> str | None:
        """Returns why a subscription to the URL is denied (WebSub 5.2), None if it is not."""
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
        """Distributes content that came with a ping, if it has changed.

        It is in the queues when this returns. Raises `BadRequest` for content that is refused,
        `NotDistributed` and `StorageFailed`.
        """
        key = topic_key(normal_url(url))
        if not await self._distributor.count(key):
            return
        offer = self._tasks.own(self.scheduler.offer(key, url, content_type, body))
        try:
            await asyncio.shield(offer)
        except TopicFailed as error:
            raise BadRequest(str(error), field="hub.content") from error

    async def offer_own(self, path: str, url: str, content_type: str, body: bytes) -> None:
        """Distributes a document of this hub, if it has changed, with its path as the key.

        It is in the queues when this returns. Raises `TopicFailed`, `NotDistributed`,
        `ChannelError` and `StorageFailed`.
        """
        offer = self.scheduler.offer(topic_key(path), url, content_type, body)
        await self._tasks.complete(offer)

    async def queues(self, path: str) -> int:
        """Returns how many queues get a document of this hub."""
        return await self._distributor.count(topic_key(path))

    async def topic(self, url: str) -> Topic | None:
        """Returns the topic with this URL, None without subscribers."""
        if self._is_empty():
            return None
        return await (await self._rows.get()).get(topic_key(normal_url(url)))

    async def subscribers(self, url: str) -> int:
        """Returns how many queues get content of the topic, those of AMQP clients included."""
        return await self._distributor.count(topic_key(normal_url(url)))

    async def total(self) -> int:
        """Returns the number of topics that have subscribers."""
        return 0 if self._is_empty() else await (await self._rows.get()).count()

    async def all(self, first: int = 0, size: int | None = None) -> list[tuple[Topic, int]]:
        """Returns at most `size` topics from position `first` on, sorted by URL, each with the
        number of queues that get its content."""
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


async def _is_not_polled(_: str) -> bool:
    return False
