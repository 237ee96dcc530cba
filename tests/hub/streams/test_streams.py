"""How many answers are in memory."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import cast

import pytest

from warrenmq.hub.engine.port import Engine
from warrenmq.hub.processes.starter import ProcessStarter
from warrenmq.hub.streams import streams
from warrenmq.hub.streams.errors import TooManyReaders
from warrenmq.hub.streams.streams import ANSWERS_MAX, Streams


async def test_answers_at_once_are_limited_in_all_and_per_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half of them for one user; there is one for another user still."""
    monkeypatch.setattr(streams, "WAIT_S", 0)
    found = Streams(cast(Engine, None), ProcessStarter())
    async with AsyncExitStack() as slow:
        for _ in range(ANSWERS_MAX // 2):
            await slow.enter_async_context(found.answering("slow"))
        with pytest.raises(TooManyReaders, match=f"limit {ANSWERS_MAX}"):
            async with found.answering("slow"):
                """Never so."""
        async with found.answering("other"):
            """Others read."""
    async with found.answering("slow"):
        """The slow ones are gone."""


async def test_an_answer_waits_for_memory() -> None:
    found = Streams(cast(Engine, None), ProcessStarter())
    async with AsyncExitStack() as slow:
        for _ in range(ANSWERS_MAX // 2):
            await slow.enter_async_context(found.answering("user"))
        waiting = [asyncio.create_task(_answer(found)) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
    await asyncio.gather(*waiting)


async def _answer(found: Streams) -> None:
    async with found.answering("user"):
        await asyncio.sleep(0)
