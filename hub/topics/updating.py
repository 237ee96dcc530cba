"""Updates a topic: fetches or takes its content, and distributes what has changed."""

from __future__ import annotations

import logging
import random
from collections.abc import Collection
from dataclasses import replace

from ...core.clock import Clock
from ...core.errors import WarrenError
from .distributor import Distributor, Recipient
from .names import ENTRIES
from .source import Fetched, TopicFailed, TopicSource
from .topic import Topic

RETRIES_S = (30.0, 300.0, 1_800.0)
"""The waits after failed fetches: its publisher has announced new content."""
RETRY_SPREAD = 0.2
"""The share by which these waits are varied at random."""

log = logging.getLogger(__name__)


class Updating:
    """Fetches topics, distributes their content, and returns them as they are then."""

    def __init__(self, source: TopicSource, distributor: Distributor, clock: Clock) -> None:
        self._source = source
        self._distributor = distributor
        self._clock = clock

    async def fetch(self, topic: Topic, subscribers: int, *, is_conditional: bool) -> Fetched:
        """Fetches content, with `is_conditional` only if it has changed. Raises `TopicFailed`."""
        return await self._source.fetch(topic, subscribers, is_conditional=is_conditional)

    async def offer(self, topic: Topic, content_type: str, body: bytes) -> Fetched:
        """Takes content as if it had been fetched. Raises `TopicFailed`."""
        return Fetched(await self._source.read(topic, content_type, body))

    async def distribute(self, topic: Topic, fetched: Fetched, new: Collection[Recipient]) -> Topic:
        """Distributes what has changed, and the whole content to new subscribers.

        Which version these have is not known: they may have fetched it long before. Raises
        `NotDistributed` and `ChannelError`.
        """
        document = fetched.document
        if document is None:
            return self._after(topic, fetched)
        if document.digest == topic.digest:
            await self._distributor.send(topic, document, new)
            return self._after(topic, fetched)
        if topic.digest and document.news != document.body:  # else all is new to all subscribers
            of_entries = [one for one in new if one.exchange == ENTRIES]
            await self._distributor.send(topic, document, of_entries)
        await self._distributor.publish(topic, document)
        return self._after(topic, fetched)

    def failed(self, topic: Topic, error: WarrenError, tries: int) -> tuple[Topic, float | None]:
        """Returns the topic after a failure, and the seconds until the next try, if any."""
        log.warning("topic '%s' failed: %s", topic.url, error)
        wait_s = error.wait_s if isinstance(error, TopicFailed) else 0.0
        is_final = isinstance(error, TopicFailed) and error.is_final
        now = self._clock.wall_s()
        after = replace(
            topic,
            checked_at=now,
            failures=topic.failures + 1,
            error=str(error),
            not_before=now + wait_s if wait_s else 0.0,
        )
        if is_final or tries >= len(RETRIES_S):
            return after, None
        again_s = RETRIES_S[tries] * random.uniform(1 - RETRY_SPREAD, 1 + RETRY_SPREAD)
        return after, max(again_s, wait_s)

    def _after(self, topic: Topic, fetched: Fetched) -> Topic:
        now, document = self._clock.wall_s(), fetched.document
        topic = replace(topic, checked_at=now, failures=0, error="", not_before=0.0)
        if document is None:
            return topic
        topic = replace(
            topic,
            etag=fetched.etag,
            last_modified=fetched.last_modified,
            content_type=document.content_type,
            notice=document.notice,
        )
        if document.digest == topic.digest:
            return topic
        return replace(topic, digest=document.digest, known=document.known, changed_at=now)
