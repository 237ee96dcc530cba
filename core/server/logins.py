"""Checks passwords off the event loop, for AMQP and HTTP alike.

Argon2 runs in a few threads of its own. Logins of one user from one address are checked one at a
time: of a thousand that reconnect at once only the first costs a check, the others find its
result; and guesses sent at once do not pass the throttle before one is counted. Addresses take
turns, so that thousands of guesses from one delay only that one.

After five failures an address that is not trusted (see `Throttle`) is refused. From a trusted one
each password is checked, with a pause after each wrong one: the right password is never refused.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from ..auth import User, Users, hashed, network
from ..errors import WarrenError
from .fair_semaphore import FairSemaphore
from .login_queue import LoginQueue

logger = logging.getLogger(__name__)

AT_ONCE: Final = max(1, min(4, (os.cpu_count() or 1) - 1))
"""Concurrent checks: each takes 19 MiB and some 20 ms of a CPU; one CPU is left to the loop."""
PAUSE_S: Final = 1.0
"""Pause between guesses from a trusted address after five failures within a minute."""
GUEST_NOT_LOCAL: Final = (
    ": from elsewhere, and it may log in from this machine only; add a user of its own"
)
"""For the log; the client gets the same refusal as for any other reason."""


class TooManyFailures(WarrenError):
    """The password was not checked: too many failures of this user from this address."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(f"too many failed logins; wait {wait_s} s")
        self.wait_s = wait_s


class ClientGone(WarrenError):
    """The password was not checked: the client has disconnected."""


class LoginAttempt(NamedTuple):
    """A login to be checked."""

    name: str
    password: str
    address: str
    loopback: bool
    is_gone: Callable[[], bool]

    def known(self, users: Users) -> User | None:
        return users.passwords.known(self.name, self.password, loopback=self.loopback)

    def checked(self, users: Users) -> User | None:
        """Runs in a thread. Raises `ClientGone`."""
        if self.is_gone():
            raise ClientGone
        # The cache again: it may have been checked from another address meanwhile.
        return self.known(users) or users.passwords.check(
            self.name, self.password, loopback=self.loopback
        )


class Logins:
    """Checks passwords of the broker's users, off the event loop."""

    def __init__(
        self, users: Users, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._users = users
        self._pause = pause
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="password")
        self._semaphore = FairSemaphore(AT_ONCE)
        self._queue = LoginQueue()
        self._locks: dict[tuple[str, str], _CountedLock] = {}
        self._checks: set[asyncio.Future[User | None]] = set()
        self.on_refused: Callable[[str, str], None] = lambda name, address: None
        """Called with name and address of each wrong password that was checked."""

    def close(self) -> None:
        """Cancels all checks; those that run in a thread finish there."""
        for check in self._checks:
            check.cancel()
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
        """Returns the user, or None if name or password are wrong.

        Raises `TooManyFailures`, without a check, after five failures within a minute of the same
        name from the same address, unless that is trusted, `TooManyAttempts` if too many logins
        wait, `ClientGone` if the client `is_gone` when its turn comes.
        """
        # A check goes on, and counts, after the client has disconnected.
        attempt = LoginAttempt(name, password, address, loopback, is_gone)
        leave = self._queue.enter(network(address), len(name) + len(password))
        check = asyncio.ensure_future(self._in_turn(attempt))
        check.add_done_callback(lambda _: leave())
        self._checks.add(check)
        check.add_done_callback(self._checks.discard)
        try:
            return await asyncio.shield(check)
        except asyncio.CancelledError:
            check.add_done_callback(_log_error)
            raise

    async def hashed(self, password: str) -> str:
        """Hashes a new password. Raises `AuthError` for an empty one."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, hashed, password)

    async def _in_turn(self, attempt: LoginAttempt) -> User | None:
        users, throttle = self._users, self._users.throttle
        who = attempt.name, attempt.address
        async with self._alone(attempt):
            if attempt.is_gone():
                raise ClientGone
            wait_s = throttle.wait_s(*who)
            if wait_s and not throttle.trusts(*who):
                raise TooManyFailures(wait_s)
            digest = users.passwords.digest(attempt.name, attempt.password)
            if wait_s and throttle.was_wrong(*who, digest):
                return None
            user = attempt.known(users) or await self._checked(attempt)
            if user is not None:
                throttle.succeeded(*who)
                return user
            throttle.failed(*who, digest)
            self.on_refused(*who)
            if wait_s:
                await self._pause(PAUSE_S)
            return None

    async def _checked(self, attempt: LoginAttempt) -> User | None:
        users = self._users
        async with self._semaphore.turn(network(attempt.address)):
            user = await asyncio.get_running_loop().run_in_executor(
                self._threads, attempt.checked, users
            )
        users.passwords.store_better_hashes()
        return user

    @asynccontextmanager
    async def _alone(self, attempt: LoginAttempt) -> AsyncIterator[None]:
        # By network, as the throttle counts: else each address of an IPv6 /64 had a guess.
        key = attempt.name, network(attempt.address)
        counted = self._locks.setdefault(key, _CountedLock())
        counted.users += 1
        try:
            async with counted.lock:
                yield
        finally:
            counted.users -= 1
            if not counted.users:
                del self._locks[key]


def _log_error(check: asyncio.Future[User | None]) -> None:
    """Takes the error of a check that nobody waits for any more; logs it if it is unexpected."""
    error = None if check.cancelled() else check.exception()
    if error is not None and not isinstance(error, WarrenError):
        logger.error("a password could not be checked", exc_info=error)


class _CountedLock:
    """A lock of one user from one address, and how many tasks use it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
