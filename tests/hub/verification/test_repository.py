"""Pending verifications come back as they were, from either database."""

from __future__ import annotations

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
async def rows(storage: Storage) -> VerificationRepository:
    return VerificationRepository(await storage.database(), storage.sealer)


@pytest.mark.parametrize("asked", [PLAIN.request, FULL])
async def test_an_added_verification_is_read_back_unchanged(
    rows: VerificationRepository, asked: SubscribeRequest
) -> None:
    pending = PendingVerification("2" * 32, "unsubscribe", asked, 0.25)
    await rows.change([pending], [])
    assert await rows.all() == [pending]
    await rows.change([], [pending])
    assert await rows.all() == []


async def test_verifications_are_changed_together_and_sorted_by_age(
    rows: VerificationRepository,
) -> None:
    asked = [
        PendingVerification(str(number), "subscribe", PLAIN.request, 9 - number)
        for number in range(9)
    ]
    await rows.change(asked[:6], [])
    await rows.change(asked[6:], asked[:6])
    assert await rows.all() == asked[:5:-1]


async def test_requests_are_encrypted(
    storage: Storage, rows: VerificationRepository, tmp_path: Path
) -> None:
    await rows.change([PendingVerification("1" * 32, "subscribe", FULL, 0.0)], [])
    async with (await storage.database()).begin() as session:
        stored = str(await session.scalar(text("SELECT request FROM verifications")))
    assert "s3cret" not in stored and "dTpw" not in stored
    foreign = VerificationRepository(await storage.database(), Sealer(tmp_path / "another.key"))
    with pytest.raises(ConfigError, match="not their key"):
        await foreign.all()
