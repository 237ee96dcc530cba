"""180-186: the ways in which publishers notify a hub; WebSub leaves them open, so each hub has its
own."""

from __future__ import annotations

from collections.abc import Sequence

from ..check_context import CheckContext, fresh
from ..registry import check
from ..results import Failed, Level, Undecided
from ..topic import Topic

_URL = "hub.url"


@check(180, "Ping with hub.topic", Level.MAY, "WebSub 6; websub.rocks")
async def with_topic(context: CheckContext) -> None:
    topic = context.topic()
    await _pinged(context, [topic], ("hub.topic", topic.url))


@check(181, "Ping with hub.url", Level.MAY, "PubSubHubbub 0.4 7.1")
async def with_url(context: CheckContext) -> None:
    topic = context.topic()
    await _pinged(context, [topic], (_URL, topic.url))


@check(182, "Ping with several hub.url", Level.MAY, "PubSubHubbub 0.3 7.1")
async def repeated(context: CheckContext) -> None:
    topics = [context.topic(), context.topic()]
    await _pinged(context, topics, *((_URL, topic.url) for topic in topics))


@check(183, "Ping with hub.url[]", Level.MAY, "Superfeedr")
async def brackets(context: CheckContext) -> None:
    topics = [context.topic(), context.topic()]
    await _pinged(context, topics, *((f"{_URL}[]", topic.url) for topic in topics))


@check(184, "Ping with a comma list", Level.MAY, "Superfeedr")
async def commas(context: CheckContext) -> None:
    topics = [context.topic(), context.topic()]
    await _pinged(context, topics, (_URL, ",".join(topic.url for topic in topics)))


@check(185, "Ping of a topic without subscribers", Level.MAY, "PubSubHubbub 0.3 7.1")
async def nobody(context: CheckContext) -> str:
    topic = context.topic()
    reply = await context.ping((_URL, topic.url), ("hub.topic", topic.url))
    if not reply.is_accepted:
        raise Undecided(f"the hub answered {reply}")
    return f"answered {reply.status}"


@check(186, "Several pings at once lead to the last content", Level.SHOULD, "rule 18; WebSub 6")
async def storm(context: CheckContext) -> str:
    """Pings ten times in a row; the hub may skip versions between the first and the last."""
    topic, callback = context.topic(), context.callback()
    await context.subscribe(callback, topic)
    for _ in range(10):
        await context.publish(topic)
    if not await callback.wait(
        lambda: any(request.body == topic.body for request in callback.deliveries),
        context.options.patience_s,
    ):
        raise Failed("the last content was not delivered after ten pings")
    return f"10 pings, {len(callback.deliveries)} notifications, {len(topic.fetches)} fetches"


async def _pinged(context: CheckContext, topics: Sequence[Topic], *fields: tuple[str, str]) -> None:
    """Publishes all topics; each has a subscriber, which has to get the new content."""
    callbacks = [await context.witness(topic) for topic in topics]
    for topic in topics:
        topic.body = fresh()
    reply = await context.ping(*fields)
    if not reply.is_accepted:
        raise Undecided(f"the hub does not know this form: {reply}")
    for topic, callback in zip(topics, callbacks, strict=True):
        if not await callback.delivered(1, context.options.patience_s):
            raise Undecided("the hub accepted the ping, but sent no notification")
        await context.delivery(callback, topic)
