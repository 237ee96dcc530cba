from __future__ import annotations

import pytest

from tests.hub.support import subscription
from warrenmq.hub.delivery.blocked import BlockedTable
from warrenmq.hub.delivery.failure_state import Blocking
from warrenmq.hub.storage.storage import Storage

BLOCKING = Blocking("msg_1", 3, 1_700_000_000.5, "status 503")


@pytest.fixture
async def table(storage: Storage) -> BlockedTable:
    """With the subscription `a` beside it."""
    await (await storage.repository()).add(subscription(id="a"))
    return BlockedTable(await storage.database())


async def test_rows_of_ended_subscriptions_are_deleted(
    table: BlockedTable, storage: Storage
) -> None:
    await table.put("a", BLOCKING)
    await table.put("gone", BLOCKING)
    assert await table.load() == {"a": BLOCKING}
    await (await storage.repository()).delete("a")
    assert await table.load() == {}
