"""126-129: a subscription is one of a topic and a callback, and changes when it is confirmed."""

from __future__ import annotations

from ..callback import Callback, always, echo
from ..exchange import Answer
from ..expect import check_signature
from ..registry import check
from ..stage import Stage, new_secret
from ..topic import Topic
from ..verdicts import Failed, Level, Undecided

_RULE = "rule 4; WebSub 5.1"
_SECRET = "hub.secret"


@check(126, "A refused renewal leaves subscription and secret as they were", Level.MUST, _RULE)
async def refused_renewal(stage: Stage) -> None:
    topic, callback, old = stage.topic(), stage.callback(), new_secret()
    await stage.subscribe(callback, topic, (_SECRET, old))
    await refused(stage, "subscribe", callback, topic, (_SECRET, new_secret()))
    await stage.publish(topic)
    await stage.delivery(callback, topic, 1, old)


@check(127, "A confirmed renewal brings its secret", Level.MUST, _RULE)
async def new_one(stage: Stage) -> None:
    """Signed with the new one alone: subscribers look at one signature."""
    topic, callback, new = stage.topic(), stage.callback(), new_secret()
    await stage.subscribe(callback, topic, (_SECRET, new_secret()))
    await stage.subscribe(callback, topic, (_SECRET, new))
    await stage.publish(topic)
    check_signature(await stage.delivery(callback, topic, 1, new), new)


@check(128, "A confirmed renewal without a secret ends the signatures", Level.MUST, _RULE)
async def no_secret(stage: Stage) -> None:
    topic, callback = stage.topic(), stage.callback()
    await stage.subscribe(callback, topic, (_SECRET, new_secret()))
    await stage.subscribe(callback, topic)
    await stage.publish(topic)
    await stage.delivery(callback, topic)


@check(129, "One callback can have several topics", Level.MUST, _RULE)
async def several_topics(stage: Stage) -> None:
    """And unsubscribing from one leaves the other."""
    ended, kept, callback = stage.topic(), stage.topic(), stage.callback()
    await stage.subscribe(callback, kept)
    await stage.subscribe(callback, ended)
    await stage.unsubscribe(callback, ended)
    witness = await stage.witness(ended)
    await stage.publish(ended)
    await stage.delivery(witness, ended)
    await stage.publish(kept)
    request = await stage.request_to(callback, 1)
    if request.body == ended.body:
        raise Failed("an update of the topic came that the callback had unsubscribed from")
    await stage.delivery(callback, kept)


async def refused(
    stage: Stage, mode: str, callback: Callback, topic: Topic, *extra: tuple[str, str]
) -> None:
    """Asks for a change that the callback then does not confirm."""
    before = len(callback.verifications)
    callback.confirm = always(Answer(404))
    reply = await stage.ask(mode, callback, topic.url, *extra)
    if not reply.is_accepted:
        raise Undecided(f"the hub answered the second {mode} request with {reply}")
    await stage.verification(callback, mode, before + 1)
    await stage.settle()
    callback.confirm = echo
