"""The hourly budget of content that is published for anonymous clients alone, in bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import islice

from ...core.clock import Clock
from .anonymous import accounts_of
from .options import AnonymousClient

HOUR_S = 3_600.0
TOTAL_FACTOR = 4
"""The budget of all, as a multiple of that of one client, callback domain or topic domain."""
MAX_ACCOUNTS = 10_000
MAX_LOOKED_AT = 1_000
"""At most so many anonymous clients of a topic are compared."""


class ContentBudget:
    """The hourly budget of each anonymous client. `anonymous` returns the clients whose
    subscriptions are bound with a key. They are not charged if a user or an AMQP client is bound
    with it too."""

    def __init__(
        self,
        anonymous: Callable[[str], Collection[AnonymousClient]],
        bytes_per_hour: int,
        clock: Clock,
    ) -> None:
        self._anonymous = anonymous
        self._bytes_per_hour = bytes_per_hour
        self._clock = clock
        self._used: dict[tuple[str, str], tuple[float, float]] = {}
        """What each account has used, and when that was computed; an hour restores all of it."""

    def wait_s(self, key: str, queues: int) -> float:
        """Returns the seconds until a topic that is bound to so many queues may be published."""
        anonymous_client = self._payer(key, queues)
        return 0.0 if anonymous_client is None else self._wait_s(anonymous_client)

    def charge(self, key: str, queues: int, size: int) -> None:
        """Charges one client for content of `size` bytes."""
        anonymous_client = self._payer(key, queues)
        if anonymous_client is not None:
            self._charge(anonymous_client, size)

    def take(self, anonymous_client: AnonymousClient, size: int) -> bool:
        """Charges the client for a copy of `size` bytes. Returns False if its budget is used up."""
        accounts = accounts_of(anonymous_client)
        if any(self._used_now(account) + size > self._limit(account) for account in accounts):
            return False
        self._charge(anonymous_client, size)
        return True

    def _charge(self, anonymous_client: AnonymousClient, size: int) -> None:
        for account in accounts_of(anonymous_client):
            used = self._used_now(account) + size
            self._used.pop(account, None)
            if len(self._used) >= MAX_ACCOUNTS:
                del self._used[next(iter(self._used))]
            self._used[account] = (used, self._now_s())

    def _payer(self, key: str, queues: int) -> AnonymousClient | None:
        """Returns the client with the shortest wait, None where others are bound too."""
        anonymous = self._anonymous(key)
        if len(anonymous) < queues or not anonymous:
            return None
        return min(islice(anonymous, MAX_LOOKED_AT), key=self._wait_s)

    def _wait_s(self, anonymous_client: AnonymousClient) -> float:
        return max(self._account_wait_s(account) for account in accounts_of(anonymous_client))

    def _account_wait_s(self, account: tuple[str, str]) -> float:
        limit = self._limit(account)
        return max(0.0, (self._used_now(account) - limit) / limit * HOUR_S)

    def _used_now(self, account: tuple[str, str]) -> float:
        used, at_s = self._used.get(account, (0.0, 0.0))
        return max(0.0, used - (self._now_s() - at_s) / HOUR_S * self._limit(account))

    def _limit(self, account: tuple[str, str]) -> int:
        return self._bytes_per_hour * (1 if account[1] else TOTAL_FACTOR)

    def _now_s(self) -> float:
        return self._clock.now_ms() / 1000
