"""120-126: whose answer makes a subscription, and whose does not (WebSub 5.3)."""

from __future__ import annotations

from collections.abc import Callable

from ..callback import Callback, always
from ..exchange import Answer, Request
from ..registry import check
from ..stage import Stage
from ..verdicts import Failed, Level

_RULE = "rule 15; WebSub 5.3.1"

Answers = Callable[[bytes], Answer]
"""What is answered to a challenge."""


@check(120, "Each challenge is new", Level.SHOULD, "rule 14; WebSub 5.3")
async def new_challenges(stage: Stage) -> None:
    topic, callback = stage.topic(), stage.callback()
    for _ in range(3):
        await stage.subscribe(callback, topic)
    challenges = [request.challenge.decode() for request in callback.verifications]
    if len(set(challenges)) < len(challenges):
        raise Failed(f"a challenge was used again: {', '.join(challenges)}")
    if min(map(len, challenges)) < 8:
        raise Failed(f"challenges are so short that they can be guessed: {', '.join(challenges)}")


@check(121, "Another body than the challenge confirms nothing", Level.MUST, _RULE)
async def wrong_body(stage: Stage) -> None:
    await _confirms_nothing(stage, lambda challenge: Answer(body=b"not " + challenge))


@check(122, "An empty body confirms nothing", Level.MUST, _RULE)
async def empty_body(stage: Stage) -> None:
    await _confirms_nothing(stage, lambda _: Answer(body=b""))


@check(123, "404 confirms nothing, whatever its body", Level.MUST, _RULE)
async def not_found(stage: Stage) -> None:
    await _confirms_nothing(stage, lambda challenge: Answer(404, body=challenge))


@check(124, "500 confirms nothing, whatever its body", Level.MUST, _RULE)
async def broken(stage: Stage) -> None:
    await _confirms_nothing(stage, lambda challenge: Answer(500, body=challenge))


@check(125, "A redirect confirms nothing, wherever it leads", Level.MUST, _RULE)
async def redirected(stage: Stage) -> None:
    """It leads to a page that gives the challenge."""
    page = stage.callback()

    async def confirm(request: Request) -> Answer:
        page.confirm = always(Answer(body=request.challenge))
        place = {"Location": f"{page.url}?hub.challenge=x"}
        return Answer(302, place, request.challenge)

    callback = stage.callback()
    callback.confirm = confirm
    await _unsubscribed(stage, callback)


async def _confirms_nothing(stage: Stage, answer: Answers) -> None:
    callback = stage.callback()

    async def confirm(request: Request) -> Answer:
        return answer(request.challenge)

    callback.confirm = confirm
    await _unsubscribed(stage, callback)


async def _unsubscribed(stage: Stage, callback: Callback) -> None:
    """Another subscriber shows when the update is out."""
    topic = stage.topic()
    witness = await stage.witness(topic)
    stage.require_accepted(await stage.ask("subscribe", callback, topic.url), "subscribe")
    await stage.verification(callback, "subscribe", 1)
    await stage.settle()
    await stage.publish(topic)
    await stage.delivery(witness, topic)
    await stage.nothing_more(callback, 0, "an update came to a callback that had not confirmed")
