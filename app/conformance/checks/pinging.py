"""180-186: how publishers tell a hub; WebSub leaves it open, so hubs know what they know."""

from __future__ import annotations

from collections.abc import Sequence

from ..registry import check
from ..stage import Stage, fresh
from ..topic import Topic
from ..verdicts import Failed, Level, Undecided

_URL = "hub.url"


@check(180, "Ping with hub.topic", Level.MAY, "WebSub 6; websub.rocks")
async def with_topic(stage: Stage) -> None:
    topic = stage.topic()
    await _pinged(stage, [topic], ("hub.topic", topic.url))


@check(181, "Ping with hub.url", Level.MAY, "PubSubHubbub 0.4 7.1")
async def with_url(stage: Stage) -> None:
    topic = stage.topic()
    await _pinged(stage, [topic], (_URL, topic.url))


@check(182, "Ping with several hub.url", Level.MAY, "PubSubHubbub 0.3 7.1")
async def repeated(stage: Stage) -> None:
    topics = [stage.topic(), stage.topic()]
    await _pinged(stage, topics, *((_URL, topic.url) for topic in topics))


@check(183, "Ping with hub.url[]", Level.MAY, "Superfeedr")
async def brackets(stage: Stage) -> None:
    topics = [stage.topic(), stage.topic()]
    await _pinged(stage, topics, *((f"{_URL}[]", topic.url) for topic in topics))


@check(184, "Ping with a comma list", Level.MAY, "Superfeedr")
async def commas(stage: Stage) -> None:
    topics = [stage.topic(), stage.topic()]
    await _pinged(stage, topics, (_URL, ",".join(topic.url for topic in topics)))


@check(185, "Ping of a topic without subscribers", Level.MAY, "PubSubHubbub 0.3 7.1")
async def nobody(stage: Stage) -> str:
    topic = stage.topic()
    reply = await stage.ping((_URL, topic.url), ("hub.topic", topic.url))
    if not reply.is_accepted:
        raise Undecided(f"the hub answered {reply}")
    return f"answered {reply.status}"


@check(186, "Several pings at once lead to the last content", Level.SHOULD, "rule 18; WebSub 6")
async def storm(stage: Stage) -> str:
    """The hub may send what was between, or not."""
    topic, callback = stage.topic(), stage.callback()
    await stage.subscribe(callback, topic)
    for _ in range(10):
        await stage.publish(topic)
    if not await callback.wait(
        lambda: any(request.body == topic.body for request in callback.deliveries),
        stage.options.patience_s,
    ):
        raise Failed("after ten pings the last content did not come")
    return f"10 pings, {len(callback.deliveries)} notifications, {len(topic.fetches)} fetches"


async def _pinged(stage: Stage, topics: Sequence[Topic], *fields: tuple[str, str]) -> None:
    """Each topic has a subscriber, and each of these gets what is new."""
    callbacks = [await stage.witness(topic) for topic in topics]
    for topic in topics:
        topic.body = fresh()
    reply = await stage.ping(*fields)
    if not reply.is_accepted:
        raise Undecided(f"the hub does not know this form: {reply}")
    for topic, callback in zip(topics, callbacks, strict=True):
        if not await callback.delivered(1, stage.options.patience_s):
            raise Undecided("the hub took the ping, but no notification came of it")
        await stage.delivery(callback, topic)
