"""Fetches topics when they are due, each by one fetch at a time; pings meanwhile cause one more.

A pinged topic is stored as due before it is fetched, and as fetched when its content is in the
queues: a crash between them fetches it again, and may distribute the content again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..deadlines import Deadlines
from ..errors import StorageFailed
from ..settings import HubSettings
from ..tasks import Tasks
from .distributor import Distributor
from .source import Fetched
from .state import TopicState
from .topic import Topic
from .topic_states import TopicStates
from .updating import Updating

STORAGE_RETRY_S = 30.0
SWEEP_S = 600.0
"""How often topics without subscribers are looked for."""
_SWEEP = ""

log = logging.getLogger(__name__)


class FetchScheduler:
    """Schedules the fetches of all topics, and keeps `fetch_gap_s` between two of one topic."""

    def __init__(
        self,
        states: TopicStates,
        updating: Updating,
        distributor: Distributor,
        settings: HubSettings,
        clock: Clock,
        tasks: Tasks,
    ) -> None:
        self.states = states
        self._updating = updating
        self._distributor = distributor
        self._settings = settings
        self._clock = clock
        self._tasks = tasks
        self.deadlines = Deadlines(clock)

    async def load(self) -> None:
        """Schedules what was due when the hub stopped."""
        for state, wait_s in await self.states.load():
            self._plan(state, wait_s)
        await self.states.drop_unused(self.states.all())

    async def watch(self) -> None:
        """Begins each fetch when it is due; runs until cancelled."""
        self.deadlines.set(_SWEEP, SWEEP_S)
        while True:
            await self.deadlines.wait()
            self.begin_due()

    def begin_due(self) -> None:
        """Begins the fetches that are due now."""
        for key in self.deadlines.take_due():
            state = self.states.get(key)
            if key == _SWEEP:
                self.deadlines.set(_SWEEP, SWEEP_S)
                self._tasks.own(self.states.drop_unused(self.states.all()))
            elif state is not None:
                self._tasks.own(self._run(state))

    async def request(self, urls: Mapping[str, str]) -> None:
        """Fetches the topics of these keys and URLs soon; durable when it returns.

        Raises `StorageFailed`.
        """
        for state in await self.states.mark_due(urls):
            self._wake(state)

    async def release(self, keys: Iterable[str]) -> None:
        """Drops those topics of the keys that no queue is bound to any more."""
        found = map(self.states.get, keys)
        await self.states.drop_unused([state for state in found if state is not None])

    def reschedule(self, key: str) -> None:
        """Schedules the fetch of a due topic anew, because it has an active subscription again."""
        state = self.states.get(key)
        if state is not None and state.is_due and not state.is_running:
            self._plan(state)

    @asynccontextmanager
    async def binding(self, key: str, url: str, identity: str) -> AsyncIterator[None]:
        """Encloses the binding of a subscription's queue, to which the next content is sent.

        That holds for content that has not changed, and after a crash too. Raises `StorageFailed`.
        """
        state = self.states.add(key, url)
        state.being_bound.add(identity)
        try:
            await self.states.add_subscriber(state, identity)
            async with state.binding_windows.open():
                yield
            self._wake(state)
        finally:
            state.being_bound.discard(identity)

    async def offer(self, key: str, url: str, content_type: str, body: bytes) -> None:
        """Distributes content as if it had been fetched.

        Raises `TopicFailed`, `NotDistributed`, `ChannelError` and `StorageFailed`.
        """
        state = self.states.add(key, url)
        async with state.lock:
            topic = await self.states.stored(state)
            fetched = await self._updating.offer(topic, content_type, body)
            after, served = await self._distribute(state, topic, fetched)
            await self.states.update(state, after, served)

    def _wake(self, state: TopicState) -> None:
        if state.wake():
            self._plan(state)

    def _plan(self, state: TopicState, delay_s: float = 0.0) -> None:
        """Sets the time of the next fetch, after the gap and not before its server allows it."""
        gap_s = state.started_s + self._settings.fetch_gap_s - self.deadlines.now_s()
        left_s = state.not_before - self._clock.wall_s()
        self.deadlines.set(state.key, max(0.0, delay_s, gap_s, left_s))

    async def _run(self, state: TopicState) -> None:
        async with state.lock:
            if not state.is_due or await self._is_postponed(state):
                return
            state.begin(self.deadlines.now_s())
            try:
                await self._fetch(state)
            except StorageFailed as error:
                log.error("fetch of topic '%s' postponed: %s", state.url, error)
                self.deadlines.set(state.key, STORAGE_RETRY_S)
            finally:
                state.is_running = False

    async def _is_postponed(self, state: TopicState) -> bool:
        postponement = await self._distributor.postponement(state.key)
        if postponement is None:
            return False
        wait_s, reason = postponement.wait_s, postponement.reason
        log.info("fetch of topic '%s' postponed for %.0f s: %s", state.url, wait_s, reason)
        self.deadlines.set(state.key, wait_s)
        return True

    async def _fetch(self, state: TopicState) -> None:
        count = await self._distributor.count(state.key)
        if not count:
            if await self.states.end_without_subscribers(state):
                self._plan(state)
            return
        topic, again_s, served = await self.states.stored(state), None, set[str]()
        try:
            is_conditional = not self.states.recipients(state)
            fetched = await self._updating.fetch(topic, count, is_conditional=is_conditional)
            after, served = await self._distribute(state, topic, fetched)
        except StorageFailed:
            raise
        except WarrenError as error:
            after, again_s = self._updating.failed(topic, error, state.tries)
            state.tries += 1
        again_s = await self.states.end_fetch(state, after, again_s, served)
        if again_s is not None:
            self._plan(state, again_s)

    async def _distribute(
        self, state: TopicState, topic: Topic, fetched: Fetched
    ) -> tuple[Topic, set[str]]:
        """Returns the topic as it is then, and the new subscribers that were sent its content."""
        async with state.binding_windows.closed():
            new = self.states.recipients(state)
            after = await self._updating.distribute(topic, fetched, new.values())
        return after, set() if fetched.document is None else set(new)
