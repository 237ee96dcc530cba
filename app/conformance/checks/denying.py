"""140-142: subscriptions that the hub or its publisher does not want (WebSub 5.2)."""

from __future__ import annotations

from ..callback import Callback
from ..check_context import CheckContext
from ..registry import check
from ..results import Failed, Level, Undecided
from ..topic import Topic

_RULE = "rule 13; WebSub 5.2"


@check(140, "A topic that is not there: refused or denied", Level.MUST, _RULE)
async def missing(context: CheckContext) -> str:
    topic = context.topic()
    topic.status = 404
    return await _denied(context, topic)


@check(141, "A topic that may not be read: refused or denied", Level.MUST, _RULE)
async def forbidden(context: CheckContext) -> str:
    topic = context.topic()
    topic.status = 403
    return await _denied(context, topic)


@check(142, "A topic that calls itself by another URL: refused or denied", Level.MUST,
       "rules 12, 13; WebSub 5.1.1, 5.2")  # fmt: skip
async def other_self(context: CheckContext) -> str:
    topic = context.topic()
    topic.self_url = context.topic().url
    return await _denied(context, topic)


async def _denied(context: CheckContext, topic: Topic) -> str:
    """Checks a denial. The hub may accept the subscription; if it notifies the callback that it
    does not, the notice has to follow the specification."""
    callback = context.callback("?token=1")
    reply = await context.ask("subscribe", callback, topic.url)
    if not reply.is_accepted:
        return f"refused with {reply}"
    wait_s = context.options.grace_s
    if not await callback.wait(lambda: bool(callback.denials), wait_s):
        raise Undecided(f"the hub has not denied it within {wait_s:g} s, and need not")
    _check_denial(callback, topic)
    return f"denied: {callback.denials[0].last('hub.reason') or 'no reason given'}"


def _check_denial(callback: Callback, topic: Topic) -> None:
    request = callback.denials[0]
    if request.method != "GET":
        raise Failed(f"the denial was a {request.method}, not a GET")
    if request.last("hub.topic") != topic.url:
        raise Failed(f"hub.topic in the denial is {request.last('hub.topic')!r}")
    if not request.target.startswith(f"{callback.target}&"):
        raise Failed(f"the denial went to {request.target}, the callback was {callback.target}")
