"""Tells callbacks that their subscription is over, and why (WebSub 5.2: `hub.mode=denied`).

An operator, a lost right or the end of a lease ends subscriptions that the other side believes
in. Its callback is told a few times at most, and nothing waits for it. Origins take turns, one
request each at a time, so that ten thousand denials to a dead one hold up no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...core.errors import WarrenError
from ..errors import CallbackRefused
from ..tasks import Tasks
from .intent import append_query
from .subscription import Subscription

if TYPE_CHECKING:
    from ..verification.verify import Verifier

WAITS_S = (5.0, 60.0)
"""Before the second and the third try; WebSub leaves their number open (w3c/websub#183)."""
AT_ONCE = 20  # of the verifier's 50 turns, for denials come by the thousand
TOO_MANY_REQUESTS = 429

log = logging.getLogger(__name__)

Told = Callable[[Subscription], Awaitable[None]]


class Denial:
    """What one callback is to be told."""

    __slots__ = ("subscription", "timer", "told", "tries")

    def __init__(self, subscription: Subscription, told: Told) -> None:
        self.subscription = subscription
        self.told = told
        self.tries = 0
        self.timer: asyncio.TimerHandle | None = None

    @property
    def origin(self) -> str:
        return urlsplit(self.subscription.callback).netloc


class Denials:
    """`verifier` makes the client that asks callbacks, at its first use."""

    def __init__(
        self,
        verifier: Callable[[], Awaitable[Verifier]],
        tasks: Tasks,
        waits_s: tuple[float, ...] = WAITS_S,
    ) -> None:
        self._verifier = verifier
        self._tasks = tasks
        self._waits_s = waits_s
        self._pending: dict[str, Denial] = {}
        self._lines: dict[str, deque[Denial]] = {}
        self._limiter: deque[str] = deque()
        self._workers = 0

    @property
    def count(self) -> int:
        """Callbacks that are still to be told."""
        return len(self._pending)

    def announce(self, subscription: Subscription, told: Told) -> None:
        """Tells the callback `subscription.reason`; `told` runs when it has heard it, or when
        there is no use in telling it once more. One that waits to be told is not told twice."""
        if subscription.identity not in self._pending:
            denial = self._pending[subscription.identity] = Denial(subscription, told)
            self._enter(denial)

    def is_pending(self, identity: str) -> bool:
        return identity in self._pending

    def drop(self, identity: str) -> None:
        """It is subscribed again: nothing is over."""
        denial = self._pending.pop(identity, None)
        if denial is not None and denial.timer is not None:
            denial.timer.cancel()

    def stop(self) -> None:
        """What is not told by now is for the next start."""
        for identity in list(self._pending):
            self.drop(identity)
        self._lines.clear()
        self._limiter.clear()

    def _enter(self, denial: Denial) -> None:
        line = self._lines.get(denial.origin)
        if line is None:
            line = self._lines[denial.origin] = deque()
            self._limiter.append(denial.origin)
        line.append(denial)
        if self._workers < AT_ONCE:
            self._workers += 1
            self._tasks.own(self._work())

    async def _work(self) -> None:
        try:
            while self._limiter:
                origin = self._limiter.popleft()
                try:
                    await self._serve(origin, self._lines[origin])
                except Exception:  # the others are not to pay for what nobody expected
                    log.exception("a callback of '%s' can't be told", origin)
        finally:
            self._workers -= 1

    async def _serve(self, origin: str, line: deque[Denial]) -> None:
        """One denial of this origin; the next worker takes one of another."""
        denial = line.popleft()
        try:
            if self._pending.get(denial.subscription.identity) is denial:
                await self._try(denial)
        finally:
            if line:
                self._limiter.append(origin)
            else:
                self._lines.pop(origin, None)

    async def _try(self, denial: Denial) -> None:
        denial.tries += 1
        if not await self._has_heard(denial) and denial.tries <= len(self._waits_s):
            wait_s = self._waits_s[denial.tries - 1]
            loop = asyncio.get_running_loop()
            denial.timer = loop.call_later(wait_s, self._enter, denial)
            return
        identity = denial.subscription.identity
        try:
            if self._pending.get(identity) is denial:
                await denial.told(denial.subscription)
        except WarrenError as error:
            log.error("subscription %s stays stored: %s", denial.subscription.id, error)
        finally:
            if self._pending.get(identity) is denial:
                del self._pending[identity]

    async def _has_heard(self, denial: Denial) -> bool:
        """Any answer will do but those that ask for another time; a refused one gets none."""
        subscription = denial.subscription
        about = subscription.id, subscription.host
        try:
            verifier = await self._verifier()
            auth = subscription.keys.basic_auth
            status = await verifier.tell(subscription.callback, notice(subscription), auth)
        except CallbackRefused as error:
            log.info("subscription %s: %s is not told of its end: %s", *about, error)
            return True
        except WarrenError as error:
            log.info("subscription %s: %s can't be told of its end: %s", *about, error)
            return False
        log.info("subscription %s: %s is told of its end and answers %d", *about, status)
        return status < 500 and status != TOO_MANY_REQUESTS


def notice(subscription: Subscription) -> str:
    """The URL to get: the callback's own query, then ours."""
    return append_query(
        subscription.callback,
        ("hub.mode", "denied"),
        ("hub.topic", subscription.topic_url or subscription.topic),
        ("hub.reason", subscription.reason),
    )
