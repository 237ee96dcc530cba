"""Which stored item a message replaces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from warrenmq.core.clock import ManualClock
from warrenmq.hub.feeds.items import ItemStore
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.outputs.collecting import CollectedItem, CollectResult
from warrenmq.hub.outputs.contents import OutputContents
from warrenmq.hub.outputs.origins import ItemKey, KnownItems, origin_of
from warrenmq.hub.outputs.output import OutputKey
from warrenmq.hub.outputs.repository import OutputRepository
from warrenmq.hub.storage.migrate import downgrade, upgrade
from warrenmq.hub.storage.storage import Storage

ALL = OutputKey("/", "all")
A, B = origin_of("hub.feeds", "a"), origin_of("hub.feeds", "b")


@pytest.fixture
async def storage(tmp_path: Path, either_database: str | None) -> AsyncIterator[Storage]:
    storage = Storage(tmp_path, either_database, Sealer(tmp_path / "key"))
    yield storage
    await storage.close()


async def test_items_of_an_earlier_version_are_neither_lost_nor_doubled(storage: Storage) -> None:
    database = await storage.database()
    async with database.engine.begin() as connection:
        await connection.run_sync(downgrade, "0021")
        for number in (1, 2):
            values = ALL.collection, number, f"urn:{number}", str(number), "{}", "new", 0, 0
            await connection.exec_driver_sql(
                "INSERT INTO feed_items (collection, number, item_id, digest, item, kind, poll, at)"
                f" VALUES {values}"
            )
        await connection.run_sync(upgrade)

    async def repository() -> OutputRepository:
        return OutputRepository(database)

    items = ItemStore(storage, 10, ManualClock())
    contents = OutputContents(items, repository)

    async def store(origin: str, item_id: str, digest: str) -> bool:
        item = CollectedItem(ItemKey(origin, item_id), digest, b"{}")
        return await contents.store(ALL, CollectResult([item], []))

    async def stored() -> list[tuple[str, str]]:
        page = await items.page(ALL.collection)
        return [(one.item_id, one.digest) for one in reversed(page)]

    await (await repository()).mark(ALL, ["urn:3"])  # as that version has marked near-duplicates
    assert not await store(A, "urn:1", "1")  # published again
    assert not await store(A, "urn:3", "1")
    assert await stored() == [("urn:1", "1"), ("urn:2", "2")]
    assert await store(A, "urn:1", "3")
    assert await stored() == [("urn:2", "2"), ("urn:1", "3")]
    assert await store(B, "urn:1", "4")
    assert await store(A, "urn:1", "5")
    *_, (other_id, other), last = await stored()
    assert (other, last) == ("4", ("urn:1", "5"))
    assert other_id == ItemKey(B, "urn:1").own_id
    async with database.engine.begin() as connection:
        await connection.run_sync(downgrade, "0021")
        left = await connection.exec_driver_sql("SELECT item_id FROM feed_items ORDER BY number")
        assert list(left.scalars()) == ["urn:2", "urn:1"]


def test_no_message_can_choose_the_id_of_an_item_of_another_origin() -> None:
    known = KnownItems({})
    first, second = ItemKey(A, "urn:1"), ItemKey(B, "urn:1")
    assert known.put(first, "1") == "urn:1"
    chosen = known.put(ItemKey(A, second.own_id), "1")
    assert chosen not in (None, second.own_id)
    assert known.put(second, "2") == second.own_id


def test_the_origin_is_the_feed_the_exchange_or_the_queue() -> None:
    assert origin_of("news", "eu") == origin_of("news", "us")
    places = [("hub.feeds", "a"), ("hub.feeds", "b"), ("", "a"), ("a", ""), ("hub.feeds:a", "")]
    assert len({origin_of(*place) for place in places}) == len(places)
