"""What is stored comes back as it was, from either database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import text

from warrenmq.hub.guard.callback_url import MAX_CALLBACK_LENGTH
from warrenmq.hub.keys.seal import PREFIX, Sealer
from warrenmq.hub.requests import Resource
from warrenmq.hub.storage.database import Database
from warrenmq.hub.storage.migrate import upgrade
from warrenmq.hub.storage.schema import DATABASE_NAME
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.subscriptions import repository as module
from warrenmq.hub.subscriptions.options import Contact, Keys, Options
from warrenmq.hub.subscriptions.repository import Repository
from warrenmq.hub.subscriptions.subscription import SubscriptionStatus

from ..support import subscription

PLAIN = subscription(id="1" * 32, callback="http://a.b/c")

# As Warren 0.1 wrote it.
OLD_ROW = """
INSERT INTO subscriptions (id, identity, status, source_vhost, source_kind, source_name, topic,
    callback, lease_seconds, expires_at, owner, secret)
VALUES (:id, :identity, 'pending', '/', 'x', 'news', '#', 'http://a.b/c', 60, 0, 'guest', 's3cret')
"""


@pytest.fixture
async def repository(storage: Storage) -> Repository:
    return await storage.repository()


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"status": SubscriptionStatus.ENDING},
        {"lease_seconds": 10**17, "expires_at": 1_800_000_000.123_456_7},
        {"callback": "http://a.b/" + "c" * (MAX_CALLBACK_LENGTH - 11)},
        {"callback": "http://a.b/" + "c" * 1_000_000},  # more than an index entry could hold
        {
            "topic": "ü" * 127,
            "keys": Keys(secret="\x01\r\n\t\x7f"),
            "owner": "\U0001f430 %s :x '\"\\",
        },
        {"source": Resource("", "q", "q" * 255), "sink": Resource("/", "x", "")},
        {
            "keys": Keys("a", "b", 1_800_000_000.5, "dTpw"),
            "status": SubscriptionStatus.PAUSED,
            "reason": "why",
        },
        {"options": Options(format="cloudevents-binary", contact=Contact(email="a@b"))},
        {"topic_url": "http://a.b/feed", "base_url": "http://hub/"},
    ],
    ids=range(10),
)
async def test_subscriptions_are_read_back(repository: Repository, changed: dict[str, Any]) -> None:
    made = replace(PLAIN, **changed)
    assert await repository.add(made) == made
    assert await repository.all() == [made]


async def test_a_renewal_at_hub_may_change_the_topic(
    repository: Repository,
) -> None:
    """All of one identity (WebSub 5.1)."""
    first = replace(PLAIN, callback="http://a.b/%7E", topic_url="http://c.d/%7E")
    second = replace(
        first,
        source=Resource("/", "x", "another"),
        topic="key",
        callback="http://a.b/~",
        topic_url="http://c.d/~",
    )
    assert second.identity == first.identity
    await repository.add(first)
    await repository.renew(second)
    assert await repository.all() == [second]


async def test_a_renewal_changes_lease_secret_and_owner(repository: Repository) -> None:
    other = replace(PLAIN, id="2" * 32, topic="other")
    await repository.add(PLAIN)
    await repository.add(other)
    renewed = replace(PLAIN, lease_seconds=7, expires_at=8.5, owner="else", keys=Keys(secret="new"))
    await repository.renew(renewed)
    assert sorted(await repository.all(), key=lambda one: one.id) == [renewed, other]


async def test_a_new_subscription_takes_over_the_row_of_an_unfinished_end(
    repository: Repository,
) -> None:
    left = replace(PLAIN, status=SubscriptionStatus.ENDING, keys=Keys(secret="old"))
    await repository.add(left)
    added = await repository.add(replace(PLAIN, id="3" * 32, owner="else"))
    assert added == replace(PLAIN, owner="else")
    assert await repository.all() == [added]


async def test_no_secret_can_be_read_in_the_file(tmp_path: Path, sealer: Sealer) -> None:
    storage = Storage(tmp_path, None, sealer)
    repository = await storage.repository()
    keys = Keys(secret="s3cret-one", previous="s3cret-two", basic_auth="czNjcmV0LXRocmVl")
    await repository.add(replace(PLAIN, keys=keys))
    callback = "https://chat.example/hooks/s3cret-five?token=s3cret-six"
    renewed = replace(PLAIN, callback=callback)
    await repository.renew(
        replace(renewed, keys=msgspec.structs.replace(keys, secret="s3cret-four"))
    )
    held = {path.name: path.read_bytes() for path in tmp_path.glob(f"{DATABASE_NAME}*")}
    assert any(PREFIX.encode() in content for content in held.values())
    for content in held.values():
        assert b"s3cret" not in content and b"czNjcmV0" not in content
    await storage.close()


async def test_an_old_plain_secret_is_sealed_by_a_renewal(
    tmp_path: Path, either_database: str | None, sealer: Sealer
) -> None:
    url = either_database or f"sqlite+aiosqlite:///{tmp_path / DATABASE_NAME}"
    old = Database(url)
    async with old.engine.begin() as connection:
        await connection.run_sync(upgrade, "0001")
        await connection.execute(text(OLD_ROW), {"id": PLAIN.id, "identity": PLAIN.identity})
    await old.close()
    storage = Storage(tmp_path, either_database, sealer)
    repository = await storage.repository()
    expected = replace(PLAIN, keys=Keys(secret="s3cret"))
    assert await repository.all() == [expected]
    await repository.renew(expected)
    assert await repository.all() == [expected]
    async with (await storage.database()).begin() as session:
        stored = await session.scalar(text("SELECT secret FROM subscriptions"))
    assert str(stored).startswith(PREFIX)
    await storage.close()


async def test_many_ends_have_their_reasons(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 2)
    for number in range(6):
        await repository.add(replace(PLAIN, id=str(number), callback=str(number)))
    reasons = {"0": "this", "1": "that", "2": "this", "3": "this"}
    await repository.mark_ending(reasons)
    found = {one.id: (one.status, one.reason) for one in await repository.all()}
    left = {str(number): (PLAIN.status, "") for number in (4, 5)}
    assert (
        found == {id: (SubscriptionStatus.ENDING, reason) for id, reason in reasons.items()} | left
    )
    await repository.delete_all(["0", "2", "4", "5", "missing"])
    assert {one.id for one in await repository.all()} == {"1", "3"}
    await repository.mark_ending({})
    await repository.delete_all([])
