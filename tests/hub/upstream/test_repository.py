"""What is stored comes back as it was, from either database, and no secret can be read there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from warrenmq.hub.keys.seal import PREFIX, Sealer
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.upstream.repository import UpstreamRepository
from warrenmq.hub.upstream.upstream import (
    Upstream,
    UpstreamLease,
    UpstreamLeases,
    UpstreamRequest,
    UpstreamStatus,
)

WISH = UpstreamRequest("https://a/feed", "x", "news", "https://b", 1_000)
PLAIN = Upstream("1" * 32, "/", "feed", "guest", WISH, UpstreamLeases())
LINE = UpstreamLease("t0ken", "https://a/hub", "https://a/feed", "s3cret", 1_800_000_000.25, 0.5)
WHOLE = Upstream(
    "2" * 32,
    "v/ü",
    "n '\"%s",
    "töny",
    UpstreamRequest("https://a/ü", "q", "", "https://b/x", 10**8, "https://hub", "", False),
    UpstreamLeases(LINE, LINE, (LINE, LINE), "g1ven", "Basic abc"),
    UpstreamStatus.FAILED,
    "why \U0001f430",
    1_700_000_000.125,
)


@pytest.fixture
async def repository(storage: Storage, sealer: Sealer) -> UpstreamRepository:
    return UpstreamRepository(await storage.database(), sealer)


async def test_stored_upstreams_are_read_back_unchanged(repository: UpstreamRepository) -> None:
    await repository.put(PLAIN)
    await repository.put(WHOLE)
    assert sorted(await repository.all(), key=lambda one: one.id) == [PLAIN, WHOLE]
    changed = replace(WHOLE, status=UpstreamStatus.ENDING, leases=UpstreamLeases(), renew_at=0.0)
    await repository.put(changed)
    await repository.delete(PLAIN.id)
    await repository.delete("unknown")
    assert await repository.all() == [changed]


async def test_secrets_are_encrypted(storage: Storage, repository: UpstreamRepository) -> None:
    await repository.put(WHOLE)
    async with (await storage.database()).begin() as session:
        [row] = (await session.execute(text("SELECT * FROM upstreams"))).all()
    assert any(str(value).startswith(PREFIX) for value in row)
    for secret in ("t0ken", "s3cret", "g1ven", "Basic"):
        assert secret not in str(row)
