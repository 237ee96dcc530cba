"""Fetching topics when they are due: one fetch of each at a time, pings meanwhile make one more.

What was pinged is a row before anything is fetched for it, and is told as fetched when its
content is in the queues: a crash in between fetches again, and may distribute again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..errors import StorageFailed
from ..settings import HubSettings
from ..tasks import Tasks
from .agenda import Agenda
from .distributor import Distributor, Recipient
from .held import Held
from .topic import Topic
from .updating import Updating

if TYPE_CHECKING:
    from .rows import TopicRows

STORAGE_AGAIN_S = 30.0
SWEEP_S = 600.0
"""How often topics are looked for that nobody is bound to any more."""
_SWEEP = ""

log = logging.getLogger(__name__)


class Rounds:
    """`rows` opens the table at its first use; `recipient` gives the queue of the subscription
    with an identity, None where there is none."""

    def __init__(
        self,
        rows: Callable[[], Awaitable[TopicRows]],
        updating: Updating,
        distributor: Distributor,
        recipient: Callable[[str], Recipient | None],
        settings: HubSettings,
        clock: Clock,
        tasks: Tasks,
    ) -> None:
        self._rows = rows
        self._updating = updating
        self._distributor = distributor
        self._recipient = recipient
        self._settings = settings
        self._clock = clock
        self._tasks = tasks
        self._agenda = Agenda(clock)
        self._held: dict[str, Held] = {}
        self._writing = asyncio.Lock()
        """Around what changes rows and lives together."""

    async def load(self) -> None:
        """Goes on with what an earlier run had stored."""
        now, rows = self._clock.wall_s(), await self._rows()
        new = await rows.new_subscribers()
        for topic in await rows.all():
            held = self._hold(topic.key, topic.url)
            held.not_before = topic.not_before
            held.new_subscribers = dict.fromkeys(new.get(topic.key, ()))
            if topic.due_at is not None or held.new_subscribers:
                held.is_due = True
                self._plan(held, (topic.due_at or now) - now)
        await self._forget(self._held.values())

    async def watch(self) -> None:
        """Begins each fetch when it is due; runs until cancelled."""
        self._agenda.plan(_SWEEP, SWEEP_S)
        while True:
            await self._agenda.wait()
            self.begin_due()

    def begin_due(self) -> None:
        for key in self._agenda.take():
            if key == _SWEEP:
                self._agenda.plan(_SWEEP, SWEEP_S)
                self._tasks.own(self._forget(self._held.values()))
            elif key in self._held:
                self._tasks.own(self._run(self._held[key]))

    async def request(self, urls: Mapping[str, str]) -> None:
        """Fetches these topics soon; stored when it returns. Raises `StorageFailed`."""
        async with self._writing:
            lives = [self._hold(key, url) for key, url in urls.items()]
            fresh = [held for held in lives if not held.is_due]
            if fresh:
                now = self._clock.wall_s()
                topics = [Topic(held.key, held.url, due_at=now) for held in fresh]
                await (await self._rows()).mark_due(topics)
            for held in lives:
                self._wake(held)

    async def release(self, keys: Iterable[str]) -> None:
        """Drops what is known of these topics, if it is: nobody is bound to them any more."""
        await self._forget([self._held[key] for key in keys if key in self._held])

    def look_again(self, key: str) -> None:
        """Somebody takes its content again."""
        held = self._held.get(key)
        if held is not None and held.is_due and not held.is_running:
            self._plan(held)

    @asynccontextmanager
    async def binding(self, key: str, url: str, identity: str) -> AsyncIterator[None]:
        """Around the binding of a subscription: whatever is fetched next after it is sent there,
        also if it has not changed, and also if the process ends in between.

        Raises `StorageFailed`.
        """
        held = self._hold(key, url)
        held.being_bound.add(identity)
        try:
            async with self._writing:
                topic = Topic(key, url, due_at=self._clock.wall_s())
                await (await self._rows()).add_subscriber(topic, identity)
                held.new_subscribers[identity] = None
            yield
            self._wake(held)
        finally:
            held.being_bound.discard(identity)

    async def offer(self, key: str, url: str, content_type: str, body: bytes) -> None:
        """Takes content as if it had been fetched. Raises `TopicFailed`, `NotDistributed`,
        `ChannelError` and `StorageFailed`."""
        held = self._hold(key, url)
        async with held.turn:
            topic, new = await self._stored(held), self._recipients(held)
            after = await self._updating.offer(topic, content_type, body, new.values())
            async with self._writing:
                due_at = self._clock.wall_s() if held.is_due else None
                await self._put(held, replace(after, due_at=due_at), new)

    def _hold(self, key: str, url: str) -> Held:
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = Held(key, url)
        return held

    def _wake(self, held: Held) -> None:
        """Something has happened that it is to be fetched for, and that is stored."""
        held.is_due, held.tries = True, 0
        if held.is_running:
            held.again = True
        else:
            self._plan(held)

    def _plan(self, held: Held, wish_s: float = 0.0) -> None:
        """Not too soon after the last fetch, nor before its server wants to see us again."""
        gap_s = held.started_s + self._settings.fetch_gap_s - self._agenda.now_s()
        left_s = held.not_before - self._clock.wall_s()
        self._agenda.plan(held.key, max(0.0, wish_s, gap_s, left_s))

    async def _run(self, held: Held) -> None:
        async with held.turn:
            if not held.is_due:
                return
            wait_s = await self._distributor.wait_s(held.key)
            if wait_s:
                log.info("topic '%s' waits %.0f s: nothing takes its content", held.url, wait_s)
                self._agenda.plan(held.key, wait_s)
                return
            held.is_running, held.again = True, False
            held.started_s = self._agenda.now_s()
            try:
                await self._check(held)
            except StorageFailed as error:
                log.error("topic '%s' has to wait: %s", held.url, error)
                self._agenda.plan(held.key, STORAGE_AGAIN_S)
            finally:
                held.is_running = False

    async def _check(self, held: Held) -> None:
        count = await self._distributor.count(held.key)
        if not count:
            await self._drop(held)
            return
        topic, new, again_s = await self._stored(held), self._recipients(held), None
        served: Collection[str] = new
        try:
            after = await self._updating.fetch(topic, count, new.values())
        except StorageFailed:
            raise
        except WarrenError as error:
            after, again_s = self._updating.failed(topic, error, held.tries)
            held.tries, served = held.tries + 1, ()
        await self._store(held, after, again_s, served)

    def _recipients(self, held: Held) -> dict[str, Recipient]:
        """The queues of its new subscribers, by identity."""
        found = {identity: self._recipient(identity) for identity in held.new_subscribers}
        return {identity: one for identity, one in found.items() if one is not None}

    async def _store(
        self, held: Held, topic: Topic, again_s: float | None, served: Collection[str]
    ) -> None:
        """Ends a run: what is known of the topic, and whether it is due again."""
        async with self._writing:
            again_s = 0.0 if held.again else again_s
            due_at = None if again_s is None else self._clock.wall_s() + again_s
            await self._put(held, replace(topic, due_at=due_at), served)
            held.is_running, held.is_due = False, again_s is not None
            held.not_before = topic.not_before
            if again_s is not None:
                self._plan(held, again_s)

    async def _put(self, held: Held, topic: Topic, served: Collection[str]) -> None:
        """New no longer are those that were served, and those that have left meanwhile."""
        new = held.new_subscribers
        over = {one for one in new if self._recipient(one) is None} - held.being_bound
        done = over.union(served)
        await (await self._rows()).put(topic, done)
        for identity in done:
            new.pop(identity, None)

    async def _stored(self, held: Held) -> Topic:
        return await (await self._rows()).get(held.key) or Topic(held.key, held.url)

    async def _drop(self, held: Held) -> None:
        """At the end of a run that has found nobody; somebody may have come since."""
        async with self._writing:
            held.is_running = False
            if held.again or await self._distributor.count(held.key):
                self._plan(held)
                return
            if held.being_bound:  # and pinged for then
                held.is_due = False
                return
            await (await self._rows()).delete([held.key])
            del self._held[held.key]

    async def _forget(self, lives: Iterable[Held]) -> None:
        """Those that nobody is bound to, unless something else is about to find that."""
        async with self._writing:
            idle = [
                held
                for held in list(lives)
                if not held.is_due
                and not held.turn.locked()
                and not held.being_bound
                and not await self._distributor.count(held.key)
            ]
            if idle:
                await (await self._rows()).delete([held.key for held in idle])
            for held in idle:
                del self._held[held.key]
