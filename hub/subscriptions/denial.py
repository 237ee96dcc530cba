"""Notifies callbacks that their subscription has ended, and why (WebSub 5.2: `hub.mode=denied`).

A callback is notified a few times at most, and nothing waits for it. Origins take turns, with one
request each at a time, so that ten thousand denials to a dead one do not delay the others.
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
AT_ONCE = 20  # of the verifier's 50 requests at once
TOO_MANY_REQUESTS = 429

log = logging.getLogger(__name__)

Done = Callable[[Subscription], Awaitable[None]]


class Denial:
    """The notice to one callback; `on_done` is called when it needs no other try."""

    __slots__ = ("on_done", "subscription", "timer", "tries")

    def __init__(self, subscription: Subscription, on_done: Done) -> None:
        self.subscription = subscription
        self.on_done = on_done
        self.tries = 0
        self.timer: asyncio.TimerHandle | None = None

    @property
    def origin(self) -> str:
        return urlsplit(self.subscription.callback).netloc


class Denials:
    """Notifies callbacks of ended subscriptions. `verifier` makes the client that requests
    callbacks, at its first use."""

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
        self._waiting: dict[str, deque[Denial]] = {}
        self._origins: deque[str] = deque()
        self._workers = 0

    @property
    def count(self) -> int:
        """The number of callbacks that are still to be notified."""
        return len(self._pending)

    def announce(self, subscription: Subscription, on_done: Done) -> None:
        """Notifies the callback of `subscription.reason`; `on_done` is called when it has answered,
        or after the last try. One that waits to be notified is not notified twice."""
        if subscription.identity not in self._pending:
            denial = self._pending[subscription.identity] = Denial(subscription, on_done)
            self._enter(denial)

    def is_pending(self, identity: str) -> bool:
        return identity in self._pending

    def drop(self, identity: str) -> None:
        """Cancels the denial of a subscription that was subscribed again."""
        denial = self._pending.pop(identity, None)
        if denial is not None and denial.timer is not None:
            denial.timer.cancel()

    def stop(self) -> None:
        """Leaves pending denials to the next start."""
        for identity in list(self._pending):
            self.drop(identity)
        self._waiting.clear()
        self._origins.clear()

    def _enter(self, denial: Denial) -> None:
        waiting = self._waiting.get(denial.origin)
        if waiting is None:
            waiting = self._waiting[denial.origin] = deque()
            self._origins.append(denial.origin)
        waiting.append(denial)
        if self._workers < AT_ONCE:
            self._workers += 1
            self._tasks.own(self._work())

    async def _work(self) -> None:
        try:
            while self._origins:
                origin = self._origins.popleft()
                try:
                    await self._serve(origin, self._waiting[origin])
                except Exception:  # the denials of other origins go on
                    log.exception("a callback of '%s' can't be notified", origin)
        finally:
            self._workers -= 1

    async def _serve(self, origin: str, waiting: deque[Denial]) -> None:
        """Sends one denial of this origin; the next worker takes one of another."""
        denial = waiting.popleft()
        try:
            if self._pending.get(denial.subscription.identity) is denial:
                await self._try(denial)
        finally:
            if waiting:
                self._origins.append(origin)
            else:
                self._waiting.pop(origin, None)

    async def _try(self, denial: Denial) -> None:
        denial.tries += 1
        if not await self._is_notified(denial) and denial.tries <= len(self._waits_s):
            wait_s = self._waits_s[denial.tries - 1]
            loop = asyncio.get_running_loop()
            denial.timer = loop.call_later(wait_s, self._enter, denial)
            return
        identity = denial.subscription.identity
        try:
            if self._pending.get(identity) is denial:
                await denial.on_done(denial.subscription)
        except WarrenError as error:
            log.error("deleting subscription %s failed: %s", denial.subscription.id, error)
        finally:
            if self._pending.get(identity) is denial:
                del self._pending[identity]

    async def _is_notified(self, denial: Denial) -> bool:
        """Sends the notice. Returns whether no other try is needed: any answer will do, except
        errors of the server and 429, and a refused callback gets none."""
        subscription = denial.subscription
        about = subscription.id, subscription.host
        try:
            verifier = await self._verifier()
            auth = subscription.keys.basic_auth
            status = await verifier.notify(subscription.callback, notice(subscription), auth)
        except CallbackRefused as error:
            log.info("subscription %s: %s is not notified of its end: %s", *about, error)
            return True
        except WarrenError as error:
            log.info("subscription %s: %s can't be notified of its end: %s", *about, error)
            return False
        log.info("subscription %s: %s notified of the end (status %d)", *about, status)
        return status < 500 and status != TOO_MANY_REQUESTS


def notice(subscription: Subscription) -> str:
    """Returns the URL of the request: the callback with the parameters of the notice."""
    return append_query(
        subscription.callback,
        ("hub.mode", "denied"),
        ("hub.topic", subscription.topic_url or subscription.topic),
        ("hub.reason", subscription.reason),
    )
