"""What is stored comes back as it was, from either database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warren.hub.guard import MAX_CALLBACK_LENGTH
from warren.hub.repository import Repository
from warren.hub.requests import Resource
from warren.hub.storage import Storage
from warren.hub.subscription import Status, Subscription

PLAIN = Subscription(
    id="1" * 32,
    source=Resource("/", "x", "news"),
    topic="#",
    callback="http://a.b/c",
    lease_seconds=60,
    expires_at=0.0,
    owner="guest",
)


@pytest.fixture
async def repository(tmp_path: Path, either_database: str | None) -> AsyncIterator[Repository]:
    storage = Storage(tmp_path, either_database)
    yield await storage.repository()
    await storage.close()


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"status": Status.ENDING},
        {"lease_seconds": 10**17, "expires_at": 1_800_000_000.123_456_7},
        {"callback": "http://a.b/" + "c" * (MAX_CALLBACK_LENGTH - 11)},
        {"callback": "http://a.b/" + "c" * 1_000_000},  # more than an index entry could hold
        {"topic": "ü" * 127, "secret": "\x01\r\n\t\x7f", "owner": "\U0001f430 %s :x '\"\\"},
        {"source": Resource("", "q", "q" * 255), "sink": Resource("/", "x", "")},
    ],
    ids=range(7),
)
async def test_what_is_added_comes_back(repository: Repository, changed: dict[str, Any]) -> None:
    subscription = replace(PLAIN, **changed)
    assert await repository.add(subscription) == subscription
    assert await repository.all() == [subscription]


async def test_a_renewal_changes_lease_secret_and_owner(repository: Repository) -> None:
    other = replace(PLAIN, id="2" * 32, topic="other")
    await repository.add(PLAIN)
    await repository.add(other)
    renewed = replace(PLAIN, lease_seconds=7, expires_at=8.5, secret="new", owner="else")
    await repository.renew(renewed)
    assert sorted(await repository.all(), key=lambda one: one.id) == [renewed, other]


async def test_marks_and_deletes_are_of_one(repository: Repository) -> None:
    other = replace(PLAIN, id="2" * 32, topic="other")
    await repository.add(PLAIN)
    await repository.add(other)
    await repository.mark(PLAIN.id, Status.ACTIVE)
    await repository.delete(other.id)
    assert await repository.all() == [replace(PLAIN, status=Status.ACTIVE)]


async def test_what_a_failure_left_is_taken_up_with_its_queue(repository: Repository) -> None:
    left = replace(PLAIN, status=Status.ENDING, secret="old")
    await repository.add(left)
    added = await repository.add(replace(PLAIN, id="3" * 32, owner="else"))
    assert added == replace(PLAIN, owner="else")
    assert await repository.all() == [added]
