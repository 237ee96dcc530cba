"""Limits the rate of deliveries: per subscription, per origin of callbacks, and in all.

Deliveries above the limit wait here, in order, and take no slot. Most subscriptions have no limit,
and their deliveries pass without a look at the clock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from urllib.parse import urlsplit
from weakref import WeakSet

from ..engine.port import Delivery
from ..guard.own import DEFAULT_PORTS
from ..settings import HubSettings
from ..subscriptions.active import ActiveSubscription
from .token_bucket import TokenBucket

MAX_ORIGINS = 10_000  # above it, idle limiters are dropped
MIN_WAIT_S = 0.001  # of a timer

Pass = Callable[[ActiveSubscription, Delivery], None]


class RateLimiter:
    """Lets deliveries pass at a rate, in order.

    Those of a subscription that is no longer active pass without a token, for they are only
    requeued.
    """

    __slots__ = ("__weakref__", "_bucket", "_pass_on", "_timer", "waiting")

    def __init__(self, rate: float, pass_on: Pass) -> None:
        self._bucket = TokenBucket(rate, asyncio.get_running_loop().time())
        self._pass_on = pass_on
        self._timer: asyncio.TimerHandle | None = None
        self.waiting: deque[tuple[ActiveSubscription, Delivery]] = deque()

    @property
    def rate(self) -> float:
        return self._bucket.rate

    def change(self, rate: float) -> None:
        """Sets another rate, in deliveries a second."""
        self._stop_timer()
        self._bucket = TokenBucket(rate, asyncio.get_running_loop().time())
        self._let_pass()

    def open(self) -> None:
        """Lets all waiting deliveries pass."""
        for one in self.take_waiting():
            self._pass_on(*one)

    def enter(self, active: ActiveSubscription, delivery: Delivery) -> None:
        if not self.waiting and self._may_pass(active, asyncio.get_running_loop().time()):
            self._pass_on(active, delivery)
            return
        self.waiting.append((active, delivery))
        self._arm()

    def is_idle(self) -> bool:
        """Whether a new limiter would be in the same state."""
        return not self.waiting and self._bucket.is_full(asyncio.get_running_loop().time())

    def take_waiting(self) -> list[tuple[ActiveSubscription, Delivery]]:
        self._stop_timer()
        taken = list(self.waiting)
        self.waiting.clear()
        return taken

    def _may_pass(self, active: ActiveSubscription, now_s: float) -> bool:
        return not active.state.takes() or self._bucket.take(now_s)

    def _arm(self) -> None:
        if self._timer is None and self.waiting:
            loop = asyncio.get_running_loop()
            wait_s = max(MIN_WAIT_S, self._bucket.wait_s(loop.time()))
            self._timer = loop.call_later(wait_s, self._let_pass)

    def _let_pass(self) -> None:
        self._timer = None
        now_s = asyncio.get_running_loop().time()
        while self.waiting and self._may_pass(self.waiting[0][0], now_s):
            self._pass_on(*self.waiting.popleft())
        self._arm()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class RateLimits:
    """Applies the three limits in turn, then calls `pass_on`."""

    def __init__(self, settings: HubSettings, pass_on: Pass) -> None:
        self._origin_rate = settings.max_rate_per_origin
        self._rate = settings.max_rate
        self._pass_on = pass_on
        self._all: RateLimiter | None = None
        self._origins: dict[str, RateLimiter] = {}
        self._max_origins = MAX_ORIGINS
        self._limiters: WeakSet[RateLimiter] = WeakSet()

    def enter(self, active: ActiveSubscription, delivery: Delivery) -> None:
        rate = active.subscription.options.max_tps
        limiter = active.rate_limiter
        if limiter is None and rate:
            limiter = active.rate_limiter = self._make(rate, self._enter_origin)
        elif limiter is not None and limiter.rate != rate:
            limiter = self._renew(active, limiter, rate)
        if limiter is not None:
            limiter.enter(active, delivery)
        else:
            self._enter_origin(active, delivery)

    def take_waiting(self) -> list[tuple[ActiveSubscription, Delivery]]:
        """Removes and returns all deliveries that wait."""
        return [one for limiter in list(self._limiters) for one in limiter.take_waiting()]

    def _renew(
        self, active: ActiveSubscription, limiter: RateLimiter, rate: float
    ) -> RateLimiter | None:
        """Returns the limiter for the new rate of the subscription, None without one."""
        if rate:
            limiter.change(rate)
            return limiter
        active.rate_limiter = None
        limiter.open()
        return None

    def _enter_origin(self, active: ActiveSubscription, delivery: Delivery) -> None:
        if self._origin_rate:
            self._origin_limiter(active).enter(active, delivery)
        else:
            self._enter_all(active, delivery)

    def _enter_all(self, active: ActiveSubscription, delivery: Delivery) -> None:
        if not self._rate:
            self._pass_on(active, delivery)
            return
        if self._all is None:
            self._all = self._make(self._rate, self._pass_on)
        self._all.enter(active, delivery)

    def _origin_limiter(self, active: ActiveSubscription) -> RateLimiter:
        origin = origin_of(active.subscription.callback)
        limiter = self._origins.get(origin)
        if limiter is None:
            if len(self._origins) >= self._max_origins:
                self._forget_idle()
            limiter = self._origins[origin] = self._make(self._origin_rate, self._enter_all)
        return limiter

    def _forget_idle(self) -> None:
        """Drops idle limiters; the next time when there are twice as many as are left."""
        active = {name: one for name, one in self._origins.items() if not one.is_idle()}
        self._origins = active
        self._max_origins = max(MAX_ORIGINS, 2 * len(active))

    def _make(self, rate: float, pass_on: Pass) -> RateLimiter:
        limiter = RateLimiter(rate, pass_on)
        self._limiters.add(limiter)
        return limiter


def origin_of(url: str) -> str:
    """Returns scheme, host and port in their normal form (RFC 6454 4)."""
    split = urlsplit(url)
    host = (split.hostname or "").removesuffix(".")
    return f"{split.scheme}://{host}:{split.port or DEFAULT_PORTS[split.scheme]}"
