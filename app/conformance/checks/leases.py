"""130-132: how long subscriptions last (WebSub 5.1.1, 5.3)."""

from __future__ import annotations

import asyncio
import time

from ..callback import Callback
from ..check_context import CheckContext
from ..expect import lease_of
from ..registry import check
from ..results import Failed, Level, Undecided
from ..topic import Topic

ENDLESS_S = 10 * 365 * 86_400
ASKED_S = 86_400
MARGIN_S = 2.0
_LEASE = "hub.lease_seconds"


@check(130, "No lease is endless", Level.MUST, "rule 16; WebSub 5.1.1")
async def never_endless(context: CheckContext) -> str:
    """Requests no lease, as old subscribers do, and a very long one: both have to end."""
    by_itself = await _granted(context)
    of_a_day = await _granted(context, (_LEASE, str(ASKED_S)))
    of_millennia = await _granted(context, (_LEASE, "99999999999"))
    return f"grants {by_itself} by itself, {of_a_day} of a day, {of_millennia} of millennia"


async def _granted(context: CheckContext, *extra: tuple[str, str]) -> str:
    topic, callback = context.topic(), context.callback()
    reply = await context.ask("subscribe", callback, topic.url, *extra)
    if extra and not reply.is_accepted:
        return f"nothing ({reply.status})"
    context.require_accepted(reply, "subscribe")
    return _within_bounds(lease_of(await context.verification(callback, "subscribe", 1)))


def _within_bounds(lease_s: int) -> str:
    if lease_s > ENDLESS_S:
        raise Failed(f"a lease of {lease_s} s was granted, which is as good as endless")
    return f"{lease_s} s"


@check(131, "A lease that has ended brings nothing more", Level.MUST, "rule 16; WebSub 5.3",
       is_slow=True)  # fmt: skip
async def ends(context: CheckContext) -> str:
    """Waits for the end of a lease, which counts from the verification; a witness has a longer
    one."""
    topic, callback = context.topic(), context.callback()
    witness = await context.witness(topic)
    lease_s = await _short(context, callback, topic)
    await asyncio.sleep(_left(callback, lease_s))
    await context.publish(topic)
    await context.delivery(witness, topic)
    await context.nothing_more(
        callback,
        0,
        f"an update was delivered {MARGIN_S:g} s after the end of the lease of {lease_s} s",
    )
    return f"a lease of {lease_s} s"


@check(132, "A renewal makes the lease longer", Level.MUST, "rule 4; WebSub 5.1", is_slow=True)
async def renewed(context: CheckContext) -> None:
    topic, callback = context.topic(), context.callback()
    lease_s = await _short(context, callback, topic)
    left_s = _left(callback, lease_s)
    await context.subscribe(callback, topic, (_LEASE, str(ASKED_S)))
    await asyncio.sleep(left_s)
    await context.publish(topic)
    await context.delivery(callback, topic)


async def _short(context: CheckContext, callback: Callback, topic: Topic) -> int:
    """Subscribes for as short a time as the hub allows; returns the lease in seconds."""
    asked = (_LEASE, str(context.options.short_lease_s))
    reply = await context.ask("subscribe", callback, topic.url, asked)
    if not reply.is_accepted:
        raise Undecided(f"the hub grants no lease of {context.options.short_lease_s} s: {reply}")
    lease_s = lease_of(await context.verification(callback, "subscribe", 1))
    if lease_s > context.options.longest_lease_s:
        raise Undecided(f"requested {context.options.short_lease_s} s, the hub granted {lease_s} s")
    await context.settle()
    return lease_s


def _left(callback: Callback, lease_s: int) -> float:
    """Returns the seconds until the lease is over for certain."""
    return max(0.0, callback.verifications[0].at_s + lease_s + MARGIN_S - time.monotonic())
