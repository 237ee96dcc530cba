"""Passwords are checked in few threads, each once, and not too often."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from tests.support.users import GUEST_HASH, guest_users
from warrenmq.core.auth import AuthError, User, Users, hashes, imported
from warrenmq.core.server import login_queue as waiting_room
from warrenmq.core.server import logins as module
from warrenmq.core.server.login_queue import TooManyAttempts
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
        self._check = users.check
        monkeypatch.setattr(users, "check", self._counted)

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


@pytest.fixture
def logins(users: Users, monkeypatch: pytest.MonkeyPatch) -> Iterator[Logins]:
    monkeypatch.setattr(module, "AT_ONCE", 4)
    logins = Logins(users)
    yield logins
    logins.close()


async def log_in(
    logins: Logins, name: str, password: str = "guest", address: str = "10.0.0.1"
) -> User | None:
    return await logins.user(name, password, address=address, loopback=True)


async def test_the_user_or_nobody(users: Users, logins: Logins) -> None:
    assert await log_in(logins, "guest") is users.get("guest")
    assert await log_in(logins, "guest", "wrong") is None
    assert await log_in(logins, "nobody") is None
    assert await logins.user("guest", "guest", address="", loopback=False) is None


async def test_four_at_once(logins: Logins, checks: Checks) -> None:
    checks.go.clear()
    tries = [asyncio.ensure_future(log_in(logins, f"user{number}")) for number in range(10)]
    while checks.at_once < 4:
        await asyncio.sleep(0)
    checks.go.set()
    assert all(await asyncio.gather(*tries))
    assert (len(checks.passwords), checks.most_at_once) == (10, 4)


@pytest.mark.parametrize("addresses", [1, 50])
async def test_who_come_together_cost_few_checks(
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


async def test_guesses_that_come_together_are_five(logins: Logins, checks: Checks) -> None:
    tries = [log_in(logins, "user1", f"wrong{number}") for number in range(50)]
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert len(checks.passwords) == 5
    assert answers.count(None) == 5
    assert sum(isinstance(answer, TooManyFailures) for answer in answers) == 45
    assert not logins._locks


@pytest.mark.parametrize("address", ["2001:db8::{:x}", "::ffff:10.0.0.1", "10.0.0.1"])
async def test_nor_more_from_what_counts_as_one_address(
    logins: Logins, checks: Checks, address: str
) -> None:
    """A subscriber has 2**64 addresses of IPv6, and IPv4 has two ways to be written."""
    tries = [
        log_in(logins, "user1", f"wrong{number}", address=address.format(number))
        for number in range(50)
    ]
    await asyncio.gather(*tries, return_exceptions=True)
    assert len(checks.passwords) == 5


async def test_an_address_with_many_guesses_does_not_hold_up_others(
    logins: Logins, checks: Checks
) -> None:
    checks.go.clear()
    guesses = [
        asyncio.ensure_future(log_in(logins, f"nobody{number}", f"guess{number}"))
        for number in range(100)
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
    assert await asyncio.gather(*guesses) == [None] * 100


async def test_no_more_wait_than_may(
    logins: Logins, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_room, "ADDRESS_MAX_BYTES", 20 * waiting_room.ATTEMPT_BYTES)
    checks.go.clear()
    tries = [asyncio.ensure_future(log_in(logins, f"name{number}", "x")) for number in range(30)]
    while not checks.at_once:
        await asyncio.sleep(0)
    other = asyncio.ensure_future(log_in(logins, "user1", address="10.0.0.2"))
    checks.go.set()
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert [answer for answer in answers if answer] == [
        answer for answer in answers if isinstance(answer, TooManyAttempts)
    ]
    assert 0 < answers.count(None) < 20
    assert await other
    assert await log_in(logins, "user1")


async def test_from_then_on_the_right_one_is_not_looked_at(
    logins: Logins, users: Users, checks: Checks
) -> None:
    for number in range(5):
        await log_in(logins, "user1", f"wrong{number}")
    with pytest.raises(TooManyFailures) as refusal:
        await log_in(logins, "user1")
    assert 0 < refusal.value.wait_s <= 60
    assert len(checks.passwords) == 5
    assert await log_in(logins, "user1", address="10.0.0.2")
    assert await log_in(logins, "user2")
    with pytest.raises(TooManyFailures):
        await log_in(logins, "user1")


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
def pauses(logins: Logins, monkeypatch: pytest.MonkeyPatch) -> Pauses:
    pauses = Pauses()
    monkeypatch.setattr(logins, "_pause", pauses)
    return pauses


async def test_where_it_was_right_it_is_not_refused(
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


async def test_guesses_from_there_are_looked_at_one_by_one(
    logins: Logins, checks: Checks, pauses: Pauses
) -> None:
    """However many come together: each is followed by a pause, also if its sender has left."""
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


async def test_what_was_wrong_before_costs_nothing(
    logins: Logins, users: Users, checks: Checks, pauses: Pauses
) -> None:
    """Programs with an old password hold up nobody, and may have the new one some day."""
    assert await log_in(logins, "user1")
    for _ in range(20):
        assert await log_in(logins, "user1", "old") is None
    assert (pauses.count, len(checks.passwords)) == (0, 6)
    users.add_hashed("user1", imported(SECRET_SHA256))
    assert await log_in(logins, "user1", "secret")
    assert await log_in(logins, "user1", "guest") is None
    assert (pauses.count, len(checks.passwords)) == (1, 8)


async def test_who_hangs_up_has_tried(logins: Logins, users: Users, checks: Checks) -> None:
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


async def test_who_is_gone_before_it_was_their_turn_costs_nothing(
    logins: Logins, checks: Checks, users: Users
) -> None:
    for _ in range(6):
        with pytest.raises(ClientGone):
            await logins.user(
                "user1", "wrong", address="10.0.0.1", loopback=True, is_gone=lambda: True
            )
    assert checks.passwords == []
    assert await log_in(logins, "user1")


async def test_a_hash_of_rabbitmq_is_replaced(logins: Logins, users: Users) -> None:
    users.add_hashed("evan", imported(SECRET_SHA256))

    class Keeper:
        def __getattr__(self, name: str) -> object:
            return lambda *_: 0

    users.keeper = Keeper()  # type: ignore[assignment]
    assert await log_in(logins, "evan", "secret") is users.get("evan")
    assert not hashes.is_foreign(users.password_hash("evan"))
    assert await log_in(logins, "evan", "secret") is users.get("evan")


async def test_hashing(logins: Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "ARGON2_MEMORY_KIB", 8)
    assert hashes.matches(await logins.hashed("secret"), "secret")
    with pytest.raises(AuthError, match="empty password"):
        await logins.hashed("")
