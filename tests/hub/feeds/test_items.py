from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from warrenmq.core.clock import ManualClock
from warrenmq.hub.feeds.items import ItemStore
from warrenmq.hub.feeds.stored_item import MAX_DIGESTS, NewItem, feed_collection, output_collection
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.storage.storage import Storage

FEED, OUTPUT = feed_collection("bbc"), output_collection("bbc")


def items(*names: str, digest: str = "1") -> list[NewItem]:
    return [NewItem(name, digest, b'{"id":"%s"}' % name.encode()) for name in names]


@pytest.fixture
async def store(tmp_path: Path, either_database: str | None) -> AsyncIterator[ItemStore]:
    storage = Storage(tmp_path, either_database, Sealer(tmp_path / "key"))
    yield ItemStore(storage, 3, ManualClock())
    await storage.close()


async def ids(store: ItemStore, collection: str = FEED, before: int | None = None) -> list[str]:
    return [item.item_id for item in await store.page(collection, before)]


async def test_pages_have_the_newest_items_first(store: ItemStore) -> None:
    await store.put(FEED, items("a", "b"))
    await store.put(OUTPUT, items("x"))
    await store.put(FEED, items("c"))
    first = await store.page(FEED, limit=2)
    assert [item.item_id for item in first] == ["c", "b"]
    assert await ids(store, before=first[-1].number) == ["a"]
    assert first[0].body == b'{"id":"c"}'


async def test_an_item_that_has_changed_takes_the_place_of_its_old_version(
    store: ItemStore,
) -> None:
    await store.put(FEED, items("a", "b"))
    await store.put(FEED, items("a", digest="2"))
    assert await ids(store) == ["a", "b"]
    assert await store.digests(FEED) == {"a": "2", "b": "1"}


async def test_older_items_keep_their_digests_only(store: ItemStore) -> None:
    await store.put(FEED, items("a", "b", "c", "d"))
    assert await ids(store) == ["d", "c", "b"]
    assert set(await store.digests(FEED)) == {"a", "b", "c", "d"}


async def test_a_collection_has_a_bounded_number_of_digests(store: ItemStore) -> None:
    names = [str(number) for number in range(MAX_DIGESTS + 5)]
    await store.put(FEED, items(*names))
    assert set(await store.digests(FEED)) == set(names[5:])


async def test_a_removed_collection_is_empty(store: ItemStore) -> None:
    await store.put(FEED, items("a"))
    await store.put(OUTPUT, items("b"))
    await store.remove(FEED)
    assert await ids(store) == []
    assert await ids(store, OUTPUT) == ["b"]
