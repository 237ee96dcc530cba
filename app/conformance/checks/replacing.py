"""126-129: a subscription is one of a topic and a callback, and changes when it is confirmed."""

from __future__ import annotations

from ..callback import Callback, always, echo
from ..check_context import CheckContext, new_secret
from ..exchange import Answer
from ..expect import check_signature
from ..registry import check
from ..results import Failed, Level, Undecided
from ..topic import Topic

_RULE = "rule 4; WebSub 5.1"
_SECRET = "hub.secret"


@check(126, "A refused renewal leaves subscription and secret as they were", Level.MUST, _RULE)
async def refused_renewal(context: CheckContext) -> None:
    topic, callback, old = context.topic(), context.callback(), new_secret()
    await context.subscribe(callback, topic, (_SECRET, old))
    await refused(context, "subscribe", callback, topic, (_SECRET, new_secret()))
    await context.publish(topic)
    await context.delivery(callback, topic, 1, old)


@check(127, "A confirmed renewal brings its secret", Level.MUST, _RULE)
async def new_one(context: CheckContext) -> None:
    """Replaces the secret; deliveries are signed with the new one alone, since subscribers look at
    one signature."""
    topic, callback, new = context.topic(), context.callback(), new_secret()
    await context.subscribe(callback, topic, (_SECRET, new_secret()))
    await context.subscribe(callback, topic, (_SECRET, new))
    await context.publish(topic)
    check_signature(await context.delivery(callback, topic, 1, new), new)


@check(128, "A confirmed renewal without a secret ends the signatures", Level.MUST, _RULE)
async def no_secret(context: CheckContext) -> None:
    topic, callback = context.topic(), context.callback()
    await context.subscribe(callback, topic, (_SECRET, new_secret()))
    await context.subscribe(callback, topic)
    await context.publish(topic)
    await context.delivery(callback, topic)


@check(129, "One callback can have several topics", Level.MUST, _RULE)
async def several_topics(context: CheckContext) -> None:
    """Subscribes a callback to two topics; unsubscribing from one leaves the other."""
    ended, kept, callback = context.topic(), context.topic(), context.callback()
    await context.subscribe(callback, kept)
    await context.subscribe(callback, ended)
    await context.unsubscribe(callback, ended)
    witness = await context.witness(ended)
    await context.publish(ended)
    await context.delivery(witness, ended)
    await context.publish(kept)
    request = await context.request_to(callback, 1)
    if request.body == ended.body:
        raise Failed("an update was delivered of a topic that the callback had unsubscribed from")
    await context.delivery(callback, kept)


async def refused(
    context: CheckContext, mode: str, callback: Callback, topic: Topic, *extra: tuple[str, str]
) -> None:
    """Asks for a change that the callback then does not confirm."""
    before = len(callback.verifications)
    callback.confirm = always(Answer(404))
    reply = await context.ask(mode, callback, topic.url, *extra)
    if not reply.is_accepted:
        raise Undecided(f"the hub answered the second {mode} request with {reply}")
    await context.verification(callback, mode, before + 1)
    await context.settle()
    callback.confirm = echo
