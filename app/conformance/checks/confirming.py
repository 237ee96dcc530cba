"""120-126: answers that confirm a subscription, and answers that do not (WebSub 5.3)."""

from __future__ import annotations

from collections.abc import Callable

from ..callback import Callback, always
from ..check_context import CheckContext
from ..exchange import Answer, Request
from ..registry import check
from ..results import Failed, Level

_RULE = "rule 15; WebSub 5.3.1"

Answers = Callable[[bytes], Answer]
"""The response to a verification."""


@check(120, "Each challenge is new", Level.SHOULD, "rule 14; WebSub 5.3")
async def new_challenges(context: CheckContext) -> None:
    topic, callback = context.topic(), context.callback()
    for _ in range(3):
        await context.subscribe(callback, topic)
    challenges = [request.challenge.decode() for request in callback.verifications]
    if len(set(challenges)) < len(challenges):
        raise Failed(f"a challenge was used again: {', '.join(challenges)}")
    if min(map(len, challenges)) < 8:
        raise Failed(f"challenges are so short that they can be guessed: {', '.join(challenges)}")


@check(121, "Another body than the challenge confirms nothing", Level.MUST, _RULE)
async def wrong_body(context: CheckContext) -> None:
    await _confirms_nothing(context, lambda challenge: Answer(body=b"not " + challenge))


@check(122, "An empty body confirms nothing", Level.MUST, _RULE)
async def empty_body(context: CheckContext) -> None:
    await _confirms_nothing(context, lambda _: Answer(body=b""))


@check(123, "404 confirms nothing, whatever its body", Level.MUST, _RULE)
async def not_found(context: CheckContext) -> None:
    await _confirms_nothing(context, lambda challenge: Answer(404, body=challenge))


@check(124, "500 confirms nothing, whatever its body", Level.MUST, _RULE)
async def broken(context: CheckContext) -> None:
    await _confirms_nothing(context, lambda challenge: Answer(500, body=challenge))


@check(125, "A redirect confirms nothing, wherever it leads", Level.MUST, _RULE)
async def redirected(context: CheckContext) -> None:
    """Redirects to a page that returns the challenge."""
    page = context.callback()

    async def confirm(request: Request) -> Answer:
        page.confirm = always(Answer(body=request.challenge))
        place = {"Location": f"{page.url}?hub.challenge=x"}
        return Answer(302, place, request.challenge)

    callback = context.callback()
    callback.confirm = confirm
    await _unsubscribed(context, callback)


async def _confirms_nothing(context: CheckContext, answer: Answers) -> None:
    callback = context.callback()

    async def confirm(request: Request) -> Answer:
        return answer(request.challenge)

    callback.confirm = confirm
    await _unsubscribed(context, callback)


async def _unsubscribed(context: CheckContext, callback: Callback) -> None:
    """Checks that the callback is not subscribed. Another subscriber shows when the update was
    distributed."""
    topic = context.topic()
    witness = await context.witness(topic)
    context.require_accepted(await context.ask("subscribe", callback, topic.url), "subscribe")
    await context.verification(callback, "subscribe", 1)
    await context.settle()
    await context.publish(topic)
    await context.delivery(witness, topic)
    await context.nothing_more(
        callback, 0, "an update was delivered to a callback that had not confirmed"
    )
