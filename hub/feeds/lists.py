"""The lists of feeds that users have imported: one of each user in each virtual host.

They are in the database alone, and read for an export.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import msgspec

from ..errors import BadRequest
from ..formats.opml import Opml, titled, write_opml
from ..lazy import Lazy
from ..storage.storage import Storage
from .feed import Feed
from .list_key import ListKey
from .opml import exported, merged

if TYPE_CHECKING:
    from .list_rows import FeedListRows

EXPORT_TITLE = "Feeds of Warren"
MAX_LIST_BYTES = 32 * 1024 * 1024
"""The limit of a stored list: twice the longest document, as it has feeds of earlier ones too."""


class FeedLists:
    """Stores and exports lists of feeds. Each method raises `StorageFailed`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._rows: Lazy[FeedListRows] = Lazy(self._open)
        self._lock = asyncio.Lock()

    async def add(self, key: ListKey, document: Opml, registered: Collection[str]) -> None:
        """Stores what was imported in place of the list, whose other feeds are kept behind it, if
        their ids are among the `registered`. Raises `BadRequest` if it gets too long."""
        rows = await self._rows.get()
        async with self._lock:
            old = await rows.get(key)
            await rows.put(key, await asyncio.to_thread(_merged, old, document, registered))

    async def export(
        self,
        feeds: Collection[Feed],
        user: str,
        is_wanted: Callable[[ListKey], bool],
        *,
        is_whole: bool,
    ) -> bytes:
        """Returns feeds as an OPML document, as they stand in lists, the user's first.

        Its head is that of the user's list or of the only one. With `is_whole`, it has all that is
        no registered feed too.
        """
        keys = [key for key in await self._keys() if is_wanted(key)]
        keys.sort(key=lambda key: (key.owner != user, key))
        texts = [await (await self._rows.get()).get(key) for key in keys]
        has_head = len(keys) == 1 or (bool(keys) and keys[0].owner == user)

        def written() -> bytes:
            lists = [msgspec.json.decode(text, type=Opml) for text in texts if text is not None]
            head = lists[0] if has_head and lists else titled(EXPORT_TITLE)
            return write_opml(exported(head, lists, feeds, is_whole=is_whole))

        return await asyncio.to_thread(written)

    async def forget(self, is_gone: Callable[[ListKey], bool]) -> None:
        """Deletes the lists of deleted users and virtual hosts."""
        gone = [key for key in await self._keys() if is_gone(key)]
        if gone:
            await (await self._rows.get()).delete(gone)

    async def _keys(self) -> list[ListKey]:
        return [] if self._storage.is_empty() else await (await self._rows.get()).keys()

    async def _open(self) -> FeedListRows:
        database = await self._storage.database()
        await asyncio.to_thread(importlib.import_module, f"{__package__}.list_rows")
        from .list_rows import FeedListRows

        return FeedListRows(database)


def _merged(old: str | None, new: Opml, registered: Collection[str]) -> str:
    if old is not None:
        new = merged(msgspec.json.decode(old, type=Opml), new, registered)
    text = msgspec.json.encode(new)
    if len(text) > MAX_LIST_BYTES:
        raise BadRequest(
            f"would have {len(text)} bytes with the feeds that only earlier lists have, at most "
            f"{MAX_LIST_BYTES} are stored, so exports are as before. Its feeds are registered; "
            "remove feeds of earlier lists to have it stored",
            field="list",
        )
    return text.decode()
