"""160-165: callbacks that fail (WebSub 7; the practice of good webhook senders)."""

from __future__ import annotations

from ..callback import Callback, Script, take
from ..check_context import CheckContext
from ..exchange import Answer, Request
from ..registry import check
from ..results import Failed, Level, NoService, Undecided
from ..topic import Topic

RETRY_AFTER_S = 5
ROUNDING_S = 1.0
"""Tolerance: a hub may count whole seconds, from when the response came."""


@check(160, "500 is tried again", Level.SHOULD, "rule 21; WebSub 7")
async def after_500(context: CheckContext) -> str:
    return await _tried_again(context, Answer(500))


@check(161, "A connection that breaks is tried again", Level.SHOULD, "rule 21; WebSub 7")
async def after_a_break(context: CheckContext) -> str:
    return await _tried_again(context, Answer(drop=True))


@check(162, "Retry-After is honoured", Level.SHOULD, "rule 21; RFC 9110 10.2.3")
async def retry_after(context: CheckContext) -> str:
    answer = Answer(503, {"Retry-After": str(RETRY_AFTER_S)})
    first, second = await _two_attempts(context, answer)
    waited_s = second.at_s - first.at_s
    if waited_s < RETRY_AFTER_S - ROUNDING_S:
        raise Failed(f"asked to wait {RETRY_AFTER_S} s, the hub tried again after {waited_s:.1f} s")
    return f"tried again after {waited_s:.1f} s, asked to wait {RETRY_AFTER_S} s"


@check(163, "After a failed notification the next update comes", Level.MUST, "rule 22; WebSub 7")
async def next_update(context: CheckContext) -> None:
    """Fails one delivery: failures never end a subscription, which lives until its lease ends."""
    topic, callback = context.topic(), context.callback()
    failing = await _subscribed(context, topic, callback)
    await context.publish(topic)
    await context.request_to(callback, 1)
    await context.settle()
    await context.publish(topic)
    callback.receive = _except(failing)
    if not await callback.wait(
        lambda: any(request.body == topic.body for request in callback.deliveries),
        context.options.patience_s,
    ):
        if len(callback.deliveries) > 1:
            raise Undecided(
                "the hub tries the first update again and keeps the second back; --patience "
                "longer than its tries would show what comes then"
            )
        raise Failed("the update after a failed notification was not delivered")


@check(164, "A callback in trouble holds nobody else up", Level.SHOULD, "WebSub 7")
async def isolated(context: CheckContext) -> None:
    topic, well = context.topic(), context.callback()
    for _ in range(3):
        await _subscribed(context, topic, context.callback())
    await context.subscribe(well, topic)
    for count in (1, 2, 3):
        await context.publish(topic)
        await context.delivery(well, topic, count)


@check(165, "A second attempt says that it is the same message", Level.MAY, "Standard Webhooks")
async def same_id(context: CheckContext) -> str:
    first, second = await _two_attempts(context, Answer(500))
    names = [request.headers.get("webhook-id") for request in (first, second)]
    if names[0] is None:
        raise Undecided("the hub sends no webhook-id, as it may")
    if names[0] != names[1]:
        raise Failed(f"webhook-id was {names[0]}, then {names[1]}")
    return f"webhook-id {names[0]}"


async def _tried_again(context: CheckContext, answer: Answer) -> str:
    first, second = await _two_attempts(context, answer)
    return f"after {second.at_s - first.at_s:.1f} s"


async def _two_attempts(context: CheckContext, answer: Answer) -> tuple[Request, Request]:
    """Returns the attempts at a delivery: the first is answered so, the second with success; both
    have the same content."""
    topic, callback = context.topic(), context.callback()

    async def receive(_: Request) -> Answer:
        return answer if len(callback.deliveries) == 1 else Answer(204)

    callback.receive = receive
    await context.subscribe(callback, topic)
    await context.publish(topic)
    first = await context.delivery(callback, topic)
    try:
        return first, await context.delivery(callback, topic, 2)
    except NoService as error:
        raise Failed(f"no second attempt: {error}") from error


async def _subscribed(context: CheckContext, topic: Topic, callback: Callback) -> list[bytes]:
    """Subscribes a callback that answers 500; returns the list of its deliveries."""
    bodies: list[bytes] = []

    async def receive(request: Request) -> Answer:
        bodies.append(request.body)
        return Answer(500)

    callback.receive = receive
    await context.subscribe(callback, topic)
    return bodies


def _except(failing: list[bytes]) -> Script:
    """Returns answers that fail for these bodies and accept all others."""

    async def receive(request: Request) -> Answer:
        return Answer(500) if request.body in failing else await take(request)

    return receive
