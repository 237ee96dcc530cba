"""Pending verifications come back as they were, from either database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from warrenmq.core.errors import ConfigError
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.requests import Resource, SubscribeRequest
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.verification.repository import PendingVerification, VerificationRepository

from ..support import NEWS, request

PLAIN = PendingVerification("1" * 32, "subscribe", request(NEWS, "http://a.b/"), 1_800_000_000.5)
FULL = SubscribeRequest(
    source=Resource("other/one", "q", "ü"),
    callback="http://a.b/?x=%7E&y",
    topic="k",
    user="",
    base_url="https://hub.example/base",
    verify=("async", "sync"),
    verify_token="\U0001f430 '\"",
    lease_seconds="600",
    secret="s3cret\x01",
    topic_url="https://blog.example/feed",
    given={"hub.basic_auth": "dTpw", "hub.format": "plain"},
    is_administrator=True,
)


@pytest.fixture
async def storage(
    tmp_path: Path, either_database: str | None, sealer: Sealer
) -> AsyncIterator[Storage]:
    storage = Storage(tmp_path, either_database, sealer)
    yield storage
    await storage.close()


@pytest.fixture
async def rows(storage: Storage) -> VerificationRepository:
    return VerificationRepository(await storage.database(), storage.sealer)


@pytest.mark.parametrize("asked", [PLAIN.request, FULL])
async def test_what_is_added_comes_back(
    rows: VerificationRepository, asked: SubscribeRequest
) -> None:
    pending = PendingVerification("2" * 32, "unsubscribe", asked, 0.25)
    await rows.change([pending], [])
    assert await rows.all() == [pending]
    await rows.change([], [pending])
    assert await rows.all() == []


async def test_many_change_at_once(rows: VerificationRepository) -> None:
    asked = [
        PendingVerification(str(number), "subscribe", PLAIN.request, number) for number in range(9)
    ]
    await rows.change(asked[:6], [])
    await rows.change(asked[6:], asked[:6])
    assert await rows.all() == asked[6:]


async def test_the_oldest_comes_first(rows: VerificationRepository) -> None:
    for number, asked_at in enumerate((30.0, 10.0, 20.0)):
        asked = replace(PLAIN.request, callback=f"http://a.b/{asked_at:g}")
        await rows.change([PendingVerification(str(number) * 32, "subscribe", asked, asked_at)], [])
    callbacks = [pending.request.callback for pending in await rows.all()]
    assert callbacks == ["http://a.b/10", "http://a.b/20", "http://a.b/30"]


async def test_nothing_of_it_can_be_read_without_the_key(
    storage: Storage, rows: VerificationRepository, tmp_path: Path
) -> None:
    await rows.change([PendingVerification("1" * 32, "subscribe", FULL, 0.0)], [])
    async with (await storage.database()).begin() as session:
        stored = str(await session.scalar(text("SELECT request FROM verifications")))
    assert "s3cret" not in stored and "dTpw" not in stored
    foreign = VerificationRepository(await storage.database(), Sealer(tmp_path / "another.key"))
    with pytest.raises(ConfigError, match="not their key"):
        await foreign.all()
