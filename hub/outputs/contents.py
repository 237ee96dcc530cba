"""The stored items of outputs, and which near-duplicates they leave out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..feeds.items import ItemStore
from ..feeds.stored_item import NewItem
from .collecting import CollectedItem, CollectResult, NearDuplicate
from .origins import ItemKey, KnownItems
from .output import OutputKey, StreamPosition

if TYPE_CHECKING:
    from .repository import OutputRepository


class OutputContents:
    """The stored items of outputs. Each method raises `StorageFailed`; repeating one changes
    nothing more."""

    def __init__(self, items: ItemStore, rows: Callable[[], Awaitable[OutputRepository]]) -> None:
        self._items = items
        self._rows = rows

    async def store(self, key: OutputKey, collected: CollectResult) -> bool:
        """Stores what messages have brought; returns whether documents have changed."""
        items = await self._new(key, collected.items)
        if items:
            await self._items.put(key.collection, items)
        marks, there = await self._to_drop(key, collected.near_duplicates)
        if not marks:
            return bool(items)
        await (await self._rows()).mark(key, marks)
        removed = await self._items.remove_items(key.collection, there)
        return bool(items or removed)

    async def _new(self, key: OutputKey, items: Sequence[CollectedItem]) -> list[NewItem]:
        """Returns those that are not stored yet as they are, nor marked; of a key the last one."""
        if not items:
            return []
        last = {item.key: item for item in items}
        known = await self._known(key, last)
        # The marks of a Warren that did not record origins have the ids of the items.
        marked = await (await self._rows()).marked(key, _ids_of(last))
        found: list[NewItem] = []
        for one, item in last.items():
            item_id = None if marked.intersection(one.ids) else known.put(one, item.digest)
            if item_id is not None:
                found.append(NewItem(item_id, item.digest, item.item, origin=one.origin))
        return found

    async def _to_drop(
        self, key: OutputKey, found: Sequence[NearDuplicate]
    ) -> tuple[list[str], list[str]]:
        """Returns the marks of near-duplicates whose earlier item this output has and keeps, and
        the ids in its documents of those that are there."""
        if not found:
            return [], []
        kept = await self._known(key, [one for pair in found for one in pair])
        marks: list[str] = []
        there: list[str] = []
        for first, second in found:
            if kept.find(first) not in (None, kept.find(second)):
                marks.append(second.own_id)
                there.extend(filter(None, [kept.remove(second)]))
        return marks, there

    async def _known(self, key: OutputKey, items: Iterable[ItemKey]) -> KnownItems:
        return KnownItems(await self._items.known(key.collection, _ids_of(items)))

    async def put_offsets(self, key: OutputKey, offsets: dict[str, StreamPosition]) -> None:
        """Stores how far streams are read."""
        await (await self._rows()).put_offsets(key, offsets)

    async def drop(self, key: OutputKey) -> None:
        """Deletes the items of an output."""
        await self._items.remove(key.collection)


def _ids_of(items: Iterable[ItemKey]) -> list[str]:
    return list(dict.fromkeys(item_id for item in items for item_id in item.ids))
