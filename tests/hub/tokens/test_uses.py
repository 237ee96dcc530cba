"""When tokens were last used, in either database."""

from __future__ import annotations

import asyncio

import pytest

from warrenmq.core.clock import ManualClock
from warrenmq.hub.owner_rights import AllowAll
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.tasks import Tasks
from warrenmq.hub.tokens import tokens as module
from warrenmq.hub.tokens.scope import Scope
from warrenmq.hub.tokens.tokens import AccessTokens


async def test_uses_survive_a_restart(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STORE_USES_S", 0.001)
    clock, tasks = ManualClock(), Tasks()
    first = AccessTokens(storage, clock, tasks, AllowAll())
    scopes = [Scope("read", "/", "x", "news")]
    used, secret = await first.make("used", "ann", scopes)
    unused, _ = await first.make("unused", "ann", scopes)
    assert first.find(secret)
    tasks.own(first.watch())
    async with asyncio.timeout(10):
        while True:
            later = AccessTokens(storage, clock, tasks, AllowAll())
            monkeypatch.setattr(storage, "is_empty", lambda: False)
            await later.start()
            if later.uses.last(used.id) is not None:
                break
    await tasks.stop()
    assert later.uses.last(used.id) == clock.wall_s()
    assert later.uses.last(unused.id) is None
