"""Publishes the entries of a poll as a group, and knows which polls are published.

An engine with transactions records in its log which group is the last: each is published once. With
another engine the database has it: a group is confirmed first, and then noted as published, so a
crash between the two repeats it with the same message_ids.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from ...core.errors import QueueFull
from ...core.wire import properties as wire
from ..engine.errors import REFUSED_BY_QUEUE
from ..engine.port import Engine, PublishOutcome, Row, SinglePublish
from .errors import NotPolled
from .feed import EXCHANGE, Feed
from .registry import FeedRegistry

MAX_BYTES: Final = 256 * 1024 * 1024
"""The limit of the messages of one poll: more than a document of the largest size can have."""
Messages = AsyncIterator[Sequence[SinglePublish]]


class EntryGroups(Protocol):
    def is_behind(self, feed: Feed) -> bool:
        """Returns whether the last poll was stored and is not published. Raises `ChannelError`."""

    def numbered(self, feed: Feed) -> Feed:
        """Returns the feed with the number of its next group, to be stored before that is
        published. Raises `ChannelError`."""

    async def publish(self, feed: Feed, messages: Messages) -> Feed:
        """Publishes group `feed.number`, on disk when it returns; returns the feed as it is then.

        Raises `NotPolled` if the disk is full or a queue refuses messages, `LowOnMemory`,
        `ChannelError` and `StorageFailed`.
        """

    def forget(self, feed: Feed) -> None:
        """Forgets the groups of a removed feed."""


class LoggedGroups:
    """Groups of an engine with transactions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def is_behind(self, feed: Feed) -> bool:
        return self._last(feed) < feed.number

    def numbered(self, feed: Feed) -> Feed:
        return replace(feed, number=max(feed.number, self._last(feed)) + 1)

    async def publish(self, feed: Feed, messages: Messages) -> Feed:
        try:
            outcome = await self._engine.transactions(feed.vhost).publish(
                None, EXCHANGE, _rows(messages), feed.series, feed.number, max_bytes=MAX_BYTES
            )
        except QueueFull as error:
            raise _refused(feed, str(error)) from error
        if not outcome.is_durable:
            raise _refused(feed, "the disk is full")
        return feed

    def forget(self, feed: Feed) -> None:
        if feed.vhost in self._engine.vhosts():
            self._engine.transactions(feed.vhost).forget(feed.series)

    def _last(self, feed: Feed) -> int:
        last = self._engine.transactions(feed.vhost).last(feed.series)
        return 0 if last is None else last.number


class StoredGroups:
    """Groups of an engine without transactions."""

    def __init__(self, engine: Engine, registry: FeedRegistry) -> None:
        self._engine = engine
        self._registry = registry

    def is_behind(self, feed: Feed) -> bool:
        return feed.status.is_unpublished

    def numbered(self, feed: Feed) -> Feed:
        return _marked(replace(feed, number=feed.number + 1), is_unpublished=True)

    async def publish(self, feed: Feed, messages: Messages) -> Feed:
        async for some in messages:
            for outcome in await self._engine.publish_each(None, feed.vhost, some):
                if isinstance(outcome, Exception):
                    raise outcome
                if outcome is PublishOutcome.REJECTED:
                    raise _refused(feed, f"exchange '{EXCHANGE}': {REFUSED_BY_QUEUE}")
        after = _marked(self._registry.get(feed.name) or feed, is_unpublished=False)
        await self._registry.put(after)
        return after

    def forget(self, feed: Feed) -> None:
        """Does nothing: they are forgotten with the feed."""


async def _rows(messages: Messages) -> AsyncIterator[Sequence[Row]]:
    async for some in messages:
        yield [_row(one) for one in some]


def _row(one: SinglePublish) -> Row:
    return one.routing_key.encode(), wire.encode(one.properties), one.body


def _marked(feed: Feed, *, is_unpublished: bool) -> Feed:
    return replace(feed, status=replace(feed.status, is_unpublished=is_unpublished))


def _refused(feed: Feed, reason: str) -> NotPolled:
    return NotPolled(reason, field="feed", value=feed.name)
