"""The one place where passwords are checked, for AMQP and HTTP alike.

Argon2 runs in a few threads of its own. A user is tried by one client at a time from an address:
of a thousand that come back together only the first costs a check, for the others the answer is
known then; and guesses that are sent together don't get past the throttle before one is counted.
Addresses take turns, so that whoever sends guesses by the thousand waits behind nobody but itself.

After five failures an address that is not trusted (see `Throttle`) is refused. From one that is,
each password is looked at, and behind each wrong one there is a pause: the right one is refused to
nobody, and waits for others' guesses only.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import NamedTuple

from ..auth import User, Users, hashed, network
from ..errors import WarrenError
from .fair_semaphore import FairSemaphore
from .login_queue import LoginQueue

AT_ONCE = max(1, min(4, (os.cpu_count() or 1) - 1))
"""Each check needs 19 MiB, and a processor for some 20 ms; the loop keeps one."""
PAUSE_S = 1.0
"""Between guesses from an address that is trusted, once five were wrong within a minute."""
GUEST_IS_FAR = ": from elsewhere, and it may log in from this machine only; add a user of its own"
"""For the log: the client is told what all are told."""


class TooManyFailures(WarrenError):
    """The password was not looked at: too many were wrong for this user from this address."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(f"too many failed logins; wait {wait_s} s")
        self.wait_s = wait_s


class HungUp(WarrenError):
    """Nobody waits for the answer any more, so it was not looked for."""


class Attempt(NamedTuple):
    """Who wants to be whom."""

    name: str
    password: str
    address: str
    loopback: bool
    is_gone: Callable[[], bool]

    def known(self, users: Users) -> User | None:
        return users.known(self.name, self.password, loopback=self.loopback)

    def checked(self, users: Users) -> User | None:
        """Runs in a thread. Raises `HungUp`."""
        if self.is_gone():
            raise HungUp
        # Again: while this waited for its thread, the same was asked from another address.
        return self.known(users) or users.check(self.name, self.password, loopback=self.loopback)


class Logins:
    """Checks passwords of the broker's users, off the event loop."""

    def __init__(
        self, users: Users, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._users = users
        self._pause = pause
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="password")
        self._turnstile = FairSemaphore(AT_ONCE)
        self._room = LoginQueue()
        self._places: dict[tuple[str, str], _Place] = {}
        self._checks: set[asyncio.Future[User | None]] = set()

    def close(self) -> None:
        """Checks under way come to their end, those that wait for a thread do not."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def user(
        self,
        name: str,
        password: str,
        *,
        address: str,
        loopback: bool,
        is_gone: Callable[[], bool] = lambda: False,
    ) -> User | None:
        """The user, or None if name and password are not right.

        Raises `TooManyFailures` without looking at them after five failures within a minute of
        the same name from the same address, unless that is trusted, `TooManyAttempts` if more
        wait than may, `HungUp` if whoever asked `is_gone` when it is their turn.
        """
        # Who hangs up while a password is checked has tried it all the same.
        attempt = Attempt(name, password, address, loopback, is_gone)
        leave = self._room.enter(network(address), len(name) + len(password))
        check = asyncio.ensure_future(self._in_turn(attempt))
        check.add_done_callback(lambda _: leave())
        self._checks.add(check)
        check.add_done_callback(self._checks.discard)
        return await asyncio.shield(check)

    async def hashed(self, password: str) -> str:
        """A new hash of a password. Raises `AuthError` for an empty one."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, hashed, password)

    async def _in_turn(self, attempt: Attempt) -> User | None:
        users, throttle = self._users, self._users.throttle
        who = attempt.name, attempt.address
        async with self._alone(attempt):
            if attempt.is_gone():
                raise HungUp
            wait_s = throttle.wait_s(*who)
            if wait_s and not throttle.trusts(*who):
                raise TooManyFailures(wait_s)
            digest = users.digest(attempt.name, attempt.password)
            if wait_s and throttle.was_wrong(*who, digest):
                return None
            user = attempt.known(users) or await self._checked(attempt)
            if user is not None:
                throttle.succeeded(*who)
                return user
            throttle.failed(*who, digest)
            if wait_s:
                await self._pause(PAUSE_S)
            return None

    async def _checked(self, attempt: Attempt) -> User | None:
        users = self._users
        async with self._turnstile.turn(network(attempt.address)):
            user = await asyncio.get_running_loop().run_in_executor(
                self._threads, attempt.checked, users
            )
        users.keep_better_hashes()
        return user

    @asynccontextmanager
    async def _alone(self, attempt: Attempt) -> AsyncIterator[None]:
        # As the throttle counts: else a /64 of IPv6 had a guess for each of its addresses.
        key = attempt.name, network(attempt.address)
        place = self._places.setdefault(key, _Place())
        place.waiting += 1
        try:
            async with place.lock:
                yield
        finally:
            place.waiting -= 1
            if not place.waiting:
                del self._places[key]


class _Place:
    """Where clients stand in line that try the same user from the same address."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0
