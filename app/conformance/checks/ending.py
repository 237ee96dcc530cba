"""135-137: requests that end a subscription, and requests that do not."""

from __future__ import annotations

from ..callback import always
from ..check_context import CheckContext
from ..exchange import Answer
from ..registry import check
from ..results import Level, Undecided
from .replacing import refused


@check(135, "A refused unsubscription leaves the subscription", Level.MUST,
       "rule 5; WebSub 5.3")  # fmt: skip
async def refused_end(context: CheckContext) -> None:
    """Unsubscribes without confirmation: otherwise anyone could end the subscriptions of others."""
    topic, callback = context.topic(), context.callback()
    await context.subscribe(callback, topic)
    await refused(context, "unsubscribe", callback, topic)
    await context.publish(topic)
    await context.delivery(callback, topic)


@check(136, "Unsubscribing needs neither topic nor lease", Level.MUST, "rule 5; WebSub 5.1.1")
async def topic_gone(context: CheckContext) -> None:
    """Unsubscribes from a topic that is gone: `hub.lease_seconds` is ignored, and the publisher is
    not asked."""
    topic, callback = context.topic(), context.callback()
    await context.subscribe(callback, topic)
    witness = await context.witness(topic)
    topic.status = 410
    await context.unsubscribe(callback, topic, ("hub.lease_seconds", "-7"))
    topic.status = 200
    await context.publish(topic)
    await context.delivery(witness, topic)
    await context.nothing_more(
        callback, 0, "an update was delivered after the subscription had ended"
    )


@check(137, "410 ends the subscription", Level.MAY, "rule 20; WebSub 7")
async def gone(context: CheckContext) -> None:
    topic, callback = context.topic(), context.callback()
    callback.receive = always(Answer(410))
    witness = await context.witness(topic)
    await context.subscribe(callback, topic)
    await context.publish(topic)
    await context.request_to(callback, 1)
    await context.delivery(witness, topic)
    await context.settle()
    before = len(callback.deliveries)
    await context.publish(topic)
    await context.delivery(witness, topic, 2)
    if await callback.delivered(before + 1, context.options.grace_s):
        raise Undecided("the hub continues after 410, as it may")
