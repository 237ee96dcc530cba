"""Opening and closing the hub's database."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.storage.database import Database
from warrenmq.hub.storage.storage import Storage


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_close_waits_for_a_database_that_is_being_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    events: list[str] = []
    begun, may_go_on = asyncio.Event(), asyncio.Event()

    async def open_later(_: Database) -> None:
        begun.set()
        await may_go_on.wait()
        events.append("opened")

    async def close(_: Database) -> None:
        events.append("closed")

    monkeypatch.setattr(Database, "open", open_later)
    monkeypatch.setattr(Database, "close", close)
    storage = Storage(tmp_path, None, Sealer(tmp_path / "key"))
    opening = asyncio.create_task(storage.database())
    await begun.wait()
    if is_cancelled:
        opening.cancel()
    waiting = asyncio.create_task(storage.wait_while_opening())
    closing = asyncio.create_task(storage.close())
    await asyncio.sleep(0)
    assert not waiting.done(), "a snapshot would find a locked file"
    may_go_on.set()
    await closing
    assert events == ["opened", "closed"]
    await asyncio.wait({opening, waiting})
