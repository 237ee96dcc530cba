"""Capabilities are found by their secret until they expire, are revoked, or their place is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hub.support import House, until
from warrenmq.core.clock import ManualClock
from warrenmq.hub.capabilities.capabilities import MAX_EXPIRES_IN_S, Capabilities
from warrenmq.hub.errors import BadRequest, StorageFailed
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.owner_rights import AllowAll
from warrenmq.hub.requests import Resource
from warrenmq.hub.storage.schema import DATABASE_NAME
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.tasks import Tasks

INBOX = Resource("/", "q", "in")
Open = Callable[[], Any]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def reopen(
    tmp_path: Path, either_database: str | None, sealer: Sealer, clock: ManualClock
) -> AsyncIterator[Open]:
    """Gives the capabilities of a hub that has just started, on what was stored before."""
    opened: list[Storage] = []

    async def start() -> Capabilities:
        for storage in opened:
            await storage.close()
        storage = Storage(tmp_path, either_database, sealer)
        opened[:] = [storage]
        found = Capabilities(storage, clock, Tasks(), AllowAll())
        await found.start()
        return found

    yield start
    for storage in opened:
        await storage.close()


async def test_a_capability_survives_a_restart(reopen: Open) -> None:
    found = await reopen()
    plain, first = await found.make(INBOX, "guest")
    whole, second = await found.make(
        Resource("v/ü", "x", ""), "töny", expires_in_s=60, routing_key="", note="to the other hub"
    )
    assert first != second and len(first) >= 43
    found = await reopen()
    assert found.find(first) == plain
    assert found.find(second) == whole == found.get(whole.id)
    assert sorted(one.id for one in found.all()) == sorted((plain.id, whole.id))
    assert (plain.routing_key, whole.routing_key) == (None, "")


async def test_the_secret_is_not_stored(
    reopen: Open, tmp_path: Path, either_database: str | None
) -> None:
    found = await reopen()
    made, secret = await found.make(INBOX, "guest")
    assert secret not in repr(made)
    for wrong in ("", "x", secret[:-1], secret + "=", made.digest, made.id, "\udcff\xff"):
        assert found.find(wrong) is None
    if either_database is None:
        files = [path.read_bytes() for path in tmp_path.glob(DATABASE_NAME + "*")]
        assert files and not any(secret.encode() in one for one in files)


async def test_a_capability_expires(reopen: Open, clock: ManualClock) -> None:
    found = await reopen()
    _, secret = await found.make(INBOX, "guest", expires_in_s=60)
    clock.advance(59_000)
    assert found.find(secret) is not None
    clock.advance(1_000)
    assert found.find(secret) is None
    assert (await reopen()).all() == []


@pytest.mark.parametrize("forget", ["vhost", "owner"])
async def test_ends_with_its_vhost_or_owner(reopen: Open, forget: str) -> None:
    """A later one with the same name is another."""
    found = await reopen()
    _, here = await found.make(INBOX, "guest")
    _, there = await found.make(Resource("gone", "q", "in"), "tony")
    if forget == "vhost":
        found.forget_vhost("gone")
    else:
        found.forget_owner("tony")
    assert found.find(there) is None
    await until(lambda: len(found.all()) == 1, "end of its row")
    found = await reopen()
    assert found.find(here) is not None and found.find(there) is None


async def test_a_capability_of_an_owner_deleted_before_the_start_is_deleted(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await reopen()
    _, secret = await found.make(INBOX, "tony")
    monkeypatch.setattr(AllowAll, "owner_refusal", lambda _, owner: "gone")
    assert (await reopen()).find(secret) is None
    monkeypatch.undo()
    assert (await reopen()).find(secret) is None


async def test_the_hub_revokes_capabilities_of_deleted_users_and_vhosts(house: House) -> None:
    capabilities = house.hub.capabilities
    for forget, name in ((house.hub.forget_vhost, "/"), (house.hub.forget_owner, "guest")):
        _, secret = await capabilities.make(INBOX, "guest")
        forget(name)
        assert capabilities.find(secret) is None
        await until(lambda: capabilities.all() == [], "end of its row")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"expires_in_s": 0}, "expires_in_s"),
        ({"expires_in_s": -1}, "expires_in_s"),
        ({"expires_in_s": MAX_EXPIRES_IN_S + 1}, "expires_in_s"),
        ({"routing_key": "ü" * 128}, "routing_key"),
        ({"routing_key": "a\0b"}, "routing_key"),
        ({"note": "x" * 1_001}, "note"),
        ({"note": "\0"}, "note"),
    ],
)
async def test_bad_requests_are_refused(reopen: Open, given: dict[str, Any], field: str) -> None:
    found = await reopen()
    with pytest.raises(BadRequest) as caught:
        await found.make(INBOX, "guest", **given)
    assert caught.value.field == field
    assert found.all() == []


async def test_without_the_database_nothing_changes(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await reopen()
    made, secret = await found.make(INBOX, "guest")

    async def fails(_: Storage) -> None:
        raise StorageFailed("can't be reached now", field="database")

    monkeypatch.setattr(Storage, "database", fails)
    with pytest.raises(StorageFailed):
        await found.make(INBOX, "guest")
    with pytest.raises(StorageFailed):
        await found.revoke(made)
    assert found.all() == [made] and found.find(secret) == made
