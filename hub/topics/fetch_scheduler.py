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
from ..deadlines import Deadlines
from ..errors import StorageFailed
from ..settings import HubSettings
from ..tasks import Tasks
from .distributor import Distributor, Recipient
from .state import TopicState
from .topic import Topic
from .updating import Updating

if TYPE_CHECKING:
    from .repository import TopicRepository

STORAGE_AGAIN_S = 30.0
SWEEP_S = 600.0
"""How often topics are looked for that nobody is bound to any more."""
_SWEEP = ""

log = logging.getLogger(__name__)


class FetchScheduler:
    """`rows` opens the table at its first use; `recipient` gives the queue of the subscription
    with an identity, None where there is none."""

    def __init__(
        self,
        rows: Callable[[], Awaitable[TopicRepository]],
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
        self._deadlines = Deadlines(clock)
        self._state: dict[str, TopicState] = {}
        self._writing = asyncio.Lock()
        """Around what changes rows and lives together."""

    async def load(self) -> None:
        """Goes on with what an earlier run had stored."""
        now, rows = self._clock.wall_s(), await self._rows()
        new = await rows.new_subscribers()
        for topic in await rows.all():
            state = self._hold(topic.key, topic.url)
            state.not_before = topic.not_before
            state.new_subscribers = dict.fromkeys(new.get(topic.key, ()))
            if topic.due_at is not None or state.new_subscribers:
                state.is_due = True
                self._plan(state, (topic.due_at or now) - now)
        await self._forget(self._state.values())

    async def watch(self) -> None:
        """Begins each fetch when it is due; runs until cancelled."""
        self._deadlines.set(_SWEEP, SWEEP_S)
        while True:
            await self._deadlines.wait()
            self.begin_due()

    def begin_due(self) -> None:
        for key in self._deadlines.take_due():
            if key == _SWEEP:
                self._deadlines.set(_SWEEP, SWEEP_S)
                self._tasks.own(self._forget(self._state.values()))
            elif key in self._state:
                self._tasks.own(self._run(self._state[key]))

    async def request(self, urls: Mapping[str, str]) -> None:
        """Fetches these topics soon; stored when it returns. Raises `StorageFailed`."""
        async with self._writing:
            states = [self._hold(key, url) for key, url in urls.items()]
            fresh = [state for state in states if not state.is_due]
            if fresh:
                now = self._clock.wall_s()
                topics = [Topic(state.key, state.url, due_at=now) for state in fresh]
                await (await self._rows()).mark_due(topics)
            for state in states:
                self._wake(state)

    async def release(self, keys: Iterable[str]) -> None:
        """Drops what is known of these topics, if it is: nobody is bound to them any more."""
        await self._forget([self._state[key] for key in keys if key in self._state])

    def reschedule(self, key: str) -> None:
        """Somebody takes its content again."""
        state = self._state.get(key)
        if state is not None and state.is_due and not state.is_running:
            self._plan(state)

    @asynccontextmanager
    async def binding(self, key: str, url: str, identity: str) -> AsyncIterator[None]:
        """Around the binding of a subscription: whatever is fetched next after it is sent there,
        also if it has not changed, and also if the process ends in between.

        Raises `StorageFailed`.
        """
        state = self._hold(key, url)
        state.being_bound.add(identity)
        try:
            async with self._writing:
                topic = Topic(key, url, due_at=self._clock.wall_s())
                await (await self._rows()).add_subscriber(topic, identity)
                state.new_subscribers[identity] = None
            yield
            self._wake(state)
        finally:
            state.being_bound.discard(identity)

    async def offer(self, key: str, url: str, content_type: str, body: bytes) -> None:
        """Takes content as if it had been fetched. Raises `TopicFailed`, `NotDistributed`,
        `ChannelError` and `StorageFailed`."""
        state = self._hold(key, url)
        async with state.turn:
            topic, new = await self._stored(state), self._recipients(state)
            after = await self._updating.offer(topic, content_type, body, new.values())
            async with self._writing:
                due_at = self._clock.wall_s() if state.is_due else None
                await self._put(state, replace(after, due_at=due_at), new)

    def _hold(self, key: str, url: str) -> TopicState:
        state = self._state.get(key)
        if state is None:
            state = self._state[key] = TopicState(key, url)
        return state

    def _wake(self, state: TopicState) -> None:
        """Something has happened that it is to be fetched for, and that is stored."""
        state.is_due, state.tries = True, 0
        if state.is_running:
            state.again = True
        else:
            self._plan(state)

    def _plan(self, state: TopicState, delay_s: float = 0.0) -> None:
        """Not too soon after the last fetch, nor before its server wants to see us again."""
        gap_s = state.started_s + self._settings.fetch_gap_s - self._deadlines.now_s()
        left_s = state.not_before - self._clock.wall_s()
        self._deadlines.set(state.key, max(0.0, delay_s, gap_s, left_s))

    async def _run(self, state: TopicState) -> None:
        async with state.turn:
            if not state.is_due:
                return
            postponement = await self._distributor.postponement(state.key)
            if postponement is not None:
                wait_s, reason = postponement.wait_s, postponement.reason
                log.info("topic '%s' is not fetched for %.0f s: %s", state.url, wait_s, reason)
                self._deadlines.set(state.key, wait_s)
                return
            state.is_running, state.again = True, False
            state.started_s = self._deadlines.now_s()
            try:
                await self._check(state)
            except StorageFailed as error:
                log.error("topic '%s' has to wait: %s", state.url, error)
                self._deadlines.set(state.key, STORAGE_AGAIN_S)
            finally:
                state.is_running = False

    async def _check(self, state: TopicState) -> None:
        count = await self._distributor.count(state.key)
        if not count:
            await self._drop(state)
            return
        topic, new, again_s = await self._stored(state), self._recipients(state), None
        served: Collection[str] = new
        try:
            after = await self._updating.fetch(topic, count, new.values())
        except StorageFailed:
            raise
        except WarrenError as error:
            after, again_s = self._updating.failed(topic, error, state.tries)
            state.tries, served = state.tries + 1, ()
        await self._store(state, after, again_s, served)

    def _recipients(self, state: TopicState) -> dict[str, Recipient]:
        """The queues of its new subscribers, by identity."""
        found = {identity: self._recipient(identity) for identity in state.new_subscribers}
        return {identity: one for identity, one in found.items() if one is not None}

    async def _store(
        self, state: TopicState, topic: Topic, again_s: float | None, served: Collection[str]
    ) -> None:
        """Ends a run: what is known of the topic, and whether it is due again."""
        async with self._writing:
            again_s = 0.0 if state.again else again_s
            due_at = None if again_s is None else self._clock.wall_s() + again_s
            await self._put(state, replace(topic, due_at=due_at), served)
            state.is_running, state.is_due = False, again_s is not None
            state.not_before = topic.not_before
            if again_s is not None:
                self._plan(state, again_s)

    async def _put(self, state: TopicState, topic: Topic, served: Collection[str]) -> None:
        """New no longer are those that were served, and those that have left meanwhile."""
        new = state.new_subscribers
        over = {one for one in new if self._recipient(one) is None} - state.being_bound
        done = over.union(served)
        await (await self._rows()).put(topic, done)
        for identity in done:
            new.pop(identity, None)

    async def _stored(self, state: TopicState) -> Topic:
        return await (await self._rows()).get(state.key) or Topic(state.key, state.url)

    async def _drop(self, state: TopicState) -> None:
        """At the end of a run that has found nobody; somebody may have come since."""
        async with self._writing:
            state.is_running = False
            if state.again or await self._distributor.count(state.key):
                self._plan(state)
                return
            if state.being_bound:  # and pinged for then
                state.is_due = False
                return
            await (await self._rows()).delete([state.key])
            del self._state[state.key]

    async def _forget(self, states: Iterable[TopicState]) -> None:
        """Those that nobody is bound to, unless something else is about to find that."""
        async with self._writing:
            idle = [
                state
                for state in list(states)
                if not state.is_due
                and not state.turn.locked()
                and not state.being_bound
                and not await self._distributor.count(state.key)
            ]
            if idle:
                await (await self._rows()).delete([state.key for state in idle])
            for state in idle:
                del self._state[state.key]
