"""The states of all topics that have subscribers, changed together with their rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.clock import Clock
from .distributor import Recipient
from .state import TopicState
from .topic import Topic

if TYPE_CHECKING:
    from .repository import TopicRepository


class TopicStates:
    """Adds a topic when it gets its first subscriber, and drops it after its last one left.

    `rows` opens the table at its first use. `count` returns how many queues are bound with a key.
    `recipient` returns the queue of the subscription with an identity, None without one.
    """

    def __init__(
        self,
        rows: Callable[[], Awaitable[TopicRepository]],
        count: Callable[[str], Awaitable[int]],
        recipient: Callable[[str], Recipient | None],
        clock: Clock,
    ) -> None:
        self._rows = rows
        self._count = count
        self._recipient = recipient
        self._clock = clock
        self._by_key: dict[str, TopicState] = {}
        self._lock = asyncio.Lock()
        """Held while rows and states change."""

    async def load(self) -> list[tuple[TopicState, float]]:
        """Reads all rows; returns the topics that are due, each with the seconds until then."""
        now, rows, due = self._clock.wall_s(), await self._rows(), []
        new = await rows.new_subscribers()
        for topic in await rows.all():
            state = self.add(topic.key, topic.url)
            state.not_before = topic.not_before
            state.new_subscribers = dict.fromkeys(new.get(topic.key, ()))
            if topic.due_at is not None or state.new_subscribers:
                state.is_due = True
                due.append((state, (topic.due_at or now) - now))
        return due

    def all(self) -> list[TopicState]:
        return list(self._by_key.values())

    def get(self, key: str) -> TopicState | None:
        return self._by_key.get(key)

    def add(self, key: str, url: str) -> TopicState:
        """Returns the state of the topic, a new one if there is none."""
        state = self._by_key.get(key)
        if state is None:
            state = self._by_key[key] = TopicState(key, url)
        return state

    async def stored(self, state: TopicState) -> Topic:
        """Returns the topic as its row has it."""
        return await (await self._rows()).get(state.key) or Topic(state.key, state.url)

    def recipients(self, state: TopicState) -> dict[str, Recipient]:
        """Returns the queues of the topic's new subscribers, by identity."""
        found = {identity: self._recipient(identity) for identity in state.new_subscribers}
        return {identity: one for identity, one in found.items() if one is not None}

    async def mark_due(self, urls: Mapping[str, str]) -> list[TopicState]:
        """Stores that the topics of these keys and URLs are due now."""
        async with self._lock:
            states = [self.add(key, url) for key, url in urls.items()]
            fresh = [state for state in states if not state.is_due]
            if fresh:
                now = self._clock.wall_s()
                topics = [Topic(state.key, state.url, due_at=now) for state in fresh]
                await (await self._rows()).mark_due(topics)
            return states

    async def add_subscriber(self, state: TopicState, identity: str) -> None:
        """Stores that the subscription is new to the topic, and that the topic is due now."""
        async with self._lock:
            topic = Topic(state.key, state.url, due_at=self._clock.wall_s())
            await (await self._rows()).add_subscriber(topic, identity)
            state.new_subscribers[identity] = None

    async def update(self, state: TopicState, topic: Topic, served: Collection[str]) -> None:
        """Stores new content of the topic, which remains due if it was.

        `served` are the new subscribers that were sent it.
        """
        async with self._lock:
            due_at = self._clock.wall_s() if state.is_due else None
            await self._put(state, replace(topic, due_at=due_at), served)

    async def end_fetch(
        self, state: TopicState, topic: Topic, again_s: float | None, served: Collection[str]
    ) -> float | None:
        """Stores the outcome of a fetch; returns in how many seconds the next one is due.

        That is `again_s`, or at once if the topic was pinged meanwhile.
        """
        async with self._lock:
            again_s = 0.0 if state.is_pinged_again else again_s
            due_at = None if again_s is None else self._clock.wall_s() + again_s
            await self._put(state, replace(topic, due_at=due_at), served)
            state.is_running, state.is_due = False, again_s is not None
            state.not_before = topic.not_before
            return again_s

    async def end_without_subscribers(self, state: TopicState) -> bool:
        """Ends a fetch that found no queue bound; returns whether the topic is due nevertheless.

        That is so if somebody has bound a queue since.
        """
        async with self._lock:
            state.is_running = False
            if state.is_pinged_again or await self._count(state.key):
                return True
            if state.being_bound:  # and pinged when it is bound
                state.is_due = False
            else:
                await self._delete([state])
            return False

    async def drop_unused(self, states: Iterable[TopicState]) -> None:
        """Drops those topics that no queue is bound to, unless their next fetch will do so."""
        async with self._lock:
            unused = [
                state
                for state in list(states)
                if self._by_key.get(state.key) is state
                and not state.is_due
                and not state.lock.locked()
                and not state.being_bound
                and not await self._count(state.key)
            ]
            if unused:
                await self._delete(unused)

    async def _put(self, state: TopicState, topic: Topic, served: Collection[str]) -> None:
        """Stores the topic. Subscribers that were served or have left are no longer new."""
        new = state.new_subscribers
        left = {one for one in new if self._recipient(one) is None} - state.being_bound
        done = left.union(served)
        await (await self._rows()).put(topic, done)
        for identity in done:
            new.pop(identity, None)

    async def _delete(self, states: list[TopicState]) -> None:
        await (await self._rows()).delete([state.key for state in states])
        for state in states:
            del self._by_key[state.key]
