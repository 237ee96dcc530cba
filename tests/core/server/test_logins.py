"""Password checks: threads, caching, and throttling."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator

import pytest

from tests.support.users import GUEST_HASH, guest_users
from warrenmq.core.auth import AuthError, User, Users, hashes, imported
from warrenmq.core.server import logins as module
from warrenmq.core.server.logins import ClientGone, Logins, TooManyFailures

SECRET_SHA256 = "AooJzju8/26DNt7JG8KqzbTFtDL7hFOsSj4/uutyxYMdgAC3"


class Checks:
    """What is checked, and how many at once; holds them until `go` is set."""

    def __init__(self, users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passwords: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self.go = threading.Event()
        self.go.set()
        self._lock = threading.Lock()
        self._check = users.passwords.check
        monkeypatch.setattr(users.passwords, "check", self._counted)

    def _counted(self, name: str, password: str, *, loopback: bool) -> User | None:
        with self._lock:
            self.passwords.append(password)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        assert self.go.wait(10)
        found = self._check(name, password, loopback=loopback)
        with self._lock:
            self.at_once -= 1
        return found


@pytest.fixture
def users() -> Users:
    users = guest_users()
    for number in range(10):
        users.add_hashed(f"user{number}", GUEST_HASH)
    return users


@pytest.fixture
def checks(users: Users, monkeypatch: pytest.MonkeyPatch) -> Checks:
    return Checks(users, monkeypatch)


class Pauses:
    """Those behind wrong passwords; they last while `go` is not set."""

    def __init__(self) -> None:
        self.count = 0
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, seconds: float) -> None:
        self.count += 1
        await self.go.wait()


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def logins(users: Users, pauses: Pauses, monkeypatch: pytest.MonkeyPatch) -> Iterator[Logins]:
    monkeypatch.setattr(module, "AT_ONCE", 4)
    logins = Logins(users, pauses)
    yield logins
    logins.close()


async def log_in(
    logins: Logins, name: str, password: str = "guest", address: str = "10.0.0.1"
) -> User | None:
    return await logins.user(name, password, address=address, loopback=True)


async def test_four_passwords_are_checked_at_once(logins: Logins, checks: Checks) -> None:
    checks.go.clear()
    tries = [asyncio.ensure_future(log_in(logins, f"user{number}")) for number in range(10)]
    while checks.at_once < 4:
        await asyncio.sleep(0)
    checks.go.set()
    assert all(await asyncio.gather(*tries))
    assert (len(checks.passwords), checks.most_at_once) == (10, 4)


@pytest.mark.parametrize("addresses", [1, 50])
async def test_logins_at_the_same_time_share_a_check(
    logins: Logins, checks: Checks, addresses: int
) -> None:
    checks.go.clear()
    tries = [
        asyncio.ensure_future(log_in(logins, "user1", address=f"10.0.0.{number % addresses}"))
        for number in range(50)
    ]
    while not checks.at_once:
        await asyncio.sleep(0)
    checks.go.set()
    assert all(await asyncio.gather(*tries))
    assert len(checks.passwords) <= (1 if addresses == 1 else 4)


async def test_concurrent_guesses_are_limited(logins: Logins, checks: Checks) -> None:
    tries = [log_in(logins, "user1", f"wrong{number}") for number in range(50)]
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert len(checks.passwords) == 5
    assert answers.count(None) == 5
    assert sum(isinstance(answer, TooManyFailures) for answer in answers) == 45


@pytest.mark.parametrize("address", ["2001:db8::{:x}", "::ffff:10.0.0.1", "10.0.0.1"])
async def test_guesses_are_limited_by_network(logins: Logins, checks: Checks, address: str) -> None:
    tries = [
        log_in(logins, "user1", f"wrong{number}", address=address.format(number))
        for number in range(50)
    ]
    await asyncio.gather(*tries, return_exceptions=True)
    assert len(checks.passwords) == 5


async def test_guesses_from_one_address_do_not_delay_others(logins: Logins, checks: Checks) -> None:
    checks.go.clear()
    guesses = [
        asyncio.ensure_future(log_in(logins, f"nobody{number}", f"guess{number}"))
        for number in range(30)
    ]
    while checks.at_once < 4:
        await asyncio.sleep(0)
    others = [
        asyncio.ensure_future(log_in(logins, f"user{number}", address=f"10.0.1.{number}"))
        for number in range(3)
    ]
    await asyncio.sleep(0)
    checks.go.set()
    assert all(await asyncio.gather(*others))
    assert checks.passwords.index("guest") <= 5
    assert await asyncio.gather(*guesses) == [None] * 30


async def test_a_trusted_address_is_not_refused(
    logins: Logins, checks: Checks, pauses: Pauses
) -> None:
    assert await log_in(logins, "user1")
    for number in range(5):
        assert await log_in(logins, "user1", f"wrong{number}") is None
    assert await log_in(logins, "user1")
    assert pauses.count == 0
    for number in range(5, 8):
        assert await log_in(logins, "user1", f"wrong{number}") is None
        assert await log_in(logins, "user1")
    assert (pauses.count, len(checks.passwords)) == (3, 9)


async def test_guesses_from_a_trusted_address_are_followed_by_pauses(
    logins: Logins, checks: Checks, pauses: Pauses
) -> None:
    await log_in(logins, "user1")
    pauses.go.clear()
    tries = [asyncio.ensure_future(log_in(logins, "user1", f"wrong{n}")) for n in range(20)]
    while not pauses.count:
        await asyncio.sleep(0)
    for attempt in tries[6:]:
        attempt.cancel()
    await asyncio.wait(tries[:5])
    right = asyncio.ensure_future(log_in(logins, "user1"))
    await asyncio.sleep(0)
    assert (pauses.count, len(checks.passwords)) == (1, 7)
    pauses.go.set()
    assert await right
    assert (pauses.count, len(checks.passwords)) == (15, 21)


async def test_a_repeated_wrong_password_is_not_checked_again(
    logins: Logins, users: Users, checks: Checks, pauses: Pauses
) -> None:
    assert await log_in(logins, "user1")
    for _ in range(20):
        assert await log_in(logins, "user1", "old") is None
    assert (pauses.count, len(checks.passwords)) == (0, 6)
    users.add_hashed("user1", imported(SECRET_SHA256))
    assert await log_in(logins, "user1", "secret")
    assert await log_in(logins, "user1", "guest") is None
    assert (pauses.count, len(checks.passwords)) == (1, 8)


async def test_a_cancelled_login_counts_as_a_guess(
    logins: Logins, users: Users, checks: Checks
) -> None:
    checks.go.clear()
    for number in range(50):
        guess = asyncio.ensure_future(log_in(logins, "user1", f"wrong{number}"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        guess.cancel()
    checks.go.set()
    with pytest.raises(TooManyFailures):
        await log_in(logins, "user1")
    assert len(checks.passwords) == 5


async def test_the_password_of_a_disconnected_client_is_not_checked(
    logins: Logins, checks: Checks, users: Users
) -> None:
    for _ in range(6):
        with pytest.raises(ClientGone):
            await logins.user(
                "user1", "wrong", address="10.0.0.1", loopback=True, is_gone=lambda: True
            )
    assert checks.passwords == []
    assert await log_in(logins, "user1")


async def test_clients_that_end_while_their_logins_wait_leave_no_error_in_the_log(
    logins: Logins, checks: Checks, caplog: pytest.LogCaptureFixture
) -> None:
    checks.go.clear()
    gone = False
    tries = [
        asyncio.ensure_future(
            logins.user(
                f"user{number % 2}", f"wrong{number}", address="10.0.0.1", loopback=True,
                is_gone=lambda: gone,
            )
        )
        for number in range(20)
    ]  # fmt: skip
    while checks.at_once < 2:
        await asyncio.sleep(0)
    gone = True
    for one in tries:
        one.cancel()
    checks.go.set()
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0)
    gc.collect()
    assert len(checks.passwords) == 2 and caplog.text == ""


async def test_a_rabbitmq_hash_is_replaced_at_login(logins: Logins, users: Users) -> None:
    users.add_hashed("evan", imported(SECRET_SHA256))

    class Storage:
        def __getattr__(self, name: str) -> object:
            return lambda *_: 0

    users.storage = Storage()  # type: ignore[assignment]
    assert await log_in(logins, "evan", "secret") is users.get("evan")
    assert not hashes.is_foreign(users.password_hash("evan"))
    assert await log_in(logins, "evan", "secret") is users.get("evan")


async def test_hashing(logins: Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "ARGON2_MEMORY_KIB", 8)
    assert hashes.matches(await logins.hashed("secret"), "secret")
    with pytest.raises(AuthError, match="empty password"):
        await logins.hashed("")
