"""Runs the checks: the simplest one first, then the others concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import httpx

from .check_context import CheckContext
from .checks import all_checks
from .client import HubClient
from .options import Options
from .registry import Check
from .results import Failed, NoService, Outcome, Result, Undecided, Unusable
from .servers import Servers

FIRST = 100
"""If this check fails, no other can be decided."""
_NO_HUB = {
    401: "wants a user and a password (--user, --password)",
    403: "does not let this user in",
    404: "is not there",
    405: "takes no POST",
}

Tell = Callable[[Result], None]


async def run(options: Options, tell: Tell = lambda _: None) -> list[Result]:
    """Runs the checks and returns the results by number; calls `tell` with each as it completes.

    Raises `Unusable` if there is no hub to check.
    """
    options.check()
    chosen = choose(options.only)
    hub = HubClient(options)
    try:
        await _reach(hub)
        async with Servers(options) as servers:
            found = await _play_all(
                chosen, lambda: CheckContext(servers, hub, options), options, tell
            )
    finally:
        await hub.close()
    return sorted(found, key=lambda result: result.number)


def choose(only: frozenset[int]) -> list[Check]:
    """Returns the chosen checks by number, or all. Raises `Unusable` for unknown numbers."""
    known = {check.number: check for check in all_checks()}
    unknown = sorted(only - known.keys())
    if unknown:
        names = ", ".join(map(str, unknown))
        raise Unusable(f"--only {names}: no such check; the numbers are {min(known)}-{max(known)}")
    return [known[number] for number in sorted(only or known)]


async def _reach(hub: HubClient) -> None:
    try:
        status = await hub.probe()
    except httpx.HTTPError as error:
        raise Unusable(f"no hub answers at {hub.url}: {error!r}") from error
    if status in _NO_HUB:
        raise Unusable(f"the hub at {hub.url} {_NO_HUB[status]}: it answered {status}")


async def _play_all(
    chosen: Sequence[Check], make: Callable[[], CheckContext], options: Options, tell: Tell
) -> list[Result]:
    results: list[Result] = []
    limiter = asyncio.Semaphore(options.parallel)

    async def one(check: Check) -> None:
        async with limiter:
            result = await play(check, make(), options)
        results.append(result)
        tell(result)

    rest = list(chosen)
    if len(rest) > 1 and rest[0].number == FIRST:
        await one(rest.pop(0))
        if results[0].is_final:
            why = f"needs what failed in check {FIRST}"
            return results + [_result(check, Outcome.SKIP, why) for check in rest]
    async with asyncio.TaskGroup() as group:
        for check in rest:
            group.create_task(one(check))
    return results


async def play(check: Check, context: CheckContext, options: Options) -> Result:
    try:
        return await _played(check, context, options)
    finally:
        await context.unsubscribe_all()


async def _played(check: Check, context: CheckContext, options: Options) -> Result:
    seen = context.trace.lines
    if check.is_slow and not options.slow:
        return _result(check, Outcome.SKIP, "waits for a lease to end; run with --slow")
    try:
        note = await check.play(context)
    except Failed as error:
        is_final = isinstance(error, NoService)
        return _result(check, Outcome.FAIL, str(error), seen, is_final)
    except Undecided as error:
        return _result(check, Outcome.SKIP, str(error), seen)
    return _result(check, Outcome.PASS, note or "", seen)


def _result(
    check: Check, outcome: Outcome, reason: str, seen: Sequence[str] = (), is_final: bool = False
) -> Result:
    return Result(
        check.number,
        check.title,
        check.level,
        check.rule,
        outcome,
        reason,
        tuple(seen),
        is_final,
    )
