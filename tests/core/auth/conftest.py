"""Users with cheap hashes, on a clock that the tests set."""

from __future__ import annotations

import pytest

from tests.support.users import guest_users
from warrenmq.core.auth import User, Users, hashes


class Clock:
    """A clock in seconds, which tests set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "ARGON2_MEMORY_KIB", 8)
    monkeypatch.setattr(hashes, "ARGON2_TIME_COST", 1)


@pytest.fixture
def users(clock: Clock) -> Users:
    return guest_users(clock)


@pytest.fixture
def tony(users: Users) -> User:
    users.add("tony", "secret", ["management"])
    return users.existing("tony")
