from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.hub.support import NEWS
from warrenmq.hub.delivery.blocked import BlockedTable
from warrenmq.hub.delivery.failure_state import Blocking
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.subscriptions.subscription import Subscription

BLOCKING = Blocking("msg_1", 3, 1_700_000_000.5, "status 503")


@pytest.fixture
async def storage(
    tmp_path: Path, either_database: str | None, sealer: Sealer
) -> AsyncIterator[Storage]:
    storage = Storage(tmp_path, either_database, sealer)
    yield storage
    await storage.close()


@pytest.fixture
async def table(storage: Storage) -> BlockedTable:
    """With the subscription `a` beside it."""
    subscription = Subscription("a", NEWS, "#", "http://a.b/", 60, 0.0, "guest")
    await (await storage.repository()).add(subscription)
    return BlockedTable(await storage.database())


async def test_what_is_put_is_loaded(table: BlockedTable) -> None:
    await table.put("a", Blocking("msg_0", 1, 5.0, ""))
    await table.put("a", BLOCKING)
    assert await table.load() == {"a": BLOCKING}


async def test_what_is_dropped_is_gone(table: BlockedTable) -> None:
    await table.put("a", BLOCKING)
    await table.drop("a")
    await table.drop("a")
    assert await table.load() == {}


async def test_rows_of_subscriptions_that_are_gone_are_dropped(
    table: BlockedTable, storage: Storage
) -> None:
    await table.put("a", BLOCKING)
    await table.put("gone", BLOCKING)
    assert await table.load() == {"a": BLOCKING}
    await (await storage.repository()).delete("a")
    assert await table.load() == {}
