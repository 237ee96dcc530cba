"""135-137: ways to end a subscription, and ways not to."""

from __future__ import annotations

from ..callback import always
from ..exchange import Answer
from ..registry import check
from ..stage import Stage
from ..verdicts import Level, Undecided
from .replacing import refused


@check(135, "A refused unsubscription leaves the subscription", Level.MUST,
       "rule 5; WebSub 5.3")  # fmt: skip
async def refused_end(stage: Stage) -> None:
    """Else anybody could end the subscriptions of others."""
    topic, callback = stage.topic(), stage.callback()
    await stage.subscribe(callback, topic)
    await refused(stage, "unsubscribe", callback, topic)
    await stage.publish(topic)
    await stage.delivery(callback, topic)


@check(136, "Unsubscribing needs neither topic nor lease", Level.MUST, "rule 5; WebSub 5.1.1")
async def topic_gone(stage: Stage) -> None:
    """`hub.lease_seconds` is ignored, and the publisher has no say."""
    topic, callback = stage.topic(), stage.callback()
    await stage.subscribe(callback, topic)
    witness = await stage.witness(topic)
    topic.status = 410
    await stage.unsubscribe(callback, topic, ("hub.lease_seconds", "-7"))
    topic.status = 200
    await stage.publish(topic)
    await stage.delivery(witness, topic)
    await stage.nothing_more(callback, 0, "an update came after the subscription had ended")


@check(137, "410 ends the subscription", Level.MAY, "rule 20; WebSub 7")
async def gone(stage: Stage) -> None:
    topic, callback = stage.topic(), stage.callback()
    callback.receive = always(Answer(410))
    witness = await stage.witness(topic)
    await stage.subscribe(callback, topic)
    await stage.publish(topic)
    await stage.request_to(callback, 1)
    await stage.delivery(witness, topic)
    await stage.settle()
    before = len(callback.deliveries)
    await stage.publish(topic)
    await stage.delivery(witness, topic, 2)
    if await callback.delivered(before + 1, stage.options.grace_s):
        raise Undecided("the hub goes on after 410, as it may")
