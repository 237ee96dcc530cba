"""Publishes the content of topics to their exchanges, and counts the queues bound there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...core.errors import ChannelError
from ..engine.own import TOPICS
from ..engine.port import Engine, Properties, PublishOutcome
from ..errors import NotDistributed
from ..subscriptions.content_budget import ContentBudget
from .document import TopicDocument
from .names import CONTENT, ENTRIES, VHOST
from .topic import Topic

URL_HEADER = "x-hub-topic-url"
_PERSISTENT = 2
SHORTAGE_AGAIN_S = 10.0
"""How soon to check again whether memory or disk is low."""
PAUSED_AGAIN_S = 60.0
"""How soon to check again whether an AMQP client has bound a queue; a subscription that is resumed
reports it."""
BUDGET_USED_UP = "the content budget of its anonymous subscribers is used up"
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Recipient:
    """The queue of a subscriber, and the exchange of topics that it is bound to."""

    queue: str
    exchange: str


@dataclass(frozen=True, slots=True)
class Postponement:
    """The reason why a topic must not be fetched now, and when to check again."""

    wait_s: float
    reason: str


class Distributor:
    """Publishes content durably: it is in each bound queue when a method returns.

    `paused` returns how many of the queues bound with a key belong to paused subscriptions.
    """

    def __init__(
        self, engine: Engine, content_budget: ContentBudget, paused: Callable[[str], int]
    ) -> None:
        self._engine = engine
        self._content_budget = content_budget
        self._paused = paused

    async def postponement(self, key: str) -> Postponement | None:
        """Returns the reason why the topic must not be fetched now, None if it may be."""
        shortage = self._engine.shortage()
        if shortage:
            return Postponement(SHORTAGE_AGAIN_S, shortage)
        count = await self.count(key)
        if 0 < count <= self._paused(key):
            return Postponement(PAUSED_AGAIN_S, "all of its subscriptions are paused")
        wait_s = self._content_budget.wait_s(key, count)
        return Postponement(wait_s, BUDGET_USED_UP) if wait_s else None

    async def declare(self) -> None:
        """Declares the exchanges of topics. Raises `ChannelError`."""
        for exchange in TOPICS:
            await self._engine.declare_exchange(VHOST, exchange)

    async def count(self, key: str) -> int:
        """Returns how many queues get content of the topic, those of AMQP clients included."""
        return await self._count(CONTENT, key) + await self._count(ENTRIES, key)

    async def publish(self, topic: Topic, document: TopicDocument) -> None:
        """Publishes the whole content, and to the other exchange what is new since `topic.known`.

        Raises `NotDistributed`, and `ChannelError` where the engine refuses.
        """
        queues = await self.count(topic.key)
        self._content_budget.charge(topic.key, queues, len(document.body))
        if await self._count(CONTENT, topic.key):
            await self._publish(CONTENT, topic, document.content_type, document.body)
        if document.news is not None and await self._count(ENTRIES, topic.key):
            await self._publish(ENTRIES, topic, document.content_type, document.news)

    async def send(
        self, topic: Topic, document: TopicDocument, recipients: Iterable[Recipient]
    ) -> None:
        """Sends the whole content to these queues alone, as one message. Raises as `publish`."""
        queues = [one.queue for one in recipients]
        if queues:
            self._require_room(topic)
            size, bound = len(document.body), await self.count(topic.key)
            self._content_budget.charge(topic.key, bound, size)
            properties = _properties(topic, document.content_type)
            _check(
                topic,
                await self._engine.publish_to(VHOST, queues, topic.key, properties, document.body),
            )

    async def _count(self, exchange: str, key: str) -> int:
        try:
            return await self._engine.route_count(VHOST, exchange, key)
        except ChannelError as error:
            if error.code != _NOT_FOUND:
                raise
            return 0

    async def _publish(self, exchange: str, topic: Topic, content_type: str, body: bytes) -> None:
        self._require_room(topic)
        properties = _properties(topic, content_type)
        publish = self._engine.publish
        _check(topic, await publish(None, VHOST, exchange, topic.key, properties, body))

    def _require_room(self, topic: Topic) -> None:
        """Raises `NotDistributed` while memory or disk is low: there is no publisher to block."""
        shortage = self._engine.shortage()
        if shortage:
            reason = f"its content is not taken: {shortage}"
            raise NotDistributed(reason, field="hub.topic", value=topic.url)


def _properties(topic: Topic, content_type: str) -> Properties:
    return Properties(
        content_type=content_type or None,
        delivery_mode=_PERSISTENT,
        headers={URL_HEADER: topic.url},
    )


def _check(topic: Topic, outcome: PublishOutcome) -> None:
    """Raises `NotDistributed` for a message that was not stored in every queue."""
    if outcome in (PublishOutcome.REJECTED, PublishOutcome.NOT_DURABLE):
        who = "a queue" if outcome is PublishOutcome.REJECTED else "the disk"
        reason = f"{who} has not taken its content"
        raise NotDistributed(reason, field="hub.topic", value=topic.url)
